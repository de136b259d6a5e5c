import { type Dtype } from "../dtypes.ts";
import { type LearningRate, type LearningRateInput, type Optimizer, type OptimizerInput } from "./optimizer.ts";
import { type PaddleConfigs } from "./paddle/paddle.ts";
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
    /**
     * Largest L2 norm of the whole parameter's gradient after `gradientScale`; a larger gradient is scaled down
     * to it; > 0.
     */
    readonly clipNorm?: number;
    /** Largest magnitude of a gradient's element; a larger one is cut to it; > 0. */
    readonly clipValue?: number;
    readonly gradientScale: number;
    /** Whether gradients may come for some rows only. */
    readonly sparse: boolean;
    /** Whether the parameter keeps its first values: every update is rejected. */
    readonly static: boolean;
    /** Whether a gradient's learning rate is divided by its staleness in versions of the block. */
    readonly stalenessScaling: boolean;
    /** Whether updates may hold NaN and infinities; by default such an update is rejected. */
    readonly allowNonFinite: boolean;
}
/** The settings as an object: every entry has a default, and null means absent. */
export type ParameterSettings = Partial<Omit<ParameterConfig, "optimizer" | "learningRate">> & {
    readonly optimizer?: OptimizerInput;
    readonly learningRate?: LearningRateInput;
};
/** Characters of a configuration as text. */
export declare const CONFIG_TEXT_MAX = 16384;
/** Depth of lists and maps in a configuration as text, the same as in messages. */
export declare const CONFIG_DEPTH_MAX = 16;
/**
 * Tokens of a configuration as text: words, signs, spaces and line ends. The largest real one has some
 * hundred.
 */
export declare const CONFIG_TOKENS_MAX = 2048;
/**
 * Reads a text in YAML 1.2, which includes JSON: one document of maps, lists, numbers, truth values and
 * texts. Refuses aliases, custom tags and repeated keys.
 * @throws BAD_CONFIG saying where the text is wrong.
 */
export declare function parseConfigText(text: string): unknown;
/**
 * A configuration as callers give it: an object, the same as JSON or YAML text, or PaddlePaddle's serialized
 * messages; bytes alone are an `OptimizerConfig`. The same settings in any form are the same configuration.
 */
export type ParameterConfigInput = ParameterSettings | string | Uint8Array | PaddleConfigs;
/**
 * Completes and checks a configuration from a caller or a message, in any form of {@link
 * ParameterConfigInput}. A normalized one is returned unchanged, with its entries in the same order.
 * @throws BAD_CONFIG naming the entry that is unknown, out of its range or against another one.
 */
export declare function toConfig(input?: unknown): ParameterConfig;
/**
 * Does as {@link toConfig} does, faster: the parameters of a model have few configurations, so most inputs
 * equal a recent one, whose configuration is returned again.
 * @throws BAD_CONFIG as {@link toConfig} does.
 */
export declare function toSharedConfig(input?: unknown): ParameterConfig;
/** Returns `rate`. @throws BAD_VALUE unless it is finite. */
export declare function checkLearningRate(rate: number): number;
/** Returns `value`. @throws BAD_VALUE unless it is a finite number. */
export declare function checkFinite(value: number, what: string): number;
/**
 * Checks that elements of this type can be trained with gradients: floats by every optimizer, integers
 * only by `none`, which adds and wraps around as numpy and C do.
 * @throws UNSUPPORTED for integers with another optimizer; they take `set` and `alpha/beta` only.
 */
export declare function checkTakesGradients(dtype: Dtype, config: Pick<ParameterConfig, "optimizer">, parameter: string): void;
//# sourceMappingURL=parameter-config.d.ts.map