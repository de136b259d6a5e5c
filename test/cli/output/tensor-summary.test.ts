// Proves that tensors are shown as numpy shows arrays: small ones whole, large ones by the edges
// of each axis, elements with the fewest digits that read back as the same value.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  formatElement,
  formatShape,
  jsonElement,
  summarizeTensor,
} from "../../../src/cli/output/tensor-summary.ts";
import { toHalfFloats, toNumbers } from "../../../src/protocol/encoding/half-floats.ts";

describe("summarizeTensor", () => {
  test("shows a vector on one line", () => {
    const data = Float32Array.of(0.1, -2, 30);
    expect(summarizeTensor("w", { dtype: "float32", shape: [3], data })).toEqual([
      "w  float32 (3,)  12 B",
      "[0.1  -2  30]",
    ]);
  });

  test("shows a matrix in rows, and a scalar bare", () => {
    const data = Int32Array.of(1, 2, 3, 4, 5, 60);
    expect(summarizeTensor("m", { dtype: "int32", shape: [2, 3], data })).toEqual([
      "m  int32 (2, 3)  24 B",
      "[[ 1  2  3]",
      " [ 4  5 60]]",
    ]);
    expect(
      summarizeTensor("s", { dtype: "float64", shape: [], data: Float64Array.of(7.5) }),
    ).toEqual(["s  float64 ()  8 B", "7.5"]);
  });

  test("nests brackets for each axis", () => {
    const data = Int32Array.from({ length: 8 }, (_, i) => i);
    expect(summarizeTensor("t", { dtype: "int32", shape: [2, 2, 2], data }).slice(1)).toEqual([
      "[[[0 1]",
      "  [2 3]]",
      " [[4 5]",
      "  [6 7]]]",
    ]);
  });

  test("cuts every axis of a large tensor to its edges", () => {
    const data = Int32Array.from({ length: 100_000 }, (_, i) => i);
    expect(summarizeTensor("big", { dtype: "int32", shape: [1000, 100], data }).slice(1)).toEqual([
      "[[    0     1     2 ...    97    98    99]",
      " [  100   101   102 ...   197   198   199]",
      " [  200   201   202 ...   297   298   299]",
      " ...",
      " [99700 99701 99702 ... 99797 99798 99799]",
      " [99800 99801 99802 ... 99897 99898 99899]",
      " [99900 99901 99902 ... 99997 99998 99999]]",
    ]);
  });

  test("shows six digits of a float", () => {
    const data = Float64Array.of(1 / 3, 1234567.5, 2 ** 40, Number.NaN);
    expect(summarizeTensor("f", { dtype: "float64", shape: [4], data })[1]).toBe(
      "[     0.333333       1234570 1099511627776           NaN]",
    );
  });

  test("wraps long rows", () => {
    const data = Int32Array.from({ length: 200 }, (_, i) => 10_000 + i);
    const lines = summarizeTensor("row", { dtype: "int32", shape: [200], data }).slice(1);
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(76);
    expect(lines.join(" ").match(/\d+/g)).toHaveLength(200);
    expect(lines[0]?.startsWith("[10000 ")).toBe(true);
    expect(lines.at(-1)?.endsWith("10199]")).toBe(true);
  });
});

test("formatShape follows numpy", () => {
  expect([[], [3], [3, 4]].map(formatShape)).toEqual(["()", "(3,)", "(3, 4)"]);
});

describe("elements", () => {
  test("take few digits, and keep their sign", () => {
    const floats = Float32Array.of(0.1, 1 / 3, 16_777_216, -0, Number.NaN, -Infinity, 1e-45);
    expect(
      Array.from(floats, (_, i) => formatElement({ dtype: "float32", data: floats }, i)),
    ).toEqual(["0.1", "0.33333334", "16777216", "-0", "NaN", "-Infinity", "1.4013e-45"]);
    expect(formatElement({ dtype: "float64", data: Float64Array.of(1 / 3) }, 0)).toBe(
      "0.3333333333333333",
    );
    expect(formatElement({ dtype: "int64", data: BigInt64Array.of(-(2n ** 63n)) }, 0)).toBe(
      "-9223372036854775808",
    );
  });

  test("of float32 read back as the same value", () => {
    fc.assert(
      fc.property(fc.float(), (value) => {
        const data = Float32Array.of(value);
        const back = Math.fround(Number(formatElement({ dtype: "float32", data }, 0)));
        expect(Object.is(back, data[0])).toBe(true);
      }),
      { numRuns: 2000 },
    );
  });

  test.each(["float16", "bfloat16"] as const)(
    "of %s read back as the same bits, in few digits",
    (dtype) => {
      const bits = Uint16Array.from({ length: 65_536 }, (_, i) => i);
      const texts = Array.from(bits, (_, i) => formatElement({ dtype, data: bits }, i));
      const back = toHalfFloats(dtype, Float32Array.from(texts, Number));
      const isNumber = Array.from(toNumbers(dtype, bits) as Float32Array, (x) => !Number.isNaN(x));
      expect(back.filter((_, i) => isNumber[i])).toEqual(bits.filter((_, i) => isNumber[i]));
      expect(new Set(texts.filter((_, i) => !isNumber[i]))).toEqual(new Set(["NaN"]));
      const digits = texts
        .filter((text) => Number.isFinite(Number(text)))
        .map((text) => text.replace(/e.*|[-.]/g, "").replace(/^0+|0+$/g, "").length);
      expect(Math.max(...digits)).toBeLessThanOrEqual(dtype === "bfloat16" ? 4 : 5);
      const tenth = { dtype, data: toHalfFloats(dtype, Float32Array.of(0.1, 3)) };
      expect([0, 1].map((i) => formatElement(tenth, i))).toEqual(["0.1", "3"]);
    },
  );

  test("of bool are words, of 8 bits numbers", () => {
    const bools = { dtype: "bool", data: Uint8Array.of(0, 1) } as const;
    expect([0, 1].map((i) => formatElement(bools, i))).toEqual(["False", "True"]);
    expect([0, 1].map((i) => jsonElement(bools, i))).toEqual(["false", "true"]);
    expect(formatElement({ dtype: "int8", data: Int8Array.of(-128) }, 0)).toBe("-128");
    expect(jsonElement({ dtype: "uint8", data: Uint8Array.of(255) }, 0)).toBe("255");
  });

  test("are JSON that every reader holds exactly", () => {
    expect(jsonElement({ dtype: "float32", data: Float32Array.of(0.1) }, 0)).toBe("0.1");
    expect(jsonElement({ dtype: "float64", data: Float64Array.of(Number.NaN) }, 0)).toBe('"NaN"');
    expect(
      jsonElement({ dtype: "float64", data: Float64Array.of(Number.POSITIVE_INFINITY) }, 0),
    ).toBe('"Infinity"');
    expect(jsonElement({ dtype: "uint64", data: BigUint64Array.of(2n ** 64n - 1n) }, 0)).toBe(
      '"18446744073709551615"',
    );
  });
});
