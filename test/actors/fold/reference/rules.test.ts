import { describe, expect, test } from "vitest";
import { Random } from "../../../../examples/digits/random.ts";
import {
  OPTIMIZERS,
  type Optimizer,
  type ParameterSettings,
} from "../../../../src/protocol/config/index.ts";
import type { Encoding } from "../../../../src/protocol/dtypes.ts";
import { encodeElements } from "../../../../src/protocol/encoding/encoding.ts";
import type { ReferenceBlock } from "./block.ts";
import { referenceDecodeAll } from "./encodings.ts";
import type { FloatData } from "./kernel-block.ts";
import {
  adoptKernels,
  type BlockPair,
  distance,
  elementsOf,
  FLOAT_DTYPES,
  normOf,
  pairOf,
} from "./pair.ts";
import { PRECISIONS } from "./real.ts";

// Proves that the kernels do what the optimizers' papers say: every rule, element type and encoding
// runs 1,000 steps on random gradients beside a reference in float64 that was written on its own.
// Each value and each slot must lie within the bound that the reference carries along for it (see
// Real): what all roundings so far can make together at most. This is checked for every step alone,
// from the kernels' own state on, and for the whole run.

const STEPS = 1_000;
const CHECK_EVERY = 100;
const ELEMENTS = 7;

/** The most that values may be off, in roundoffs (2^-23 for float32) of the largest value. */
interface Bound {
  /** After one step from values and slots that are right. */
  readonly step: number;
  /** After 1,000 steps. */
  readonly run: number;
}

/**
 * The worst cases of the running analysis for the gradients and settings below, rounded up. A step
 * rounds the difference of value and step, the step itself, and each of scaling, L2 and L1. The least
 * to expect of 1,000 such differences is 1,000. An error of the velocity of momentum acts
 * 1 / (1 − 0.9) times, and adadelta's steps depend on their own squares. ftrl makes the value anew
 * from z, which takes up what the difference of two near roots has lost; the analysis does not see
 * that z takes errors of the value back, and so its bound of the run says little: that of the step counts.
 */
const BOUNDS: Readonly<Record<Optimizer["name"], Bound>> = {
  none: { step: 20, run: 2_000 },
  sgd: { step: 3, run: 3_000 },
  momentum: { step: 3, run: 2_500 },
  nesterov: { step: 5, run: 2_500 },
  adagrad: { step: 3, run: 3_000 },
  adadelta: { step: 3, run: 5_000 },
  rmsprop: { step: 3, run: 3_000 },
  adam: { step: 5, run: 3_000 },
  adamw: { step: 5, run: 3_000 },
  amsgrad: { step: 5, run: 3_000 },
  ftrl: { step: 45, run: 450_000 },
};

/** Element types, and how gradients are written. */
interface Kind {
  readonly dtype: "float32" | "float64";
  readonly encoding?: Encoding;
}

const KINDS: readonly (Kind & { readonly name: string })[] = [
  { name: "float32", dtype: "float32" },
  { name: "float32 with bfloat16 gradients", dtype: "float32", encoding: "bfloat16" },
  { name: "float32 with float16 gradients", dtype: "float32", encoding: "float16" },
  { name: "float64", dtype: "float64" },
];

const PLAIN: ParameterSettings = { learningRate: 0.01 };

const COUPLED: ParameterSettings = {
  learningRate: { schedule: "polynomial", rate: 0.05, a: 0.01, b: 0.5, warmup: { steps: 50 } },
  l1: 1e-3,
  l2: 1e-3,
  l2Mode: "coupled",
  clipValue: 0.75,
  gradientScale: -0.5,
};

const DECOUPLED: ParameterSettings = {
  learningRate: { schedule: "cosine", rate: 0.02, min: 0.001, steps: 800 },
  l2: 0.05,
  l2Mode: "decoupled",
  clipNorm: 2,
  gradientScale: 1.5,
};

