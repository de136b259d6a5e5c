import type { AdadeltaKernel, AdagradKernel, RmspropKernel } from "../kernel/kernel-types.ts";
import type { Kernels } from "../kernel/kernels.ts";
import { type FloatDtype, slotAt, type UpdateRate, type UpdateRule } from "./rule.ts";

// Updates that are divided by a root of the squares of past gradients. `l2` is decoupled everywhere:
// the value also loses lr·l2·value.

/** G += g²; value −= lr·g / √(G + ε) (Duchi and others, 2011; ε under the root as in PaddlePaddle). */
export class AdagradRule implements UpdateRule {
  readonly slots = 1;
  readonly dependsOnCount = false;
  readonly #kernel: AdagradKernel;
  readonly #epsilon: number;
  readonly #l2: number;
  #learningRate = 0;

  constructor(kernels: Kernels, dtype: FloatDtype, epsilon: number, l2: number) {
    this.#kernel = kernels[dtype === "float32" ? "adagradF32" : "adagradF64"];
    this.#epsilon = epsilon;
    this.#l2 = l2;
  }

  begin(_kernels: Kernels, { learningRate }: UpdateRate): void {
    this.#learningRate = learningRate;
  }

  run(value: number, gradient: number, slots: readonly number[], n: number): void {
    const lr = this.#learningRate;
    this.#kernel(value, gradient, slotAt(slots, 0), n, lr, this.#epsilon, lr * this.#l2);
  }
}

/** The numbers of the rules that keep averages: ρ, ε and the decay. */
interface AverageNumbers {
  readonly rho: number;
  readonly epsilon: number;
  readonly l2: number;
}

/** E = ρ·E + (1−ρ)·g²; value −= lr·g / (√E + ε) (Tieleman and Hinton, 2012). */
export class RmspropRule implements UpdateRule {
  readonly slots = 1;
  readonly dependsOnCount = false;
  readonly #kernel: RmspropKernel;
  readonly #numbers: AverageNumbers;
  #learningRate = 0;

  constructor(kernels: Kernels, dtype: FloatDtype, rho: number, epsilon: number, l2: number) {
    this.#kernel = kernels[dtype === "float32" ? "rmspropF32" : "rmspropF64"];
    this.#numbers = { rho, epsilon, l2 };
  }

  begin(_kernels: Kernels, { learningRate }: UpdateRate): void {
    this.#learningRate = learningRate;
  }

  run(value: number, gradient: number, slots: readonly number[], n: number): void {
    const { rho, epsilon, l2 } = this.#numbers;
    const lr = this.#learningRate;
    this.#kernel(value, gradient, slotAt(slots, 0), n, lr, rho, epsilon, lr * l2);
  }
}

/**
 * E = ρ·E + (1−ρ)·g²; d = √(D + ε) / √(E + ε) · g; D = ρ·D + (1−ρ)·d²; value −= lr·d (Zeiler, 2012).
 * Slot 0 is E, slot 1 is D.
 */
export class AdadeltaRule implements UpdateRule {
  readonly slots = 2;
  readonly dependsOnCount = false;
  readonly #kernel: AdadeltaKernel;
  readonly #numbers: AverageNumbers;
  #learningRate = 0;

  constructor(kernels: Kernels, dtype: FloatDtype, rho: number, epsilon: number, l2: number) {
    this.#kernel = kernels[dtype === "float32" ? "adadeltaF32" : "adadeltaF64"];
    this.#numbers = { rho, epsilon, l2 };
  }

  begin(_kernels: Kernels, { learningRate }: UpdateRate): void {
    this.#learningRate = learningRate;
  }

  run(value: number, gradient: number, slots: readonly number[], n: number): void {
    const squares = slotAt(slots, 0);
    const deltas = slotAt(slots, 1);
    const { rho, epsilon, l2 } = this.#numbers;
    const lr = this.#learningRate;
    this.#kernel(value, gradient, squares, deltas, n, lr, rho, epsilon, lr * l2);
  }
}
