// Proves that rows named repeatedly are added up in the order given and in the element type, and that
// the rows that come out are ascending, each once.
import fc from "fast-check";
import { expect, test } from "vitest";
import { sumRows } from "../../../src/client/push/block-updates.ts";
import { toHalfFloats, toNumbers } from "../../../src/protocol/encoding/half-floats.ts";

test("rows in order are not copied", () => {
  const [rows, values] = [Float64Array.of(1, 4, 5), new Float32Array(6)];
  const sums = sumRows("float32", rows, values, 2);
  expect(sums.rows).toBe(rows);
  expect(sums.values).toBe(values);
});

test("rows out of order are sorted, with their values", () => {
  const sums = sumRows(
    "float64",
    Float64Array.of(5, 1, 4),
    Float64Array.of(50, 51, 10, 11, 40, 41),
    2,
  );
  expect(sums).toEqual({
    rows: Float64Array.of(1, 4, 5),
    values: Float64Array.of(10, 11, 40, 41, 50, 51),
  });
});

test("adds in the order given, rounding to float32 after each addition", () => {
  // 2^24 + 1 is no float32: added one by one the ones are lost, added before they are not.
  const big = 2 ** 24;
  expect(
    sumRows("float32", Float64Array.of(3, 3, 3), Float32Array.of(big, 1, 1), 1).values,
  ).toEqual(Float32Array.of(big));
  expect(
    sumRows("float32", Float64Array.of(3, 3, 3), Float32Array.of(1, 1, big), 1).values,
  ).toEqual(Float32Array.of(big + 2));
});

test("keeps a negative zero that is alone in its row", () => {
  const { values } = sumRows("float32", Float64Array.of(2, 0, 0), Float32Array.of(-0, 1, 2), 1);
  expect(values).toEqual(Float32Array.of(3, -0));
});

test("integers wrap around", () => {
  const rows = Float64Array.of(0, 0);
  expect(sumRows("int32", rows, Int32Array.of(2 ** 31 - 1, 1), 1).values).toEqual(
    Int32Array.of(-(2 ** 31)),
  );
  expect(sumRows("uint32", rows, Uint32Array.of(2 ** 32 - 1, 2), 1).values).toEqual(
    Uint32Array.of(1),
  );
  expect(sumRows("int64", rows, BigInt64Array.of(2n ** 63n - 1n, 1n), 1).values).toEqual(
    BigInt64Array.of(-(2n ** 63n)),
  );
  expect(sumRows("uint64", rows, BigUint64Array.of(2n ** 64n - 1n, 2n), 1).values).toEqual(
    BigUint64Array.of(1n),
  );
  expect(sumRows("int8", rows, Int8Array.of(127, 1), 1).values).toEqual(Int8Array.of(-128));
  expect(sumRows("uint8", rows, Uint8Array.of(255, 2), 1).values).toEqual(Uint8Array.of(1));
});

test.each(["bfloat16", "float16"] as const)(
  "%s is added up as float32 and rounded once",
  (dtype) => {
    // Each half of the last bit would be lost by itself; two of them are not.
    const [one, half] = dtype === "bfloat16" ? [256, 1] : [2048, 1];
    const halves = toHalfFloats(dtype, Float32Array.of(one, half, half));
    const sums = sumRows(dtype, Float64Array.of(3, 3, 3), halves, 1);
    expect(toNumbers(dtype, sums.values)).toEqual(Float32Array.of(one + 2 * half));
  },
);

test("sums are those of a table of rows", () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.nat(9), fc.integer({ min: -99, max: 99 }), fc.nat(99))),
      (named) => {
        const table = new Map<number, [number, number]>();
        for (const [row, x, y] of named) {
          const [sumX, sumY] = table.get(row) ?? [0, 0];
          table.set(row, [sumX + x, sumY + y]);
        }
        const expected = [...table].sort(([a], [b]) => a - b);
        const rows = Float64Array.from(named, ([row]) => row);
        const sums = sumRows(
          "float64",
          rows,
          Float64Array.from(named.flatMap(([, x, y]) => [x, y])),
          2,
        );
        expect([...sums.rows]).toEqual(expected.map(([row]) => row));
        expect([...sums.values].map((value) => Number(value) + 0)).toEqual(
          expected.flatMap(([, sum]) => sum),
        );
      },
    ),
  );
});
