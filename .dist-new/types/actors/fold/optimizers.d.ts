import type { Kernels } from "../kernel/kernels.ts";
/** Element types of the rules. */
export type FloatDtype = "float32" | "float64";
/** Parameters of an update besides its gradient. */
export interface UpdateRate {
    /** Number of the update; 1 for the first of its block or row. */
    readonly count: number;
    readonly learningRate: number;
}
/** A list of rows, each with an update count of its own. */
export interface CountedRows {
    /** Address of the row numbers. */
    readonly list: number;
    readonly n: number;
    readonly rowElements: number;
    /** Address of the update counts of all rows, before the update. */
    readonly counts: number;
}
/** The updates of one optimizer, with the penalties of a configuration, on blocks in one memory. */
export interface UpdateRule {
    /** Number of slots beside the values. */
    readonly slots: number;
    /** Whether coefficients other than the learning rate depend on the number of the update. */
    readonly dependsOnCount: boolean;
    /** Sets the coefficients for all updates until the next call. Powers are computed in WebAssembly. */
    begin(kernels: Kernels, rate: UpdateRate): void;
    /**
     * Updates `n` elements; may overwrite `gradient`. `slots` has the addresses of {@link slots} slots, for the same
     * elements as `value`. Allocates nothing.
     */
    run(value: number, gradient: number, slots: readonly number[], n: number): void;
    /**
     * Updates the rows of a list in place, each by its own next update, at the learning rate of the last {@link begin}.
     * `columns` are the addresses of values and slots, each of all rows; `gradient` is contiguous. Absent if the rule
     * has no kernel for it.
     */
    runRows?(columns: readonly number[], gradient: number, rows: CountedRows): void;
}
/** value += gradient: the trainer has optimized and sends the difference. */
export declare class NoneRule implements UpdateRule {
    #private;
    readonly slots = 0;
    readonly dependsOnCount = false;
    constructor(kernels: Kernels, dtype: FloatDtype);
    begin(): void;
    run(value: number, gradient: number, _slots: readonly number[], n: number): void;
}
/** value −= lr · gradient. */
export declare class SgdRule implements UpdateRule {
    #private;
    readonly slots = 0;
    readonly dependsOnCount = false;
    constructor(kernels: Kernels, dtype: FloatDtype);
    begin(_kernels: Kernels, { learningRate }: UpdateRate): void;
    run(value: number, gradient: number, _slots: readonly number[], n: number): void;
}
/**
 * m = μ·m − lr·g, then value += m (momentum: Polyak's heavy ball) or value += μ·m − lr·g (Nesterov in
 * the form of Sutskever and others, 2013). `l2` is decoupled: the value also loses lr·l2·value.
 */
export declare class MomentumRule implements UpdateRule {
    #private;
    readonly slots = 1;
    readonly dependsOnCount = false;
    constructor(kernels: Kernels, dtype: FloatDtype, name: "momentum" | "nesterov", momentum: number, l2: number);
    begin(_kernels: Kernels, { learningRate }: UpdateRate): void;
    run(value: number, gradient: number, slots: readonly number[], n: number): void;
}
/** G += g²; value −= lr·g / √(G + ε) (Duchi and others, 2011; ε under the root as in PaddlePaddle). */
export declare class AdagradRule implements UpdateRule {
    #private;
    readonly slots = 1;
    readonly dependsOnCount = false;
    constructor(kernels: Kernels, dtype: FloatDtype, epsilon: number, l2: number);
    begin(_kernels: Kernels, { learningRate }: UpdateRate): void;
    run(value: number, gradient: number, slots: readonly number[], n: number): void;
}
/** E = ρ·E + (1−ρ)·g²; value −= lr·g / (√E + ε) (Tieleman and Hinton, 2012). */
export declare class RmspropRule implements UpdateRule {
    #private;
    readonly slots = 1;
    readonly dependsOnCount = false;
    constructor(kernels: Kernels, dtype: FloatDtype, rho: number, epsilon: number, l2: number);
    begin(_kernels: Kernels, { learningRate }: UpdateRate): void;
    run(value: number, gradient: number, slots: readonly number[], n: number): void;
}
/**
 * E = ρ·E + (1−ρ)·g²; d = √(D + ε) / √(E + ε) · g; D = ρ·D + (1−ρ)·d²; value −= lr·d (Zeiler, 2012).
 * Slot 0 is E, slot 1 is D.
 */
