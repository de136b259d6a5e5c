// Every kernel gives, to the bit, what the scalar reference gives: on sizes around the vector width,
// on a block of a million elements, and on denormals, infinities, signed zeros and NaNs of any bits;
// it writes nothing else. Operands come from a seeded generator, and fast-check varies the seeds.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { NumberDtype } from "../../../src/actors/fold/update-rule.ts";
import type { MixKernel } from "../../../src/actors/kernel/kernels.ts";
import { ShardMemory } from "../../../src/actors/kernel/shard-memory.ts";
import type { Dtype, TensorData } from "../../../src/protocol/dtypes.ts";
import { firstDifference, runAllInMemory, runInMemory, trickyData, words } from "./operands.ts";
import * as reference from "./scalar-reference.ts";

const SIZES = [0, 1, 2, 3, 4, 5, 7, 8, 9, 17, 4096 + 3, 2 ** 18 + 1];
const FACTORS = [0, -0, 1, -1, 0.5, 0.1, 1e-40, 1e39, -1e300, 3.5e9, Infinity, NaN];
const memory = ShardMemory.create();
const { kernels } = memory;

type FloatDtype = "float32" | "float64";
type IntegerDtype = "int32" | "uint32" | "int64" | "uint64" | "int8" | "uint8";

const MIXES: Record<NumberDtype, MixKernel> = {
  float32: kernels.mixF32,
  float64: kernels.mixF64,
  int32: kernels.mixI32,
  uint32: kernels.mixU32,
  int64: kernels.mixI64,
  uint64: kernels.mixU64,
  int8: kernels.mixI8,
  uint8: kernels.mixU8,
};
const RANGES: Record<IntegerDtype, reference.IntegerRange> = {
  int32: { min: -(2n ** 31n), max: 2n ** 31n - 1n },
  uint32: { min: 0n, max: 2n ** 32n - 1n },
  int64: { min: -(2n ** 63n), max: 2n ** 63n - 1n },
  uint64: { min: 0n, max: 2n ** 64n - 1n },
  int8: { min: -128n, max: 127n },
  uint8: { min: 0n, max: 255n },
};

function isFloat(dtype: Dtype): dtype is FloatDtype {
  return dtype === "float32" || dtype === "float64";
}

function numbers(data: TensorData): number[] {
  return Array.from<number | bigint, number>(data, Number);
}

function floats(dtype: FloatDtype, results: Iterable<number>): TensorData {
  return dtype === "float32" ? reference.canonicalF32(results) : reference.canonicalF64(results);
}

function integers(dtype: IntegerDtype, results: readonly bigint[]): TensorData {
  switch (dtype) {
    case "int32":
      return Int32Array.from(results, Number);
    case "uint32":
      return Uint32Array.from(results, Number);
    case "int64":
      return BigInt64Array.from(results);
    case "uint64":
      return BigUint64Array.from(results);
    case "int8":
      return Int8Array.from(results, Number);
    case "uint8":
      return Uint8Array.from(results, Number);
  }
}

/** Index of the first element where the mix kernel and the reference differ, or -1. */
function mixDifference(
  dtype: NumberDtype,
  value: TensorData,
  piece: TensorData,
  alpha: number,
  beta: number,
): number {
  const actual = runInMemory(memory, [value, piece], ([v = 0, p = 0]) =>
    MIXES[dtype](v, p, value.length, alpha, beta),
  );
  if (isFloat(dtype)) {
    const mixed = dtype === "float32" ? reference.mixedF32 : reference.mixedF64;
    const pieces = numbers(piece);
    const expected = numbers(value).map((x, at) => mixed(x, pieces[at] ?? 0, alpha, beta));
    return firstDifference(actual, floats(dtype, expected));
  }
  const pieces = Array.from<number | bigint, bigint>(piece, BigInt);
  const expected = Array.from<number | bigint, bigint>(value, (x, at) =>
    reference.mixedInteger(BigInt(x), pieces[at] ?? 0n, alpha, beta, RANGES[dtype]),
  );
  return firstDifference(actual, integers(dtype, expected));
}

const factor = fc.oneof(fc.constantFrom(...FACTORS), fc.double());
const seed = fc.integer();
const length = fc.nat({ max: 70 });

describe.each(Object.keys(MIXES) as NumberDtype[])("mix of %s", (dtype) => {
  test.each(SIZES)("%i elements", (n) => {
    const next = words(n + 1);
    const value = trickyData(dtype, n, next);
    const piece = trickyData(dtype, n, next);
    expect(mixDifference(dtype, value, piece, 0.9, 0.1)).toBe(-1);
  });

  test("any elements and factors", () => {
    fc.assert(
      fc.property(seed, length, factor, factor, (from, n, alpha, beta) => {
        const next = words(from);
        const value = trickyData(dtype, n, next);
        const piece = trickyData(dtype, n, next);
        expect(mixDifference(dtype, value, piece, alpha, beta)).toBe(-1);
      }),
      { numRuns: 300 },
    );
  });
});

