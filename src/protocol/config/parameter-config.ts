import type { LearningRate, LearningRateInput } from "./learning-rate.ts";
import type { Optimizer, OptimizerInput } from "./optimizer.ts";

/**
 * How a parameter is updated; fixed when the parameter is initialized. This is the normalized form that
 * records, snapshots and the job's state carry: an absent entry has no key, and no number is −0.
 *
 * A gradient's elements are multiplied by `gradientScale`, clipped by norm, then clipped by value. Then
 * coupled L2 is added, the optimizer's rule runs with the learning rate and decoupled L2, and L1 shrinks
 * the new value.
 */
export interface ParameterConfig {
  readonly optimizer: Optimizer;
  /** Learning rate of calls that give none. Every rule but `none` rejects a gradient without a rate. */
  readonly learningRate?: LearningRate;
  /** Proximal L1, per unit of learning rate; ≥ 0. */
  readonly l1: number;
  /** Weight decay, ≥ 0: added to the gradient as l2 · value, or subtracted from the value. */
  readonly l2: number;
  /** Whether L2 goes through the rule (coupled) or past it (decoupled, as in AdamW). */
  readonly l2Mode: "coupled" | "decoupled";
  /** The L2 norm that the scaled gradient of the whole parameter is scaled down to; > 0. */
  readonly clipNorm?: number;
  /** The magnitude that each element is cut to; > 0. */
  readonly clipValue?: number;
  readonly gradientScale: number;
  /** Whether gradients may come for some rows only. */
  readonly sparse: boolean;
  /** Whether the parameter keeps its first values: every update is refused. */
  readonly static: boolean;
  /** Whether a gradient's learning rate is divided by the number of versions it is behind. */
  readonly stalenessScaling: boolean;
  /** Whether updates may hold NaN and infinities; refused by default. */
  readonly allowNonFinite: boolean;
}

/** The settings as an object: every entry has a default, and null means absent. */
export type ParameterSettings = Partial<Omit<ParameterConfig, "optimizer" | "learningRate">> & {
  readonly optimizer?: OptimizerInput;
  readonly learningRate?: LearningRateInput;
};
