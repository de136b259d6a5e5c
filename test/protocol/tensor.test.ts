// Proves what counts as a tensor, and the norm: exact where sums of squares are exact, right where
// they overflow, and NaN or infinite exactly when an element is.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  allocateData,
  bytesOf,
  DTYPES,
  type Dtype,
  dtypeOf,
  holds,
  isDtype,
  isHalf,
} from "../../src/protocol/dtypes.ts";
import {
  elementCount,
  l2Norm,
  sameShape,
  tensorBytes,
  tensorView,
  toTensor,
  zeros,
} from "../../src/protocol/tensor.ts";
import { codeOf, refusalOf } from "./refusal.ts";

const MAX = Number.MAX_VALUE;
const ALL = Object.keys(DTYPES) as Dtype[];

describe("element types", () => {
  test("have numbers, of which the first are PaddlePaddle's", () => {
    const codes = ALL.map((dtype) => [dtype, DTYPES[dtype].code, DTYPES[dtype].bytes]);
    expect(codes).toEqual([
      ["int32", 0, 4],
      ["uint32", 1, 4],
      ["int64", 2, 8],
      ["uint64", 3, 8],
      ["float32", 4, 4],
      ["float64", 5, 8],
      ["bool", 6, 1],
      ["uint8", 7, 1],
      ["int8", 8, 1],
      ["float16", 9, 2],
      ["bfloat16", 10, 2],
    ]);
  });

  test.each(ALL)("%s is the type of the array made for it", (dtype) => {
    const data = allocateData(dtype, 3);
    expect(data).toHaveLength(3);
    expect(holds(dtype, data)).toBe(true);
    expect(toTensor({ dtype, shape: [3], data }).dtype).toBe(dtype);
    if (dtype !== "bool" && !isHalf(dtype)) expect(dtypeOf(data)).toBe(dtype);
    expect(bytesOf(data)).toHaveLength(3 * DTYPES[dtype].bytes);
    expect(data.BYTES_PER_ELEMENT).toBe(DTYPES[dtype].bytes);
  });

  test.each([
    new Uint8ClampedArray(4),
    new Int16Array(4),
    new Uint16Array(4),
    new DataView(new ArrayBuffer(4)),
    new ArrayBuffer(4),
    [1, 2],
    "1,2",
    null,
    undefined,
    7,
  ])("of anything else there is none: %s", (data) => {
    expect(codeOf(() => dtypeOf(data))).toBe("BAD_DTYPE");
  });

  test("are not found among what objects have", () => {
    expect(isDtype("toString")).toBe(false);
    expect(isDtype(4)).toBe(false);
  });
});

describe("shapes", () => {
  test.each<[readonly number[], number]>([
    [[], 1],
    [[1], 1],
    [[2, 3, 4], 24],
    [new Array(32).fill(1), 1],
    [[2 ** 26, 2 ** 26], 2 ** 52],
    [[2 ** 53 - 1], 2 ** 53 - 1],
  ])("[%s] has %i elements", (shape, elements) => {
    expect(elementCount(shape)).toBe(elements);
  });

  test.each<[unknown]>([
    [[0]],
    [[2, 0, 3]],
    [[-1]],
    [[1.5]],
    [[Number.NaN]],
    [[Number.POSITIVE_INFINITY]],
    [["3"]],
    [[3n]],
    [[null]],
    [new Array(3)],
    [new Array(33).fill(1)],
    [[2 ** 27, 2 ** 26]],
    [[2 ** 53]],
    ["3"],
    [3],
    [null],
    [undefined],
    [{ length: 1, 0: 3 }],
  ])("%s is none", (shape) => {
    expect(codeOf(() => elementCount(shape as readonly unknown[]))).toBe("BAD_SHAPE");
  });

  test("are the same only dimension by dimension", () => {
    expect(sameShape([2, 3], [2, 3])).toBe(true);
    expect(sameShape([], [])).toBe(true);
    for (const other of [[3, 2], [6], [2, 3, 1], []]) expect(sameShape([2, 3], other)).toBe(false);
  });
});