describe("known results", () => {
  const mixed = (dtype: NumberDtype, value: TensorData, piece: TensorData, a: number, b: number) =>
    runInMemory(memory, [value, piece], ([v = 0, p = 0]) => MIXES[dtype](v, p, value.length, a, b));

  test("float32 rounds each operation, the factors too, and fuses none", () => {
    // 0.1 as f32 times 10 is 1 after rounding, but 1.0000000149 before: fused it would not cancel.
    const bytes = mixed("float32", Float32Array.of(10, 10), Float32Array.of(1, 1), 0.1, -1);
    expect(new Float32Array(bytes.buffer)).toEqual(Float32Array.of(0, 0));
  });

  test("a mix flushes denormals neither on the way in nor on the way out", () => {
    const tiny = 2 ** -149;
    const bytes = mixed(
      "float32",
      Float32Array.of(tiny, 2 ** -126),
      Float32Array.of(tiny, 0),
      1,
      2,
    );
    expect(new Float32Array(bytes.buffer)).toEqual(Float32Array.of(3 * tiny, 2 ** -126));
    const halved = mixed("float32", Float32Array.of(2 ** -126), Float32Array.of(0), 0.5, 1);
    expect(new Float32Array(halved.buffer)).toEqual(Float32Array.of(2 ** -127));
  });

  test("integers are cut toward zero and held at the ends of their range", () => {
    const i32 = mixed(
      "int32",
      Int32Array.of(7, -7, 2 ** 31 - 1, -(2 ** 31)),
      new Int32Array(4),
      0.5,
      1,
    );
    expect([...new Int32Array(i32.buffer)]).toEqual([3, -3, 1073741823, -1073741824]);
    const i32Ends = mixed(
      "int32",
      Int32Array.of(2 ** 31 - 1, -(2 ** 31), 0),
      new Int32Array(3),
      2,
      1,
    );
    expect([...new Int32Array(i32Ends.buffer)]).toEqual([2 ** 31 - 1, -(2 ** 31), 0]);
    const u32 = mixed("uint32", Uint32Array.of(2 ** 32 - 1, 5, 3), Uint32Array.of(1, 9, 0), 1, -1);
    expect([...new Uint32Array(u32.buffer)]).toEqual([2 ** 32 - 2, 0, 3]);
    const i64 = mixed(
      "int64",
      BigInt64Array.of(2n ** 63n - 1n, -9n),
      BigInt64Array.of(0n, 1n),
      1,
      0.5,
    );
    expect([...new BigInt64Array(i64.buffer)]).toEqual([2n ** 63n - 1n, -8n]);
    const u64 = mixed("uint64", BigUint64Array.of(2n ** 63n, 1n), BigUint64Array.of(0n, 2n), 2, -1);
    expect([...new BigUint64Array(u64.buffer)]).toEqual([2n ** 64n - 1n, 0n]);
  });

  test("a NaN becomes 0 in an integer mix", () => {
    for (const dtype of ["int32", "uint32"] as const) {
      const bytes = mixed(dtype, Uint32Array.of(5, 6, 7), Uint32Array.of(1, 2, 3), Number.NaN, 1);
      expect([...bytes]).toEqual(new Array(12).fill(0));
    }
    const bytes = mixed("int64", BigInt64Array.of(5n), BigInt64Array.of(1n), Infinity, -Infinity);
    expect([...bytes]).toEqual(new Array(8).fill(0));
  });
});

describe.each(["int32", "uint32", "int64", "uint64"] as const)("add of %s", (dtype) => {
  const is64 = dtype.endsWith("64");
  const add = is64 ? kernels.addI64 : kernels.addI32;
  const wrap = dtype.startsWith("u") ? BigInt.asUintN : BigInt.asIntN;

  const difference = (n: number, from: number): number => {
    const next = words(from);
    const target = trickyData(dtype, n, next);
    const source = trickyData(dtype, n, next);
    const actual = runInMemory(memory, [target, source], ([t = 0, s = 0]) => add(t, s, n));
    const sources = Array.from<number | bigint, bigint>(source, BigInt);
    const expected = Array.from<number | bigint, bigint>(target, (x, at) =>
      wrap(is64 ? 64 : 32, BigInt(x) + (sources[at] ?? 0n)),
    );
    return firstDifference(actual, integers(dtype, expected));
  };

  test.each(SIZES)("%i elements wrap around", (n) => {
    expect(difference(n, n + 1)).toBe(-1);
  });

  test("any elements", () => {
    fc.assert(
      fc.property(seed, length, (from, n) => {
        expect(difference(n, from)).toBe(-1);
      }),
    );
  });
});

