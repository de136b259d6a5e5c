// Proves that a mix of some rows and some elements of each changes these elements as a mix of the whole
// block does, and no other: random index sets and element types against plain TypeScript, also for
// encoded elements, for blocks that are cut inside a row, and for parts longer than a chunk.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Dtype, dtypeOf, type TensorData, viewData } from "../../../src/protocol/dtypes.ts";
import { decodeElements } from "../../../src/protocol/encoding/encoding.ts";
import { toNumbers } from "../../../src/protocol/encoding/half-floats.ts";
import type { PartIndex } from "../../../src/protocol/messages/parts.ts";
import { EXACT_MAX, fromNumbers, NUMBER_DTYPES } from "../../support/elements.ts";
import { anyPart, elementsOfPart } from "./arbitrary-parts.ts";
import { Folded } from "./folded.ts";
import { encoded } from "./journal-writer.ts";

function numbers(dtype: Dtype, length: number, seed: number): TensorData {
  const values = Array.from({ length }, (_, i) => ((i + 1) * 7919 + seed * 31) % EXACT_MAX);
  return fromNumbers(dtype, values);
}

/** `alpha · value + beta · piece` of small whole numbers, which every type computes exactly. */
function mixed(
  dtype: Dtype,
  data: TensorData,
  at: readonly number[],
  piece: TensorData,
  alpha: number,
  beta: number,
): TensorData {
  const [result, pieces] = [data, piece].map((each) => Array.from(toNumbers(dtype, each), Number));
  for (const [i, element] of at.entries()) {
    if (result) result[element] = alpha * (result[element] ?? 0) + beta * (pieces?.[i] ?? 0);
  }
  return fromNumbers(dtype, result ?? []);
}

/** The block's elements after a mix of a part of it. */
function afterMix(
  values: TensorData,
  place: { readonly shape: readonly number[]; readonly index?: number; readonly start?: number },
  part: PartIndex,
  piece: TensorData,
  form: { readonly dtype?: Dtype; readonly encoding?: "bfloat16" | "float16" } = {},
): TensorData {
  const folded = new Folded();
  const { dtype = dtypeOf(values), encoding } = form;
  const name = { index: place.index ?? 0, dtype };
  folded.journal.init(values, { ...place, dtype, count: values.length });
  const operation = { op: "mix", alpha: 2, beta: 3 } as const;
  folded.journal.push(piece, operation, { ...name, part, ...(encoding ? { encoding } : {}) });
  folded.apply();
  const bytes = folded.block("w", name.index).values().slice();
  return viewData(dtype, bytes.buffer, values.length);
}

describe.each(NUMBER_DTYPES)("%s", (dtype) => {
  test("changes the named elements only", () => {
    const cases = fc
      .record({ rows: fc.integer({ min: 1, max: 9 }), width: fc.integer({ min: 1, max: 9 }) })
      .chain(({ rows, width }) =>
        fc.tuple(fc.constant([rows, width] as const), anyPart(rows, width)),
      );
    fc.assert(
      fc.property(cases, ([[rows, width], part]) => {
        const values = numbers(dtype, rows * width, 1);
        const at = elementsOfPart(part, width);
        const piece = numbers(dtype, at.length, 2);
        const after = afterMix(values, { shape: [rows, width] }, part, piece, { dtype });
        expect(after).toEqual(mixed(dtype, values, at, piece, 2, 3));
      }),
      { numRuns: 25 },
    );
  });

  test("of more elements than a chunk has continues where the previous chunk ended", () => {
    const [rows, width] = [5, 70_001];
    const values = numbers(dtype, rows * width, 1);
    const inner = Uint32Array.from({ length: 40_000 }, (_, i) => (i < 30_000 ? i : 2 * i - 29_999));
    const part = { rows: Uint32Array.of(0, 1, 4), inner };
    const at = elementsOfPart(part, width);
    const piece = numbers(dtype, at.length, 2);
    const after = afterMix(values, { shape: [rows, width] }, part, piece, { dtype });
    const wanted = mixed(dtype, values, at, piece, 2, 3);
    // The matcher would take a second for as many elements.
    expect(after.findIndex((value, i) => value !== wanted[i])).toBe(-1);
    expect(after).toHaveLength(wanted.length);
  });
});

test.each(["bfloat16", "float16"] as const)("elements in %s are widened first", (encoding) => {
  const values = Float32Array.of(1, 2, 3, 4, 5, 6);
  const part = { rows: Uint32Array.of(0, 1), inner: Uint32Array.of(0, 2) };
  const piece = Float32Array.of(0.1, 1 / 3, -7.7, 1e-3);
  const widened = new Float32Array(4);
  decodeElements(encoding, encoded(encoding, piece), widened);
  const after = afterMix(values, { shape: [2, 3] }, part, piece, { encoding });
  const { fround } = Math;
  const wanted = Float32Array.from(values);
  for (const [i, element] of [0, 2, 3, 5].entries()) {
    wanted[element] = fround(2 * (values[element] ?? 0)) + fround(3 * (widened[i] ?? 0));
  }
  expect(after).toEqual(wanted);
});

test("a block that is cut inside a row is one row", () => {
  const values = Float32Array.of(1, 2, 3, 4);
  const part = { rows: Uint32Array.of(0), inner: Uint32Array.of(1, 3) };
  const place = { shape: [2, 6], index: 1, start: 4 };
  expect(afterMix(values, place, part, Float32Array.of(10, 20))).toEqual(
    Float32Array.of(1, 34, 3, 68),
  );
});