/** What a rule is tried with. */
function settingsOf(name: Optimizer["name"]): readonly ParameterSettings[] {
  switch (name) {
    case "none":
      return [
        { optimizer: name },
        { optimizer: name, clipNorm: 2, clipValue: 0.75, gradientScale: -0.01 },
      ];
    case "sgd":
    case "momentum":
    case "nesterov":
      return [PLAIN, COUPLED, DECOUPLED].map((settings) => ({ optimizer: name, ...settings }));
    case "ftrl":
      return [PLAIN, COUPLED].map((settings) => ({ optimizer: name, ...settings }));
    default:
      return [
        { optimizer: name, ...PLAIN },
        // Where a gradient is nearly all L2, the worst case of what it is divided by knows no bound
        // without a larger epsilon: errors of the value come back through the gradient.
        { optimizer: { name, epsilon: 0.01 }, ...COUPLED },
        { optimizer: name, ...DECOUPLED },
      ];
  }
}

/** Elements of several magnitudes, from 1e-5 to 10, with a zero now and then. */
function randomElements(dtype: "float32" | "float64", random: Random): FloatData {
  const numbers = Array.from({ length: ELEMENTS }, (_, i) =>
    random.below(20) === 0 ? 0 : random.normal() * 10 ** (1 - i),
  );
  return elementsOf(dtype, numbers);
}

/** Both after the same steps; `onStep` is called after each of them. */
function run(
  settings: ParameterSettings,
  { dtype, encoding }: Kind,
  onStep: (step: number, pair: BlockPair) => void,
  referenceSettings: ParameterSettings = settings,
): BlockPair {
  const random = new Random(ELEMENTS);
  const initial = randomElements(dtype, random);
  const pair = pairOf(settings, initial, referenceSettings);
  const { kernels, reference } = pair;
  for (let step = 1; step <= STEPS; step++) {
    const gradient = randomElements(dtype, random);
    // Every tenth step says its own learning rate.
    const learningRate = step % 10 === 0 ? { learningRate: 0.003 } : {};
    if (gradient instanceof Float32Array && encoding !== undefined) {
      const bytes = new Uint8Array(2 * ELEMENTS);
      encodeElements(encoding, gradient, bytes);
      const decoded = referenceDecodeAll(encoding, bytes);
      const input = { norm: normOf(decoded), ...learningRate };
      reference.push(decoded, input);
      kernels.push(bytes, input, encoding);
    } else {
      const input = { norm: normOf(gradient), ...learningRate };
      reference.push(gradient, input);
      kernels.push(gradient, input);
    }
    onStep(step, pair);
  }
  return pair;
}

/** The largest bound of a value, relative to the largest value. */
function relativeBound(reference: ReferenceBlock): number {
  const values = reference.column(0);
  const largest = Math.max(...values.map(({ value }) => Math.abs(value)));
  return Math.max(...values.map(({ error }) => error)) / largest;
}

describe.each(OPTIMIZERS)("%s", (optimizer) => {
  test.each(FLOAT_DTYPES)("makes each step right in %s", (dtype) => {
    for (const settings of settingsOf(optimizer)) {
      run(settings, { dtype }, (_, pair) => {
        expect(distance(pair)).toBeLessThanOrEqual(1);
        const roundoffs = relativeBound(pair.reference) / PRECISIONS[dtype].roundoff;
        expect(roundoffs).toBeLessThanOrEqual(BOUNDS[optimizer].step);
        adoptKernels(pair);
      });
    }
  });

  test.each(KINDS)("follows its reference to the end in $name", (kind) => {
    for (const settings of settingsOf(optimizer)) {
      const { reference } = run(settings, kind, (step, pair) => {
        if (step % CHECK_EVERY === 0 || step <= 3) expect(distance(pair)).toBeLessThanOrEqual(1);
      });
      const roundoffs = relativeBound(reference) / PRECISIONS[kind.dtype].roundoff;
      expect(roundoffs).toBeLessThanOrEqual(BOUNDS[optimizer].run);
    }
  });

  test("differs from itself with other numbers", () => {
    for (const settings of settingsOf(optimizer)) {
      const { gradientScale = 1 } = settings;
      const other = { ...settings, gradientScale: gradientScale * 1.01, clipValue: 0.7 };
      expect(distance(run(settings, { dtype: "float32" }, () => {}, other))).toBeGreaterThan(1);
    }
  });
});
