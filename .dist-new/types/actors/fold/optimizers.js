import { PserverError } from "../../protocol/errors.js";
/** Returns the address of slot `i`. @throws INTERNAL if the caller has left it out. */
function slotAt(slots, i) {
    const pointer = slots[i];
    if (pointer !== undefined)
        return pointer;
    throw new PserverError("INTERNAL", `expected more than ${i} slots; received ${slots.length}`);
}
/** value += gradient: the trainer has optimized and sends the difference. */
export class NoneRule {
    slots = 0;
    dependsOnCount = false;
    #add;
    constructor(kernels, dtype) {
        this.#add = kernels[dtype === "float32" ? "addF32" : "addF64"];
    }
    begin() { }
    run(value, gradient, _slots, n) {
        this.#add(value, gradient, n);
    }
}
/** value −= lr · gradient. */
export class SgdRule {
    slots = 0;
    dependsOnCount = false;
    #kernel;
    #learningRate = 0;
    constructor(kernels, dtype) {
        this.#kernel = kernels[dtype === "float32" ? "sgdF32" : "sgdF64"];
    }
    begin(_kernels, { learningRate }) {
        this.#learningRate = learningRate;
    }
    run(value, gradient, _slots, n) {
        this.#kernel(value, gradient, n, this.#learningRate);
    }
}
const KERNELS = {
    momentum: { float32: "momentumF32", float64: "momentumF64" },
    nesterov: { float32: "nesterovF32", float64: "nesterovF64" },
};
/**
 * m = μ·m − lr·g, then value += m (momentum: Polyak's heavy ball) or value += μ·m − lr·g (Nesterov in
 * the form of Sutskever and others, 2013). `l2` is decoupled: the value also loses lr·l2·value.
 */
export class MomentumRule {
    slots = 1;
    dependsOnCount = false;
    #kernel;
    #momentum;
    #l2;
    #learningRate = 0;
    constructor(kernels, dtype, name, momentum, l2) {
        this.#kernel = kernels[KERNELS[name][dtype]];
        this.#momentum = momentum;
        this.#l2 = l2;
    }
    begin(_kernels, { learningRate }) {
        this.#learningRate = learningRate;
    }
    run(value, gradient, slots, n) {
        const lr = this.#learningRate;
        this.#kernel(value, gradient, slotAt(slots, 0), n, lr, this.#momentum, lr * this.#l2);
    }
}
// Rules that divide updates by a root of the squares of past gradients. `l2` is decoupled in all of them: the value
// also loses lr·l2·value.
/** G += g²; value −= lr·g / √(G + ε) (Duchi and others, 2011; ε under the root as in PaddlePaddle). */
export class AdagradRule {
    slots = 1;
    dependsOnCount = false;
    #kernel;
    #epsilon;
    #l2;
    #learningRate = 0;
    constructor(kernels, dtype, epsilon, l2) {
        this.#kernel = kernels[dtype === "float32" ? "adagradF32" : "adagradF64"];
        this.#epsilon = epsilon;
        this.#l2 = l2;
    }
    begin(_kernels, { learningRate }) {
        this.#learningRate = learningRate;
    }
    run(value, gradient, slots, n) {
        const lr = this.#learningRate;
        this.#kernel(value, gradient, slotAt(slots, 0), n, lr, this.#epsilon, lr * this.#l2);
    }
}
/** E = ρ·E + (1−ρ)·g²; value −= lr·g / (√E + ε) (Tieleman and Hinton, 2012). */
export class RmspropRule {
    slots = 1;
    dependsOnCount = false;
    #kernel;
    #numbers;
    #learningRate = 0;
    constructor(kernels, dtype, rho, epsilon, l2) {
        this.#kernel = kernels[dtype === "float32" ? "rmspropF32" : "rmspropF64"];
        this.#numbers = { rho, epsilon, l2 };
    }
    begin(_kernels, { learningRate }) {
        this.#learningRate = learningRate;
    }
    run(value, gradient, slots, n) {
        const { rho, epsilon, l2 } = this.#numbers;
        const lr = this.#learningRate;
        this.#kernel(value, gradient, slotAt(slots, 0), n, lr, rho, epsilon, lr * l2);
    }
}
/**
 * E = ρ·E + (1−ρ)·g²; d = √(D + ε) / √(E + ε) · g; D = ρ·D + (1−ρ)·d²; value −= lr·d (Zeiler, 2012).
 * Slot 0 is E, slot 1 is D.
 */
