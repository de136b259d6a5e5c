import type { LearningRate, ParameterConfig } from "../../protocol/config/index.ts";
import type { Kernels } from "../kernel/kernels.ts";
import type { ComputedDtype } from "./elements.ts";
import {
  AdadeltaRule,
  AdagradRule,
  AdamRule,
  type FloatDtype,
  FtrlRule,
  MomentumRule,
  NoneRule,
  PenalizedRule,
  RmspropRule,
  SgdRule,
  type UpdateRule,
} from "./optimizers.ts";

export type { FloatDtype, UpdateRule } from "./optimizers.ts";

/** Slots beside the values, each of as many elements of the type that they are computed in, zero at first. */
const SLOTS: Readonly<Record<ParameterConfig["optimizer"]["name"], number>> = {
  none: 0,
  sgd: 0,
  momentum: 1,
  nesterov: 1,
  adagrad: 1,
  rmsprop: 1,
  adadelta: 2,
  adam: 2,
  adamw: 2,
  amsgrad: 3,
  ftrl: 2,
};

/**
 * Bytes of a gradient that a rule gets at a time: the whole scratch of a shard's memory. Measured with chunks of 4 to
 * 256 KiB that are staged there, on parameters of 1 and 64 MiB, Adam, AMSGrad and SGD were fastest with the largest
 * chunk; with L1 and L2 as well, the sizes differed little.
 */
export const UPDATE_CHUNK_BYTES: number = 256 * 1024;

/** Returns how many slots of the optimizer a block with this configuration has. */
export function slotCount(config: ParameterConfig): number {
  return SLOTS[config.optimizer.name];
}

/**
 * Creates the rule of a configuration with its L1 and L2, for blocks in the memory of `kernels`. The rule holds the
 * coefficients of one update and no state of a block.
 */
export function updateRule(
  kernels: Kernels,
  config: ParameterConfig,
  dtype: FloatDtype,
): UpdateRule {
  const { optimizer, l1, l2 } = config;
  if (optimizer.name === "none") return new NoneRule(kernels, dtype);
  if (optimizer.name === "ftrl") return new FtrlRule(kernels, dtype, optimizer.beta, l1, l2);
  // For plain descent lr·(g + l2·p) and lr·g + lr·l2·p are the same.
  const isCoupled = config.l2Mode === "coupled" || optimizer.name === "sgd";
  const rule = ruleOf(kernels, optimizer, dtype, isCoupled ? 0 : l2);
  const coupled = isCoupled ? l2 : 0;
  return coupled === 0 && l1 === 0 ? rule : new PenalizedRule(kernels, dtype, rule, l1, coupled);
}

function ruleOf(
  kernels: Kernels,
  optimizer: Exclude<ParameterConfig["optimizer"], { name: "none" | "ftrl" }>,
  dtype: FloatDtype,
  l2: number,
): UpdateRule {
  switch (optimizer.name) {
    case "sgd":
      return new SgdRule(kernels, dtype);
    case "momentum":
    case "nesterov":
      return new MomentumRule(kernels, dtype, optimizer.name, optimizer.momentum, l2);
    case "adagrad":
      return new AdagradRule(kernels, dtype, optimizer.epsilon, l2);
    case "rmsprop":
      return new RmspropRule(kernels, dtype, optimizer.rho, optimizer.epsilon, l2);
    case "adadelta":
      return new AdadeltaRule(kernels, dtype, optimizer.rho, optimizer.epsilon, l2);
    case "adam":
    case "adamw":
    case "amsgrad":
      return new AdamRule(kernels, dtype, optimizer, l2);
  }
}

const SCALE = { float32: "scaleF32", float64: "scaleF64" } as const;
const CLIP = { float32: "clipF32", float64: "clipF64" } as const;
const ADD = {
  int32: "addI32",
  uint32: "addI32",
  int64: "addI64",
  uint64: "addI64",
  float32: "addF32",
  float64: "addF64",
  uint8: "addI8",
  int8: "addI8",
} as const satisfies Record<Exclude<ComputedDtype, "bool">, keyof Kernels>;

/** Types whose elements can be computed with. */
export type NumberDtype = keyof typeof ADD;

/**
 * Computes the factor of a gradient before its elements are clipped: `gradientScale` times `clip`, by which a guard has
 * the gradient multiplied, reduced so that the norm is at most `clipNorm`. `norm` is the L2 norm of the trainer's whole
 * gradient before scaling; it is known where there is a `clipNorm`. The factor is 0 for an infinite norm; a NaN norm does
 * not reduce it.
 */
export function gradientScale(config: ParameterConfig, norm: number | undefined, clip = 1): number {
  const { clipNorm, gradientScale } = config;
  const scale = gradientScale * clip;
  if (clipNorm === undefined || norm === undefined) return scale;
  // The guard has judged a block, while the norm is that of the whole tensor, of which other blocks may stay as they are.
  const scaled = norm * Math.abs(gradientScale);
  if (!(scaled > clipNorm)) return scale;
  return clipNorm / scaled < clip ? gradientScale * (clipNorm / scaled) : scale;
}

/** Multiplies the `n` elements of a gradient by `scale`, then clips them to ±`clipValue`, in place. */
export function shapeGradient(
  kernels: Kernels,
  dtype: "float32" | "float64",
  gradient: number,
  n: number,
  scale: number,
  clipValue: number | undefined,
): void {
  if (scale !== 1) kernels[SCALE[dtype]](gradient, n, scale);
  if (clipValue !== undefined) kernels[CLIP[dtype]](gradient, n, clipValue);
}

/** `accumulator += gradient` over `n` elements; integers wrap around. */
export function accumulate(
  kernels: Kernels,
  dtype: NumberDtype,
  accumulator: number,
  gradient: number,
  n: number,
): void {
  kernels[ADD[dtype]](accumulator, gradient, n);
}

/**
 * Computes the learning rate of update `count`, which is 1 for the first; the formulas are at {@link LearningRate}.
 * The result has the same bits on every machine: powers and cosines come from the kernels.
 */
export function learningRateAt(kernels: Kernels, schedule: LearningRate, count: number): number {
  const rate = scheduledRate(kernels, schedule, count);
  const { warmup } = schedule;
  if (warmup === undefined || count >= warmup.steps) return rate;
  return rate * (warmup.from + ((1 - warmup.from) * count) / warmup.steps);
}

/** Whether {@link learningRateAt} is the same for every update. */
export function isConstantRate({ schedule, warmup }: LearningRate): boolean {
  return schedule === "constant" && warmup === undefined;
}

function scheduledRate(kernels: Kernels, schedule: LearningRate, count: number): number {
  switch (schedule.schedule) {
    case "constant":
      return schedule.rate;
    case "linear":
      return Math.max(schedule.rate - schedule.a * count, schedule.b);
    case "polynomial":
      return schedule.rate * kernels.powF64(1 + schedule.a * count, -schedule.b);
    case "exponential":
      return schedule.rate * kernels.powF64(schedule.a, count / schedule.b);
    case "discrete-exponential":
      return schedule.rate * kernels.powF64(schedule.a, Math.floor(count / schedule.b));
    case "cosine": {
      const { rate, min, steps } = schedule;
      const wave = kernels.cosF64((Math.PI * Math.min(count, steps)) / steps);
      return min + ((rate - min) * (1 + wave)) / 2;
    }
    case "step": {
      // The first row begins at 0, so there is always a row.
      const row = schedule.table.findLast(([from]) => from <= count);
      return row?.[1] ?? Number.NaN;
    }
  }
}
