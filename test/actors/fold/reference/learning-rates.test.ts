import { describe, expect, test } from "vitest";
import { learningRateAt } from "../../../../src/actors/fold/update-rule.ts";
import { ShardMemory } from "../../../../src/actors/kernel/shard-memory.ts";
import { type LearningRateInput, toConfig } from "../../../../src/protocol/config/index.ts";
import { referenceRate } from "./learning-rates.ts";

// Proves every learning-rate schedule against its formula, written on its own: the first updates, the
// places where a schedule changes, and far beyond.

const { kernels } = ShardMemory.create();

const COUNTS = [
  ...Array.from({ length: 300 }, (_, i) => i + 1),
  999,
  1_000,
  1_001,
  65_536,
  1_000_003,
  2 ** 31,
  2 ** 40,
];

const SCHEDULES: readonly Exclude<LearningRateInput, number>[] = [
  { rate: 0.1 },
  { schedule: "linear", rate: 0.1, a: 1e-4, b: 0.01 },
  { schedule: "linear", rate: 0.1, a: -1e-6 },
  { schedule: "polynomial", rate: 0.1, a: 0.01, b: 0.5 },
  { schedule: "polynomial", rate: 0.1, a: 0.3, b: -0.25 },
  { schedule: "exponential", rate: 0.1, a: 0.96, b: 100 },
  { schedule: "exponential", rate: 1e-9, a: 1.0001, b: 3.5e9 },
  { schedule: "discrete-exponential", rate: 0.1, a: 0.5, b: 100 },
  { schedule: "discrete-exponential", rate: 0.1, a: 0.9, b: 33.3 },
  { schedule: "cosine", rate: 0.1, steps: 1_000 },
  { schedule: "cosine", rate: 0.1, min: 0.01, steps: 7 },
  {
    schedule: "step",
    table: [
      [0, 0.1],
      [2, 0.05],
      [100, 0.01],
      [1_000, 0],
    ],
  },
];

const WARMUPS = [undefined, { steps: 1 }, { steps: 200 }, { steps: 1_000, from: 0.1 }];

/**
 * Relative to the largest number that the formula handles: a power is right to 2^-51 and the errors of
 * its exponent are multiplied by its logarithm, at most 1,000 here; cosines cancel against 1.
 */
const TOLERANCE = 1e-12;

describe.each(SCHEDULES)("$schedule of rate $rate", (learningRate) => {
  test.each(WARMUPS)("follows its formula with warm-up %o", (warmup) => {
    const input = warmup === undefined ? learningRate : { ...learningRate, warmup };
    const { learningRate: schedule } = toConfig({ learningRate: input });
    if (schedule === undefined) throw new Error("expected a schedule");
    for (const count of COUNTS) {
      const expected = referenceRate(schedule, count);
      const apart = Math.abs(learningRateAt(kernels, schedule, count) - expected);
      expect(apart, `update ${count}`).toBeLessThanOrEqual(TOLERANCE * Math.max(expected, 1e-3));
    }
  });
});

test("a step table and a constant give exactly their rates", () => {
  const { learningRate } = toConfig({
    learningRate: {
      schedule: "step",
      table: [
        [0, 0.3],
        [5, 0.2],
        [6, 0.1],
      ],
    },
  });
  if (learningRate === undefined) throw new Error("expected a schedule");
  const rates = [1, 4, 5, 6, 7].map((count) => learningRateAt(kernels, learningRate, count));
  expect(rates).toEqual([0.3, 0.3, 0.2, 0.1, 0.1]);
});
