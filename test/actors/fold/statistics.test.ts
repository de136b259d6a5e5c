// Proves that the statistics of an update are those that a plain loop over its elements in float64 gives, of
// every element type and encoding, of any bits and any length around a vector and around the scratch.
import fc from "fast-check";
import { expect, test } from "vitest";
import { measure, type Statistics } from "../../../src/actors/fold/statistics.ts";
import { ShardMemory } from "../../../src/actors/kernel/shard-memory.ts";
import { bytesOf, DTYPES, type Dtype } from "../../../src/protocol/dtypes.ts";
import { decodeElements, encodeElements } from "../../../src/protocol/encoding/encoding.ts";
import { toNumbers } from "../../../src/protocol/encoding/half-floats.ts";
import { trickyData, words } from "../kernel/operands.ts";

const memory = ShardMemory.create();

/** The same, element by element. */
function plain(elements: Iterable<number | bigint>): Statistics {
  let [squares, sum, zeros, nonFinite, count] = [0, 0, 0, 0, 0];
  let [min, max] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const element of elements) {
    const x = Number(element);
    if (!Number.isFinite(x)) {
      nonFinite += 1;
      continue;
    }
    count += 1;
    squares += x * x;
    sum += x;
    min = Math.min(min, x);
    max = Math.max(max, x);
    if (x === 0) zeros += 1;
  }
  const norm = Math.sqrt(squares);
  if (count === 0)
    return { norm, min: undefined, max: undefined, mean: undefined, zeros, nonFinite };
  return { norm, min: min + 0, max: max + 0, mean: sum / count, zeros, nonFinite };
}

/** Sums are made in another order: as far apart as rounding can bring them. */
function expectSame(actual: Statistics, elements: Iterable<number | bigint>): void {
  const list = [...elements].map(Number);
  const expected = plain(list);
  expect({ ...actual, norm: 0, mean: 0 }).toEqual({ ...expected, norm: 0, mean: 0 });
  if (Number.isFinite(expected.norm)) {
    expect(Math.abs(actual.norm - expected.norm)).toBeLessThanOrEqual(expected.norm * 1e-12);
  } else expect(actual.norm).toBe(expected.norm);
  if (expected.mean === undefined) {
    expect(actual.mean).toBeUndefined();
    return;
  }
  const finite = list.filter(Number.isFinite);
  const size = finite.reduce((sum, x) => sum + Math.abs(x) / finite.length, 0);
  if (!Number.isFinite(expected.mean)) return;
  expect(Math.abs((actual.mean ?? Number.NaN) - expected.mean)).toBeLessThanOrEqual(size * 1e-12);
}

const LENGTHS = fc.oneof(fc.integer({ min: 0, max: 40 }), fc.constantFrom(65_535, 65_536, 70_003));

test.each(Object.keys(DTYPES) as Dtype[])("of %s, whatever their bits", (dtype) => {
  fc.assert(
    fc.property(fc.integer(), LENGTHS, (seed, n) => {
      const data = trickyData(dtype, n, words(seed));
      expectSame(measure(memory, { dtype, bytes: bytesOf(data) }), toNumbers(dtype, data));
    }),
    { numRuns: 60 },
  );
});

test.each(["float32", "float64"] as const)("of finite %s, with zeros", (dtype) => {
  const element = fc.oneof(
    fc.constant(0),
    fc.constant(-0),
    fc.float({ noNaN: true, noDefaultInfinity: true }),
  );
  fc.assert(
    fc.property(fc.array(element, { maxLength: 50 }), (elements) => {
      const data = dtype === "float32" ? Float32Array.from(elements) : Float64Array.from(elements);
      expectSame(measure(memory, { dtype, bytes: bytesOf(data) }), data);
    }),
  );
});

test.each(["bfloat16", "float16"] as const)("of float32 as %s", (encoding) => {
  fc.assert(
    fc.property(fc.integer(), LENGTHS, (seed, n) => {
      const data = trickyData("float32", n, words(seed)) as Float32Array;
      const bytes = new Uint8Array(2 * n);
      encodeElements(encoding, data, bytes);
      const decoded = new Float32Array(n);
      decodeElements(encoding, bytes, decoded);
      expectSame(measure(memory, { dtype: "float32", encoding, bytes }), decoded);
    }),
    { numRuns: 60 },
  );
});

test("the square of a large float64 overflows, but the element stays finite", () => {
  const data = Float64Array.of(1e200, 1, 0);
  const measured = measure(memory, { dtype: "float64", bytes: bytesOf(data) });
  expect(measured).toMatchObject({
    norm: Number.POSITIVE_INFINITY,
    max: 1e200,
    min: 0,
    nonFinite: 0,
  });
});