describe.each(["float32", "float64"] as const)("finite of %s", (dtype) => {
  const finite = dtype === "float32" ? kernels.finiteF32 : kernels.finiteF64;
  const check = (data: TensorData): number => {
    let result = -1;
    runInMemory(memory, [data], ([pointer = 0]) => {
      result = finite(pointer, data.length);
    });
    return result;
  };

  test("one element that is not finite is found wherever it lies", () => {
    const largest = dtype === "float32" ? 3.4028234663852886e38 : Number.MAX_VALUE;
    for (const n of [0, 1, 2, 3, 4, 5, 7, 8, 9, 17, 35]) {
      const data = dtype === "float32" ? new Float32Array(n) : new Float64Array(n);
      data.fill(largest).fill(-largest, 0, n / 2);
      expect(check(data)).toBe(1);
      for (let at = 0; at < n; at++) {
        for (const wrong of [Infinity, -Infinity, Number.NaN]) {
          const broken = data.slice();
          broken[at] = wrong;
          expect(check(broken), `${wrong} at ${at} of ${n}`).toBe(0);
        }
      }
    }
  });

  test("any elements", () => {
    fc.assert(
      fc.property(seed, length, (from, n) => {
        const data = trickyData(dtype, n, words(from));
        expect(check(data)).toBe(numbers(data).every(Number.isFinite) ? 1 : 0);
      }),
      { numRuns: 300 },
    );
  });

  test("a large block", () => {
    const data =
      dtype === "float32" ? new Float32Array(2 ** 20 + 1) : new Float64Array(2 ** 20 + 1);
    expect(check(data)).toBe(1);
    data[2 ** 20] = Number.NaN;
    expect(check(data)).toBe(0);
  });
});

describe.each([
  ["bfloat16", "finiteBf16", 0x7f80],
  ["float16", "finiteF16", 0x7c00],
] as const)("finite of %s", (_encoding, kernel, infinity) => {
  test("one element that is not finite is found wherever it lies", () => {
    for (const n of [0, 1, 7, 8, 15, 16, 17, 31, 33, 50]) {
      // One element off a vector: they need no alignment.
      const pointer = memory.scratch + 2;
      const { buffer, byteOffset } = memory.bytes(pointer, n * 2);
      const halves = new Uint16Array(buffer, byteOffset, n);
      halves.fill(infinity - 1).fill(0x8000 | (infinity - 1), 0, n / 2);
      expect(kernels[kernel](pointer, n)).toBe(1);
      for (let at = 0; at < n; at++) {
        for (const wrong of [infinity, 0x8000 | infinity, infinity + 1, 0xffff]) {
          const [before] = halves.subarray(at, at + 1);
          halves[at] = wrong;
          expect(kernels[kernel](pointer, n), `${wrong} at ${at} of ${n}`).toBe(0);
          halves[at] = before ?? 0;
        }
      }
    }
  });
});

describe.each(["float32", "float64"] as const)("canonical of %s", (dtype) => {
  const canonical = dtype === "float32" ? kernels.canonicalF32 : kernels.canonicalF64;

  test.each(SIZES)("%i elements", (n) => {
    const data = trickyData(dtype, n, words(n + 1));
    const actual = runInMemory(memory, [data], ([pointer = 0]) => canonical(pointer, n));
    expect(firstDifference(actual, floats(dtype, numbers(data)))).toBe(-1);
  });
});

/** Elements of any size with both zeros and denormals, but no NaN. */
function orderedData(dtype: FloatDtype, n: number, seedOf: number): Float32Array | Float64Array {
  const data = numbers(trickyData(dtype, n, words(seedOf))).map((x) => (Number.isNaN(x) ? 0 : x));
  return dtype === "float32" ? Float32Array.from(data) : Float64Array.from(data);
}

describe.each(["float32", "float64"] as const)("order of %s", (dtype) => {
  const order = dtype === "float32" ? kernels.orderF32 : kernels.orderF64;

  test.each(SIZES)("%i elements", (n) => {
    const [a, b] = [orderedData(dtype, n, n + 1), orderedData(dtype, n, n + 2)];
    const [least, most] = runAllInMemory(memory, [a, b], ([p = 0, q = 0]) => order(p, q, n));
    const pairs = [...a].map((x, at) => [Math.min(x, b[at] ?? 0), Math.max(x, b[at] ?? 0)]);
    for (const [side, bytes] of [least, most].entries()) {
      const expected = floats(
        dtype,
        pairs.map((pair) => pair[side] ?? 0),
      );
      expect(firstDifference(bytes ?? new Uint8Array(), expected)).toBe(-1);
    }
  });
});

describe.each(["float32", "float64"] as const)("distance of %s", (dtype) => {
  const distance = dtype === "float32" ? kernels.distanceF32 : kernels.distanceF64;

  test.each(SIZES)("%i elements", (n) => {
    // Whole numbers, whose squares and sums are exact in any order.
    const [a, b] = [1, 2].map((step) => {
      const values = Array.from({ length: n }, (_, at) => ((at * 37 * step) % 101) - 50);
      return dtype === "float32" ? Float32Array.from(values) : Float64Array.from(values);
    });
    if (a === undefined || b === undefined) throw new Error("no operands");
    let found = Number.NaN;
    runInMemory(memory, [a, b], ([p = 0, q = 0]) => {
      found = distance(p, q, n);
    });
    expect(found).toBe([...a].reduce((sum, x, at) => sum + (x - (b[at] ?? 0)) ** 2, 0));
  });
});