export declare class AdadeltaRule implements UpdateRule {
    #private;
    readonly slots = 2;
    readonly dependsOnCount = false;
    constructor(kernels: Kernels, dtype: FloatDtype, rho: number, epsilon: number, l2: number);
    begin(_kernels: Kernels, { learningRate }: UpdateRate): void;
    run(value: number, gradient: number, slots: readonly number[], n: number): void;
}
/** Coefficients of Adam, AdamW and AMSGrad. */
export interface AdamNumbers {
    readonly name: "adam" | "adamw" | "amsgrad";
    readonly beta1: number;
    readonly beta2: number;
    readonly epsilon: number;
}
/**
 * m = β₁·m + (1−β₁)·g; v = β₂·v + (1−β₂)·g² (Kingma and Ba, 2015). Of update n:
 * - adam: value −= lr·√(1−β₂ⁿ)/(1−β₁ⁿ) · m / √(v + ε), with ε under the root as in PaddlePaddle;
 * - adamw: value −= lr · m̂ / (√v̂ + ε) with m̂ = m/(1−β₁ⁿ) and v̂ = v/(1−β₂ⁿ) (Loshchilov and
 *   Hutter, 2019), computed as lr·√(1−β₂ⁿ)/(1−β₁ⁿ) · m / (√v + ε·√(1−β₂ⁿ));
 * - amsgrad: as adamw with the largest v so far (Reddi and others, 2018).
 *
 * `l2` is decoupled: the value also loses lr·l2·value, under adam with the corrected rate of the update,
 * as in PaddlePaddle. Slots: m, v, and of amsgrad the largest v.
 */
export declare class AdamRule implements UpdateRule {
    #private;
    readonly slots: number;
    readonly dependsOnCount = true;
    constructor(kernels: Kernels, dtype: FloatDtype, numbers: AdamNumbers, l2: number);
    begin(kernels: Kernels, { count, learningRate }: UpdateRate): void;
    run(value: number, gradient: number, slots: readonly number[], n: number): void;
    runRows(columns: readonly number[], gradient: number, rows: CountedRows): void;
}
/**
 * FTRL-Proximal (McMahan and others, "Ad Click Prediction", 2013) with the learning rate as α:
 * s = (√(N + g²) − √N)/α; z += g − s·value; N += g²; value = 0 where |z| ≤ l1, else
 * −(z − sign(z)·l1) / ((β + √N)/α + l2). Slot 0 is z, slot 1 is N.
 *
 * From the first update on, the value depends on the slots alone: where z is 0, a value other than 0
 * is lost. A rate of 0 (below 2⁻¹²⁶) changes neither value nor slots.
 */
export declare class FtrlRule implements UpdateRule {
    #private;
    readonly slots = 2;
    readonly dependsOnCount = false;
    constructor(kernels: Kernels, dtype: FloatDtype, beta: number, l1: number, l2: number);
    begin(_kernels: Kernels, { learningRate }: UpdateRate): void;
    run(value: number, gradient: number, slots: readonly number[], n: number): void;
}
/**
 * Runs another rule between coupled L2, gradient += l2 · value, and proximal L1, value = sign(value) · max(|value| −
 * lr·l1, 0). Each is a separate pass, left out where its coefficient is 0, so that 0 gives the same bits as absence;
 * a rate of 0 or less leaves out L1.
 */
export declare class PenalizedRule implements UpdateRule {
    #private;
    readonly slots: number;
    readonly dependsOnCount: boolean;
    constructor(kernels: Kernels, dtype: FloatDtype, rule: UpdateRule, l1: number, l2: number);
    begin(kernels: Kernels, rate: UpdateRate): void;
    run(value: number, gradient: number, slots: readonly number[], n: number): void;
}
//# sourceMappingURL=optimizers.d.ts.map