// Proves that a history folded with changes that change nothing is the real one; that what is left out is as
// if it had never been sent; and that another learning rate or a clipped norm moves values as it should.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Shard } from "../../../src/actors/fold/shard.ts";
import { viewElements } from "../../../src/history/compare-models.ts";
import { type FoldChanges, foldWhatIf } from "../../../src/history/what-if.ts";

import { l2Norm, toNumbers } from "../../../src/protocol/index.ts";
import { SHARD, SUBJECTS } from "../../actors/fold/journal-writer.ts";
import type { FoldedHistory } from "../folded-history.ts";
import { type Act, historyOf, type Training, trainings } from "../written-training.ts";

const { signal } = new AbortController();
const NOTHING: FoldChanges = { withoutTrainers: [], withoutRecords: [] };

function fold(history: Pick<FoldedHistory, "own">, changes: Partial<FoldChanges>, from?: number) {
  return foldWhatIf(
    history.own,
    { generation: 1, seq: history.own.lastSeq },
    {
      ...{ subjects: SUBJECTS, signal, changes: { ...NOTHING, ...changes } },
      ...(from === undefined ? {} : { from: { generation: 1, seq: from } }),
    },
  );
}

function valuesOf(shard: Shard | undefined, parameter = "w"): number[] {
  const block = shard?.block(parameter, 0);
  if (block === undefined) return [];
  return Array.from(toNumbers(block.dtype, viewElements(block.dtype, block.values())), Number);
}

/** Gradients of both trainers, all of the same elements. */
function gradients(
  trainers: readonly ("alice" | "bob")[],
  kind: "gradient" | "batch" = "gradient",
  { encoding, dtype = "float32" }: Pick<Act, "encoding"> & Pick<Training, "dtype"> = {},
): Training {
  const acts = trainers.map((trainer) => {
    return { trainer, parameter: "w", kind, values: [3, 0, 0, 4, 0, 0], encoding } as const;
  });
  return { mode: "async", optimizer: "sgd", dtype, acts };
}

test("with nothing changed it is the real state", async () => {
  await fc.assert(
    fc.asyncProperty(trainings, fc.nat(), async (training, at) => {
      const history = historyOf(training);
      history.own.snapshot(at % history.own.lastSeq);
      const { shard, counts } = await fold(history, {}, at % history.own.lastSeq);
      expect(shard.digest()).toBe(history.own.folded(history.own.lastSeq).digest());
      expect(counts).toEqual({ leftOut: 0, changed: 0 });
    }),
    { numRuns: 60 },
  );
});

test("is not compared with what was folded, but the records before it are", async () => {
  const { own } = historyOf(gradients(["bob", "alice", "bob", "alice"]));
  own.watermarkSeq = own.lastSeq;
  const withoutBob = { withoutTrainers: ["bob"] };
  const { counts } = await fold({ own }, withoutBob);
  expect(counts.leftOut).toBe(2);
  const start = own.lastSeq - 2;
  own.snapshot(start);
  own.damageNewestPiece();
  own.changed.set(start - 1, own.written(start));
  await expect(fold({ own }, withoutBob, start)).rejects.toMatchObject({
    code: "JOURNAL_DAMAGED",
    details: { seq: start - 1 },
  });
});

describe("left out", () => {
  test("a trainer's updates are as if they had never been sent", async () => {
    await fc.assert(
      fc.asyncProperty(trainings, async (training) => {
        const { shard } = await fold(historyOf(training), { withoutTrainers: ["bob"] });
        const acts = training.acts.filter(
          ({ trainer, kind }) => trainer === "alice" || kind === "clock",
        );
        const without = historyOf({ ...training, acts }).own;
        const expected = without.folded(without.lastSeq);
        for (const parameter of ["w", "b"]) {
          expect(valuesOf(shard, parameter)).toEqual(valuesOf(expected, parameter));
        }
      }),
      { numRuns: 60 },
    );
  });

  test("the trainer who initialized leaves its parameters", async () => {
    const history = historyOf(gradients(["alice", "bob"]));
    const { shard, counts } = await fold(history, { withoutTrainers: ["alice"] });
    expect(valuesOf(shard)[0]).toBeCloseTo(1 - 0.1 * 3, 6);
    expect(counts.leftOut).toBe(1);
  });

  test("one record, and only after the point from which on is changed", async () => {
    const history = historyOf(gradients(["alice", "bob", "alice"]));
    const { lastSeq } = history.own;
    const withoutRecords = [{ shard: SHARD, generation: 1, seq: lastSeq }];
    const { shard, counts } = await fold(history, { withoutRecords });
    expect(counts).toEqual({ leftOut: 1, changed: 0 });
    expect(valuesOf(shard)[3]).toBeCloseTo(1 - 0.1 * 2 * 4, 6);
    expect((await fold(history, { withoutRecords }, lastSeq)).counts.leftOut).toBe(0);
    const ofOther = withoutRecords.map((record) => ({ ...record, shard: 0 }));
    expect((await fold(history, { withoutRecords: ofOther })).counts.leftOut).toBe(0);
  });
});

describe.each([
  ["gradient", "float32", undefined, 5],
  ["batch", "float32", undefined, 5],
  ["gradient", "float32", "int8", 5],
  ["batch", "float32", "int8", 5],
  ["gradient", "float32", "e3m0", 5],
  ["batch", "float32", "e3m0", 5],
  ["gradient", "bfloat16", undefined, 2],
  ["batch", "bfloat16", undefined, 2],
  ["gradient", "float16", undefined, 2],
  ["batch", "float16", undefined, 2],
] as const)("changed in a %s of %s in the encoding %s", (kind, dtype, encoding, digits) => {
  const made = (): FoldedHistory => historyOf(gradients(["alice"], kind, { encoding, dtype }));

  test("the learning rate scales a step of SGD", async () => {
    const { shard, counts } = await fold(made(), {
      learningRate: 0.5,
    });
    expect(valuesOf(shard)[3]).toBeCloseTo(1 - 0.5 * 4, digits);
    expect(counts).toEqual({ leftOut: 0, changed: 1 });
  });

  test("a norm above the limit is scaled down to it, one below stays", async () => {
    const history = made();
    const clipped = await fold(history, { clipNorm: 2 });
    const moved = valuesOf(clipped.shard).map((value) => value - 1);
    expect(l2Norm(Float64Array.from(moved))).toBeCloseTo(0.1 * 2, digits);
    expect(clipped.counts.changed).toBe(1);
    const { shard, counts } = await fold(history, { clipNorm: 5.7 });
    expect(counts.changed).toBe(0);
    expect(shard.digest()).toBe(history.own.folded(history.own.lastSeq).digest());
  });
});
