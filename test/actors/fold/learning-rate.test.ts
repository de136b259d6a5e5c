import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { learningRateAt } from "../../../src/actors/fold/update-rule.ts";
import { ShardMemory } from "../../../src/actors/kernel/shard-memory.ts";
import type { LearningRate } from "../../../src/protocol/config/index.ts";

// Schedules against values worked out by hand, the first updates and the edges of each; powers and
// cosines of the kernels against exact ones, and against Math to one unit in the last place.

const { kernels } = ShardMemory.create();

const TABLE: readonly [
  string,
  LearningRate,
  readonly (readonly [count: number, rate: number])[],
][] = [
  [
    "constant",
    { schedule: "constant", rate: 0.3 },
    [
      [1, 0.3],
      [1e9, 0.3],
    ],
  ],
  [
    "linear, held at b",
    { schedule: "linear", rate: 1, a: 0.125, b: 0.25 },
    [
      [1, 0.875],
      [2, 0.75],
      [6, 0.25],
      [7, 0.25],
      [1e6, 0.25],
    ],
  ],
  [
    "polynomial",
    { schedule: "polynomial", rate: 8, a: 1, b: 1 },
    [
      [1, 4],
      [3, 2],
      [7, 1],
      [15, 0.5],
    ],
  ],
  [
    "polynomial with a root",
    { schedule: "polynomial", rate: 1, a: 1, b: 0.5 },
    [
      [3, 0.5],
      [8, 1 / 3],
      [15, 0.25],
    ],
  ],
  [
    "exponential",
    { schedule: "exponential", rate: 1, a: 0.25, b: 2 },
    [
      [1, 0.5],
      [2, 0.25],
      [3, 0.125],
      [4, 0.0625],
    ],
  ],
  [
    "discrete exponential",
    { schedule: "discrete-exponential", rate: 1, a: 0.5, b: 2 },
    [
      [1, 1],
      [2, 0.5],
      [3, 0.5],
      [4, 0.25],
      [21, 2 ** -10],
    ],
  ],
  [
    "cosine",
    { schedule: "cosine", rate: 1, min: 0.5, steps: 6 },
    [
      [2, 0.875],
      [3, 0.75],
      [4, 0.625],
      [6, 0.5],
      [7, 0.5],
      [1e6, 0.5],
    ],
  ],
  [
    "step table",
    {
      schedule: "step",
      table: [
        [0, 1],
        [3, 0.5],
        [4, 0.125],
      ],
    },
    [
      [1, 1],
      [2, 1],
      [3, 0.5],
      [4, 0.125],
      [1e6, 0.125],
    ],
  ],
  [
    "warm-up from 0",
    { schedule: "constant", rate: 2, warmup: { steps: 4, from: 0 } },
    [
      [1, 0.5],
      [2, 1],
      [3, 1.5],
      [4, 2],
      [5, 2],
    ],
  ],
  [
    "warm-up of a falling rate",
    { schedule: "linear", rate: 1, a: 0.125, b: 0, warmup: { steps: 2, from: 0.5 } },
    [
      [1, 0.875 * 0.75],
      [2, 0.75],
      [3, 0.625],
    ],
  ],
];

describe.each(TABLE)("%s", (_name, schedule, rows) => {
  test.each(rows)("update %i: %f", (count, rate) => {
    expect(learningRateAt(kernels, schedule, count)).toBeCloseTo(rate, 14);
  });
});

describe("functions of the kernels", () => {
  test("powers of two are exact", () => {
    for (let n = -1000; n <= 1000; n++) expect(kernels.powF64(2, n)).toBe(2 ** n);
  });

  test("special powers", () => {
    expect(kernels.powF64(0.9, 0)).toBe(1);
    expect(kernels.powF64(0, 3)).toBe(0);
    expect(kernels.powF64(0.999, 1)).toBe(0.999);
    expect(kernels.powF64(0.9, 1e9)).toBe(0);
    expect(kernels.powF64(-1, 0.5)).toBeNaN();
  });

  test("powers and cosines lie within one unit in the last place of Math's", () => {
    const near = (actual: number, expected: number): void =>
      expect(Math.abs(actual - expected)).toBeLessThanOrEqual(
        Math.max(Math.abs(expected) * 2 ** -52, Number.MIN_VALUE),
      );
    fc.assert(
      fc.property(
        fc.double({ min: 1e-3, max: 10, noNaN: true }),
        fc.double({ min: -100, max: 100, noNaN: true }),
        fc.double({ min: 0, max: Math.PI, noNaN: true }),
        (base, exponent, angle) => {
          near(kernels.powF64(base, exponent), base ** exponent);
          near(kernels.cosF64(angle), Math.cos(angle));
        },
      ),
      { numRuns: 1000 },
    );
  });
});
