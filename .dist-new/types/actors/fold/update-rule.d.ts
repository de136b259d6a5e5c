import type { LearningRate, ParameterConfig } from "../../protocol/config/index.ts";
import type { Dtype } from "../../protocol/dtypes.ts";
import type { Kernels } from "../kernel/kernels.ts";
import { type FloatDtype, type UpdateRule } from "./optimizers.ts";
export type { FloatDtype, UpdateRule } from "./optimizers.ts";
/**
 * Bytes of a gradient that a rule gets at a time: the whole scratch of a shard's memory. Measured with chunks of 4 to
 * 256 KiB that are staged there, on parameters of 1 and 64 MiB, Adam, AMSGrad and SGD were fastest with the largest
 * chunk; with L1 and L2 as well, the sizes differed little.
 */
export declare const UPDATE_CHUNK_BYTES: number;
/** Returns how many slots of the optimizer a block with this configuration has. */
export declare function slotCount(config: ParameterConfig): number;
/**
 * Creates the rule of a configuration with its L1 and L2, for blocks in the memory of `kernels`. The rule holds the
 * coefficients of one update and no state of a block.
 */
export declare function updateRule(kernels: Kernels, config: ParameterConfig, dtype: FloatDtype): UpdateRule;
/**
 * Computes the factor of a gradient before its elements are clipped: `gradientScale`, reduced so that the norm is at
 * most `clipNorm`. `norm` is the L2 norm of the trainer's whole gradient before scaling; it is known where there is a
 * `clipNorm`. The factor is 0 for an infinite norm; a NaN norm does not reduce it.
 */
export declare function gradientScale(config: ParameterConfig, norm: number | undefined): number;
/** Multiplies the `n` elements of a gradient by `scale`, then clips them to ±`clipValue`, in place. */
export declare function shapeGradient(kernels: Kernels, dtype: "float32" | "float64", gradient: number, n: number, scale: number, clipValue: number | undefined): void;
/** `accumulator += gradient` over `n` elements; integers wrap around. */
export declare function accumulate(kernels: Kernels, dtype: Dtype, accumulator: number, gradient: number, n: number): void;
/**
 * Computes the learning rate of update `count`, which is 1 for the first; the formulas are at {@link LearningRate}.
 * The result has the same bits on every machine: powers and cosines come from the kernels.
 */
export declare function learningRateAt(kernels: Kernels, schedule: LearningRate, count: number): number;
/** Whether {@link learningRateAt} is the same for every update. */
export declare function isConstantRate({ schedule, warmup }: LearningRate): boolean;
//# sourceMappingURL=update-rule.d.ts.map