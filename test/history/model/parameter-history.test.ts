// Proves that the samples of a parameter are what its values were, in random trainings, and that their number is
// bounded; and that a summary of a model counts its values, and says how they differ from those of another.
import fc from "fast-check";
import { expect, test } from "vitest";
import { viewElements } from "../../../src/history/compare-models.ts";
import { LocalReplayer, replayModel } from "../../../src/history/replay/replayer.ts";
import {
  changesBetween,
  HISTOGRAM_BARS,
  summarizeModel,
} from "../../../src/history/reports/model-summary.ts";
import { parameterHistory } from "../../../src/history/reports/parameter-history.ts";
import { toNumbers } from "../../../src/protocol/encoding/half-floats.ts";
import { failureOf } from "../failure.ts";
import { historyOf, type Training, trainings } from "../written-training.ts";

const { signal } = new AbortController();

function norm(values: readonly number[]): number {
  return Math.sqrt(values.reduce((sum, value) => sum + value * value, 0));
}

test("samples are the values that a parameter had after the records that changed it", async () => {
  await fc.assert(
    fc.asyncProperty(trainings, async (training) => {
      const history = historyOf(training);
      const expected = new Map<number, readonly number[]>();
      let version = 0;
      for (const shard of history.own.following()) {
        const block = shard.block("w", 0);
        if (block === undefined || block.version === version) continue;
        version = block.version;
        const { dtype } = block;
        const values = Array.from(toNumbers(dtype, viewElements(dtype, block.values())), Number);
        expected.set(history.own.timeOf(shard.seq), values);
      }
      const until = history.cut(history.own.lastSeq);
      const samples = await parameterHistory(history, "w", until, signal);
      expect(samples.map(({ timeMs }) => timeMs)).toEqual([...expected.keys()]);
      for (const sample of samples) {
        const finite = (expected.get(sample.timeMs) ?? []).filter(Number.isFinite);
        expect(sample.norm).toBeCloseTo(norm(finite), 9);
        // A measurement has no negative zero.
        const end = (of: typeof Math.min) => (finite.length === 0 ? undefined : of(...finite) + 0);
        expect(sample.min).toBe(end(Math.min));
        expect(sample.max).toBe(end(Math.max));
      }
    }),
    { numRuns: 40 },
  );
});

function long(updates: number, dtype: Training["dtype"] = "float32"): Training {
  const values = [1, 2, 3, 4, 5, 6];
  const acts = Array.from({ length: updates }, () => {
    return { trainer: "alice", parameter: "w", kind: "gradient", values } as const;
  });
  return { mode: "async", optimizer: "sgd", dtype, acts };
}

test("of many changes fewer are sampled, the last one always", async () => {
  const history = historyOf(long(1000));
  const until = history.cut(history.own.lastSeq);
  const samples = await parameterHistory(history, "w", until, signal);
  expect(samples.length).toBeGreaterThan(100);
  expect(samples.length).toBeLessThanOrEqual(257);
  expect(samples.at(-1)?.timeMs).toBe(history.own.timeOf(history.own.lastSeq));
});

test("a parameter that is not there", async () => {
  const history = historyOf(long(1));
  const until = history.cut(history.own.lastSeq);
  expect(await failureOf(parameterHistory(history, "v", until, signal))).toMatchObject({
    code: "UNKNOWN_PARAMETER",
  });
});

test.each([
  ["float32", 5],
  ["bfloat16", 1],
  ["float16", 2],
] as const)(
  "a summary of %s has norms, ends, counts, and the changes since",
  async (dtype, digits) => {
    const history = historyOf(long(3, dtype));
    const replayer = new LocalReplayer(history, signal);
    const last = history.own.lastSeq;
    const model = await replayModel(replayer, history.cut(last));
    const found = [];
    for await (const summary of summarizeModel(model, signal)) found.push(summary);
    expect(found.map(({ name }) => name)).toEqual(["b", "w"]);
    const [b, w] = found;
    // All values of b are 1: one bar has them.
    expect([b?.min, b?.max, b?.histogram[0]]).toEqual([1, 1, 6]);
    const { data } = await model.tensor("w");
    const values = Array.from(toNumbers(dtype, data), Number);
    expect(w?.norm).toBeCloseTo(norm(values), 6);
    expect([w?.min, w?.max, w?.nonFinite]).toEqual([Math.min(...values), Math.max(...values), 0]);
    expect(w?.histogram).toHaveLength(HISTOGRAM_BARS);
    expect(w?.histogram.reduce((sum, count) => sum + count, 0)).toBe(6);
    expect([w?.histogram[0], w?.histogram.at(-1)]).toEqual([1, 1]);

    const earlier = await replayModel(replayer, history.cut(last - 1));
    expect(await changesBetween(earlier, model, signal)).toEqual([
      { name: "b", differing: 0, largest: 0, mean: 0 },
      {
        name: "w",
        differing: 6,
        largest: expect.closeTo(0.6, digits),
        mean: expect.closeTo(0.35, digits),
      },
    ]);
  },
);
