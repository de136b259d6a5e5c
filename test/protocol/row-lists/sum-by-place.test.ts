// Proves that the kernels add rows up as a loop in JavaScript does, to the bit: in every element type,
// for rows of any length, and where sums are made in more than one window.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { allocateData, bytesOf, DTYPES, type Dtype, isHalf } from "../../../src/protocol/dtypes.ts";
import { toHalfFloats, toNumbers } from "../../../src/protocol/encoding/half-floats.ts";
import { type PlacedRows, sumByPlace } from "../../../src/protocol/row-lists/row-lists.ts";
import { NUMBER_DTYPES } from "../../support/elements.ts";

/** Adds one element after the other, the first of a sum by copying it. */
function reference(rows: PlacedRows): Uint8Array {
  const { dtype, rowElements, places, sums } = rows;
  if (isHalf(dtype)) {
    const floats = toNumbers(dtype, rows.values);
    const wide = reference({ ...rows, dtype: "float32", values: floats });
    return bytesOf(toHalfFloats(dtype, new Float32Array(wide.slice().buffer)));
  }
  const { values } = rows;
  const result = allocateData(dtype, sums * rowElements);
  const begun = new Set<number>();
  places.forEach((place, row) => {
    for (let j = 0; j < rowElements; j++) {
      const [to, value] = [place * rowElements + j, values[row * rowElements + j]];
      const before = begun.has(place) ? result[to] : undefined;
      if (before === undefined) result[to] = value as never;
      else result[to] = ((before as number) + (value as number)) as never;
    }
    begun.add(place);
  });
  return bytesOf(result);
}

function elements(dtype: Dtype, count: number, seed: number): PlacedRows["values"] {
  const data = allocateData(dtype, count);
  const bytes = bytesOf(data);
  let state = seed;
  for (let i = 0; i < bytes.length; i++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    bytes[i] = state >>> 24;
  }
  // NaNs have no bits of their own in JavaScript.
  if (DTYPES[dtype].float) {
    const numbers = toNumbers(dtype, data);
    for (let i = 0; i < count; i++) if (!Number.isFinite(numbers[i])) data[i] = 0 as never;
  }
  return data;
}

describe.each(NUMBER_DTYPES)("%s", (dtype) => {
  test("sums are those of a loop", () => {
    const places = fc.array(fc.nat(6), { minLength: 1, maxLength: 40 });
    fc.assert(
      fc.property(places, fc.integer({ min: 1, max: 9 }), fc.nat(), (named, rowElements, seed) => {
        const kinds = [...new Set(named)];
        const rows = {
          dtype,
          values: elements(dtype, named.length * rowElements, seed),
          rowElements,
          places: Uint32Array.from(named, (name) => kinds.indexOf(name)),
          sums: kinds.length,
        };
        const wanted = reference(rows);
        expect(Buffer.compare(bytesOf(sumByPlace(rows)), wanted)).toBe(0);
      }),
    );
  });
});

test("sums that take more than one window, and rows of more than a chunk", () => {
  for (const [sums, rowElements] of [
    [700_000, 8],
    [60, 80_000],
  ] as const) {
    const places = Uint32Array.from({ length: sums + 9 }, (_, row) => (sums + 8 - row) % sums);
    const values = elements("float32", places.length * rowElements, 1);
    const rows = { dtype: "float32" as const, values, rowElements, places, sums };
    expect(Buffer.compare(bytesOf(sumByPlace(rows)), reference(rows))).toBe(0);
  }
});
