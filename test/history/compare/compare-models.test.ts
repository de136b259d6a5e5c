// Proves what is said of two models: which elements differ and by how much, whatever pieces they come in,
// that NaNs are equal and 64-bit integers keep their differences, and what only one of them has.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type ComparedTensor,
  compareModels,
  indicesOf,
  isEqual,
  joinSparse,
  type ParameterDifference,
} from "../../../src/history/compare-models.ts";

import { bytesOf, dtypeOf, type TensorData } from "../../../src/protocol/dtypes.ts";

const { signal } = new AbortController();

function tensor(name: string, data: TensorData, cuts: readonly number[] = []): ComparedTensor {
  const bytes = bytesOf(data);
  const ends = [...cuts, bytes.length]
    .map((cut) => Math.min(cut, bytes.length))
    .sort((a, b) => a - b);
  return {
    header: { name, dtype: dtypeOf(data), shape: [data.length] },
    chunks: async function* () {
      for (const [i, end] of ends.entries()) yield bytes.subarray(ends[i - 1] ?? 0, end);
    },
  };
}

async function compare(
  a: readonly ComparedTensor[],
  b: readonly ComparedTensor[],
): Promise<ParameterDifference[]> {
  const found: ParameterDifference[] = [];
  const show = (_: string, data: TensorData, i: number): string => String(data[i]);
  for await (const each of compareModels(a, b, { show, signal })) found.push(each);
  return found;
}

async function differenceOf(a: TensorData, b: TensorData) {
  const [found] = await compare([tensor("w", a)], [tensor("w", b)]);
  if (found?.kind !== "compared") throw new Error("not compared");
  return found.difference;
}

describe("two tensors", () => {
  test("differ where their elements do, however they are cut", async () => {
    const elements = fc.array(fc.double({ noNaN: true, min: -1e6, max: 1e6 }), {
      minLength: 1,
      maxLength: 50,
    });
    await fc.assert(
      fc.asyncProperty(elements, fc.array(fc.nat(400)), fc.nat(), async (values, cuts, at) => {
        const a = Float64Array.from(values);
        const b = a.slice();
        const place = at % a.length;
        b[place] = (b[place] ?? 0) + 1;
        const [found] = await compare([tensor("w", a, cuts)], [tensor("w", b)]);
        if (found?.kind !== "compared") throw new Error("not compared");
        const { differing, largest, mean, first } = found.difference;
        expect([differing, first?.element]).toEqual([1, place]);
        expect(largest).toBeCloseTo(1, 6);
        expect(mean).toBeCloseTo(1 / a.length, 6);
      }),
    );
  });

  test("longer than a piece are compared to their ends", async () => {
    const a = new Float32Array(600_000);
    const b = a.slice();
    b[599_999] = 2;
    expect(await differenceOf(a, b)).toMatchObject({ differing: 1, largest: 2, normB: 2 });
  });

  test("are equal in NaNs, and differ in the sign of a zero", async () => {
    const a = Float32Array.of(Number.NaN, 0, 1);
    expect((await differenceOf(a, a.slice())).differing).toBe(0);
    expect(await differenceOf(a, Float32Array.of(Number.NaN, -0, 1))).toMatchObject({
      differing: 1,
      largest: 0,
      first: { element: 1 },
    });
    expect((await differenceOf(a, Float32Array.of(0, 0, 1))).largest).toBeNaN();
  });

  test("of large 64-bit integers keep their difference", async () => {
    const a = BigInt64Array.of(2n ** 62n);
    expect((await differenceOf(a, BigInt64Array.of(2n ** 62n + 1n))).largest).toBe(1);
  });
});

describe("two models", () => {
  test("are distinguished by names, types and shapes", async () => {
    const [w, v] = [Float32Array.of(1), Float32Array.of(1, 2)];
    const found = await compare(
      [tensor("both", w), tensor("form", w), tensor("old", w)],
      [tensor("both", w), tensor("form", v), tensor("new", w)],
    );
    expect(found.map(({ name, kind }) => [name, kind])).toEqual([
      ["both", "compared"],
      ["form", "other-form"],
      ["new", "only-b"],
      ["old", "only-a"],
    ]);
    expect(found.map(isEqual)).toEqual([true, false, false, false]);
  });

  test("without parameters are equal", async () => {
    expect(await compare([], [])).toEqual([]);
    expect(joinSparse([tensor("w", Float32Array.of(1))])).toHaveLength(1);
  });
});

test("the place of an element has an index for each dimension", () => {
  expect(indicesOf(0, [])).toEqual([]);
  expect(indicesOf(5, [6])).toEqual([5]);
  expect(indicesOf(23, [2, 3, 4])).toEqual([1, 2, 3]);
});