describe("a tensor", () => {
  test("may be a bare array of one dimension, and is not copied", () => {
    const data = Float32Array.of(1, 2, 3);
    expect(toTensor(data)).toEqual({ dtype: "float32", shape: [3], data });
    expect(toTensor(data).data).toBe(data);
    const tensor = toTensor({ dtype: "float32", shape: [3, 1], data });
    expect(tensor.data).toBe(data);
    expect(tensorView(tensor).buffer).toBe(data.buffer);
  });

  test("may be a view into a larger buffer", () => {
    const data = new Float64Array(new ArrayBuffer(80), 16, 2).fill(1.5);
    expect(tensorView(toTensor(data))).toHaveLength(16);
    expect(tensorView(toTensor(data)).byteOffset).toBe(16);
  });

  test.each<[string, unknown, string]>([
    ["no elements", new Float32Array(0), "BAD_SHAPE"],
    ["bits of half floats", new Uint16Array(4), "BAD_DTYPE"],
    ["16-bit numbers", { dtype: "uint16", shape: [2], data: new Uint16Array(2) }, "BAD_DTYPE"],
    [
      "half floats as floats",
      { dtype: "float16", shape: [2], data: new Float32Array(2) },
      "BAD_DTYPE",
    ],
    ["bools as numbers", { dtype: "bool", shape: [2], data: new Float32Array(2) }, "BAD_DTYPE"],
    ["bools of more than 1", { dtype: "bool", shape: [2], data: Uint8Array.of(1, 2) }, "BAD_VALUE"],
    ["a list", [1, 2], "BAD_DTYPE"],
    ["nothing", undefined, "BAD_DTYPE"],
    ["nil", null, "BAD_DTYPE"],
    ["another dtype", { dtype: "int32", shape: [2], data: new Float32Array(2) }, "BAD_DTYPE"],
    ["an unknown dtype", { dtype: "bf16", shape: [2], data: new Float32Array(2) }, "BAD_DTYPE"],
    ["no dtype", { shape: [2], data: new Float32Array(2) }, "BAD_DTYPE"],
    ["no shape", { dtype: "float32", data: new Float32Array(2) }, "BAD_SHAPE"],
    ["another shape", { dtype: "float32", shape: [3], data: new Float32Array(2) }, "BAD_LENGTH"],
    ["a scalar of two", { dtype: "float32", shape: [], data: new Float32Array(2) }, "BAD_LENGTH"],
  ])("is not %s", (_what, given, code) => {
    expect(codeOf(() => toTensor(given as Float32Array))).toBe(code);
  });

  test("of zeros has as many bytes as its shape says", () => {
    for (const dtype of ALL) {
      const tensor = zeros(dtype, [2, 3]);
      expect(tensorView(tensor)).toHaveLength(tensorBytes(dtype, [2, 3]));
      expect(tensorView(tensor).every((byte) => byte === 0)).toBe(true);
    }
  });

  test("of half floats that names no type says that it must", () => {
    const error = refusalOf(() => toTensor(new Uint16Array(2)));
    expect(error.message).toBe(
      "expected the bits of half floats as a tensor {dtype, shape, data} whose dtype is float16 or bfloat16; received a bare Uint16Array",
    );
    const wrong = { dtype: "bfloat16", shape: [1], data: new Float32Array(1) } as const;
    expect(refusalOf(() => toTensor(wrong)).message).toBe(
      "dtype: expected a Uint16Array for bfloat16; received a Float32Array",
    );
  });

  test("that does not fit says what was expected", () => {
    const error = refusalOf(() =>
      toTensor({ dtype: "float32", shape: [2, 2], data: new Float32Array(3) }),
    );
    expect(error.message).toBe("shape [2,2] takes 4 elements; received 3");
  });
});

describe("the norm", () => {
  test.each<[string, Float32Array | Float64Array, number]>([
    ["3, 4", Float32Array.of(3, 4), 5],
    ["one element", Float64Array.of(-7), 7],
    ["zeros", new Float32Array(5), 0],
    ["a large one and zeros", Float64Array.of(0, 0, 0, 0, 1e300), 1e300],
    ["two whose squares overflow", Float64Array.of(3e200, -4e200), 5e200],
    ["the largest float64, twice", Float64Array.of(MAX, MAX), MAX],
    ["the largest float32", Float32Array.of(3.4028234663852886e38), 3.4028234663852886e38],
    ["the smallest float64, whose square is 0", Float64Array.of(5e-324), 0],
  ])("of %s", (_what, data, norm) => {
    expect(Math.abs(l2Norm(data) - norm)).toBeLessThanOrEqual(norm * 1e-12);
  });

  test("is not finite exactly if an element is not, whatever surrounds it", () => {
    const element = fc.oneof(
      { weight: 20, arbitrary: fc.double({ noNaN: true, noDefaultInfinity: true }) },
      { weight: 1, arbitrary: fc.constantFrom(Number.NaN, Number.POSITIVE_INFINITY, -1 / 0) },
    );
    fc.assert(
      fc.property(fc.array(element, { minLength: 1, maxLength: 30 }), (elements) => {
        const allFinite = elements.every(Number.isFinite);
        expect(Number.isFinite(l2Norm(Float64Array.from(elements)))).toBe(allFinite);
        const single = Float32Array.from(elements);
        expect(Number.isFinite(l2Norm(single))).toBe(single.every(Number.isFinite));
      }),
      { numRuns: 500 },
    );
  });

  test("is that of a plain sum where that does not overflow", () => {
    const element = fc.double({ min: -1e100, max: 1e100, noNaN: true });
    fc.assert(
      fc.property(fc.array(element, { minLength: 1, maxLength: 30 }), (elements) => {
        const plain = Math.sqrt(elements.reduce((sum, value) => sum + value * value, 0));
        const norm = l2Norm(Float64Array.from(elements));
        expect(Math.abs(norm - plain)).toBeLessThanOrEqual(plain * 1e-12);
      }),
    );
  });

  test("of integers is 0", () => {
    expect(l2Norm(Int32Array.of(3, 4))).toBe(0);
    expect(l2Norm(BigUint64Array.of(3n, 4n))).toBe(0);
  });
});