export class AdadeltaRule {
    slots = 2;
    dependsOnCount = false;
    #kernel;
    #numbers;
    #learningRate = 0;
    constructor(kernels, dtype, rho, epsilon, l2) {
        this.#kernel = kernels[dtype === "float32" ? "adadeltaF32" : "adadeltaF64"];
        this.#numbers = { rho, epsilon, l2 };
    }
    begin(_kernels, { learningRate }) {
        this.#learningRate = learningRate;
    }
    run(value, gradient, slots, n) {
        const squares = slotAt(slots, 0);
        const deltas = slotAt(slots, 1);
        const { rho, epsilon, l2 } = this.#numbers;
        const lr = this.#learningRate;
        this.#kernel(value, gradient, squares, deltas, n, lr, rho, epsilon, lr * l2);
    }
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
export class AdamRule {
    slots;
    dependsOnCount = true;
    #kernel;
    #amsgrad;
    #rowsKernel;
    #amsgradRows;
    #numbers;
    #l2;
    #count = 0;
    #learningRate = 0;
    /** √(1−β₂ⁿ) and √(1−β₂ⁿ)/(1−β₁ⁿ). */
    #root = 1;
    #correction = 1;
    constructor(kernels, dtype, numbers, l2) {
        const isFloat32 = dtype === "float32";
        const isAdam = numbers.name === "adam";
        this.slots = numbers.name === "amsgrad" ? 3 : 2;
        if (isAdam)
            this.#kernel = isFloat32 ? kernels.adamF32 : kernels.adamF64;
        else
            this.#kernel = isFloat32 ? kernels.adamwF32 : kernels.adamwF64;
        this.#amsgrad = isFloat32 ? kernels.amsgradF32 : kernels.amsgradF64;
        const adamRows = isFloat32 ? kernels.adamRowsF32 : kernels.adamRowsF64;
        const adamwRows = isFloat32 ? kernels.adamwRowsF32 : kernels.adamwRowsF64;
        this.#rowsKernel = isAdam ? adamRows : adamwRows;
        this.#amsgradRows = isFloat32 ? kernels.amsgradRowsF32 : kernels.amsgradRowsF64;
        this.#numbers = numbers;
        this.#l2 = l2;
    }
    begin(kernels, { count, learningRate }) {
        this.#learningRate = learningRate;
        if (count === this.#count)
            return;
        this.#count = count;
        const { beta1, beta2 } = this.#numbers;
        this.#root = Math.sqrt(1 - kernels.powF64(beta2, count));
        this.#correction = this.#root / (1 - kernels.powF64(beta1, count));
    }
    run(value, gradient, slots, n) {
        const { name, beta1, beta2, epsilon } = this.#numbers;
        const rate = this.#learningRate * this.#correction;
        const decay = (name === "adam" ? rate : this.#learningRate) * this.#l2;
        const first = slotAt(slots, 0);
        const second = slotAt(slots, 1);
        if (name === "adam") {
            this.#kernel(value, gradient, first, second, n, beta1, beta2, rate, epsilon, decay);
            return;
        }
        const eps = epsilon * this.#root;
        if (name === "adamw") {
            this.#kernel(value, gradient, first, second, n, beta1, beta2, rate, eps, decay);
            return;
        }
        const most = slotAt(slots, 2);
        this.#amsgrad(value, gradient, first, second, most, n, beta1, beta2, rate, eps, decay);
    }
    runRows(columns, gradient, rows) {
        const { name, beta1, beta2, epsilon } = this.#numbers;
        const value = slotAt(columns, 0);
        const first = slotAt(columns, 1);
        const second = slotAt(columns, 2);
        const { list, n, rowElements, counts } = rows;
        const [lr, l2] = [this.#learningRate, this.#l2];
        const rest = [counts, list, n, rowElements, beta1, beta2, lr, epsilon, l2];
        if (name === "amsgrad") {
            this.#amsgradRows(value, gradient, first, second, slotAt(columns, 3), ...rest);
        }
        else {
            this.#rowsKernel(value, gradient, first, second, ...rest);
        }
    }
}
/** Smallest rate with a reciprocal in float32. */
const RATE_MIN = 2 ** -126;
/**
 * FTRL-Proximal (McMahan and others, "Ad Click Prediction", 2013) with the learning rate as α:
 * s = (√(N + g²) − √N)/α; z += g − s·value; N += g²; value = 0 where |z| ≤ l1, else
 * −(z − sign(z)·l1) / ((β + √N)/α + l2). Slot 0 is z, slot 1 is N.
 *
 * From the first update on, the value depends on the slots alone: where z is 0, a value other than 0
 * is lost. A rate of 0 (below 2⁻¹²⁶) changes neither value nor slots.
 */
export class FtrlRule {
    slots = 2;
    dependsOnCount = false;
    #kernel;
    #beta;
    #l1;
    #l2;
    #learningRate = 0;
    constructor(kernels, dtype, beta, l1, l2) {
        this.#kernel = kernels[dtype === "float32" ? "ftrlF32" : "ftrlF64"];
        this.#beta = beta;
        this.#l1 = l1;
        this.#l2 = l2;
    }
    begin(_kernels, { learningRate }) {
        this.#learningRate = learningRate;
    }
    run(value, gradient, slots, n) {
        const alpha = this.#learningRate;
        if (Math.abs(alpha) < RATE_MIN)
            return;
        const linear = slotAt(slots, 0);
        const squares = slotAt(slots, 1);
        this.#kernel(value, gradient, linear, squares, n, alpha, this.#beta, this.#l1, this.#l2);
    }
}
/**
 * Runs another rule between coupled L2, gradient += l2 · value, and proximal L1, value = sign(value) · max(|value| −
 * lr·l1, 0). Each is a separate pass, left out where its coefficient is 0, so that 0 gives the same bits as absence;
 * a rate of 0 or less leaves out L1.
 */
export class PenalizedRule {
    slots;
    dependsOnCount;
    #rule;
    #addScaled;
    #proximal;
    #l1;
    #l2;
    #threshold = 0;
    constructor(kernels, dtype, rule, l1, l2) {
        this.slots = rule.slots;
        this.dependsOnCount = rule.dependsOnCount;
        this.#rule = rule;
        this.#addScaled = kernels[dtype === "float32" ? "addScaledF32" : "addScaledF64"];
        this.#proximal = kernels[dtype === "float32" ? "proximalF32" : "proximalF64"];
        this.#l1 = l1;
        this.#l2 = l2;
    }
    begin(kernels, rate) {
        this.#rule.begin(kernels, rate);
        this.#threshold = rate.learningRate * this.#l1;
    }
    run(value, gradient, slots, n) {
        if (this.#l2 !== 0)
            this.#addScaled(gradient, value, n, this.#l2);
        this.#rule.run(value, gradient, slots, n);
        if (this.#threshold > 0)
            this.#proximal(value, n, this.#threshold);
    }
}
//# sourceMappingURL=optimizers.js.map