import fc from "fast-check";
import { OPTIMIZERS, type ParameterSettings } from "../../../src/protocol/index.ts";

const finite = fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e6, max: 1e6 });
const positive = fc.double({ noNaN: true, min: 1e-6, max: 1e6 });
const count = fc.integer({ min: 1, max: 1_000_000 });
const flag = fc.boolean();

const schedule: fc.Arbitrary<Exclude<ParameterSettings["learningRate"], undefined>> = fc.oneof(
  finite,
  fc.record({ schedule: fc.constant("linear" as const), rate: finite, a: finite, b: finite }),
  fc.record({
    schedule: fc.constantFrom("polynomial", "exponential", "discrete-exponential"),
    rate: finite,
    a: positive,
    b: positive,
    warmup: fc.record({ steps: count }),
  }),
  fc.record({ schedule: fc.constant("cosine" as const), rate: finite, min: finite, steps: count }),
  fc
    .tuple(finite, fc.uniqueArray(count, { maxLength: 31 }))
    .map(([rate, froms]): { schedule: "step"; table: [number, number][] } => ({
      schedule: "step",
      table: [
        [0, rate],
        ...froms
          .toSorted((a, b) => a - b)
          .map((from, i): [number, number] => [from, rate / (i + 2)]),
      ],
    })),
);

/** Any settings that are valid, some entries left out; of the optimizers those without restrictions. */
export const anySettings: fc.Arbitrary<ParameterSettings> = fc.record(
  {
    optimizer: fc.constantFrom(...OPTIMIZERS.filter((name) => name !== "none" && name !== "ftrl")),
    learningRate: schedule,
    l1: positive,
    l2: positive,
    l2Mode: fc.constantFrom("coupled", "decoupled"),
    clipNorm: positive,
    clipValue: positive,
    gradientScale: finite,
    sparse: flag,
    static: flag,
    stalenessScaling: flag,
    allowNonFinite: flag,
    guard: fc.constant("off" as const),
  },
  { requiredKeys: [] },
);
