// Proves that a reader gives the elements that were asked for, in order and encoded as asked: random
// parts of every element type against plain indexing, in blocks longer than the scratch, and without
// changing the block.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ShardMemory } from "../../../src/actors/kernel/shard-memory.ts";
import { ElementReader, type ReadChoice } from "../../../src/actors/owner/element-reader.ts";
import {
  allocateData,
  bytesOf,
  DTYPES,
  type Dtype,
  dtypeOf,
  type TensorData,
} from "../../../src/protocol/dtypes.ts";
import { anyPart, elementsOfPart } from "./arbitrary-parts.ts";
import { Folded } from "./folded.ts";
import { encoded } from "./journal-writer.ts";

const dtypes = Object.keys(DTYPES) as Dtype[];
const memory = ShardMemory.create();

/** Elements of all kinds of bits. */
function numbered(dtype: Dtype, length: number): TensorData {
  const data = allocateData(dtype, length);
  const view = new DataView(data.buffer);
  for (let at = 0; at < data.byteLength; at++)
    view.setUint8(at, Math.imul(at + 1, 2654435761) >>> 24);
  if (dtype === "bool") for (let i = 0; i < length; i++) data[i] = (data[i] as number) & 1;
  return data;
}

function blockOf(values: TensorData, shape: readonly number[], dtype = dtypeOf(values)): Folded {
  const folded = new Folded(undefined, { memory });
  folded.journal.init(values, { shape, dtype, config: { allowNonFinite: true } });
  folded.apply();
  return folded;
}

/** What the reader gives, written to an odd address. */
function read(folded: Folded, choice: ReadChoice): Uint8Array {
  const before = folded.shard.digest();
  const reader = new ElementReader(folded.shard.memory, folded.block(), choice);
  const target = new Uint8Array(reader.bytes + 1).subarray(1);
  reader.read(target);
  expect(folded.shard.digest()).toBe(before);
  return target;
}

/** Elements of a block, bit by bit. */
function picked(folded: Folded, elements: readonly number[], elementBytes: number): Uint8Array {
  const values = folded.block().values();
  return Buffer.concat(
    elements.map((element) => values.slice(element * elementBytes, (element + 1) * elementBytes)),
  );
}

describe.each(dtypes)("%s", (dtype) => {
  const elementBytes = DTYPES[dtype].bytes;

  test("any part is the elements of its rows and offsets, in order", () => {
    const cases = fc
      .tuple(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: 40 }))
      .chain(([rows, width]) =>
        fc.tuple(fc.constant([rows, width] as const), anyPart(rows, width)),
      );
    fc.assert(
      fc.property(cases, ([[rows, width], part]) => {
        const folded = blockOf(numbered(dtype, rows * width), [rows, width], dtype);
        const wanted = picked(folded, elementsOfPart(part, width), elementBytes);
        expect(Buffer.compare(read(folded, { part }), wanted)).toBe(0);
      }),
      { numRuns: 30 },
    );
  });

  test("whole blocks and parts of them go over the end of the scratch", () => {
    const [rows, width] = [3, 40_001];
    const folded = blockOf(numbered(dtype, rows * width), [rows, width], dtype);
    expect(Buffer.compare(read(folded, {}), folded.block().values())).toBe(0);
    const inner = Uint32Array.from({ length: 30_000 }, (_, i) => (i < 9 ? i : i + 10_001));
    const part = { rows: Uint32Array.of(0, 2), inner };
    const wanted = picked(folded, elementsOfPart(part, width), elementBytes);
    expect(Buffer.compare(read(folded, { part }), wanted)).toBe(0);
  });
});

describe.each(["bfloat16", "float16", "int8", "e3m0"] as const)("in %s", (encoding) => {
  const values = Float32Array.from({ length: 100_003 }, (_, i) => Math.fround((i - 50_000) / 7));
  values.set([Number.NaN, Number.POSITIVE_INFINITY, -0, 1e-40], 70_000);

  test("a whole block", () => {
    const folded = blockOf(values, [100_003]);
    const wanted = encoded(encoding, values);
    expect(Buffer.compare(read(folded, { encoding }), wanted)).toBe(0);
  });

  test("a part", () => {
    const folded = blockOf(values, [100_003]);
    const part = { rows: Uint32Array.from({ length: 50_001 }, (_, i) => 2 * i) };
    const wanted = encoded(
      encoding,
      values.filter((_, i) => i % 2 === 0 && i <= 100_000),
    );
    expect(Buffer.compare(read(folded, { encoding, part }), wanted)).toBe(0);
  });

  test("other types than float32 are refused", () => {
    const folded = blockOf(Float64Array.of(1), [1]);
    expect(() => new ElementReader(memory, folded.block(), { encoding })).toThrow(
      expect.objectContaining({ code: "UNSUPPORTED" }),
    );
  });
});

test("an element of a block that is cut inside a row is found within the block", () => {
  const folded = new Folded();
  folded.journal.init(Int32Array.of(1, 2, 3, 4), { shape: [2, 6], index: 1, start: 4, count: 4 });
  folded.apply();
  const part = { rows: Uint32Array.of(0), inner: Uint32Array.of(1, 3) };
  const reader = new ElementReader(folded.shard.memory, folded.block("w", 1), { part });
  const target = new Uint8Array(reader.bytes);
  reader.read(target);
  expect(target).toEqual(bytesOf(Int32Array.of(2, 4)));
});
