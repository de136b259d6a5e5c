import type {
  AdamKernel,
  AdamRowsKernel,
  AmsgradKernel,
  AmsgradRowsKernel,
} from "../kernel/kernel-types.ts";
import type { Kernels } from "../kernel/kernels.ts";
import {
  type CountedRows,
  type FloatDtype,
  slotAt,
  type UpdateRate,
  type UpdateRule,
} from "./rule.ts";

/** The numbers of Adam and its kin. */
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
export class AdamRule implements UpdateRule {
  readonly slots: number;
  readonly dependsOnCount = true;
  readonly #kernel: AdamKernel;
  readonly #amsgrad: AmsgradKernel;
  readonly #rowsKernel: AdamRowsKernel;
  readonly #amsgradRows: AmsgradRowsKernel;
  readonly #numbers: AdamNumbers;
  readonly #l2: number;
  #count = 0;
  #learningRate = 0;
  /** √(1−β₂ⁿ) and √(1−β₂ⁿ)/(1−β₁ⁿ). */
  #root = 1;
  #correction = 1;

  constructor(kernels: Kernels, dtype: FloatDtype, numbers: AdamNumbers, l2: number) {
    const isFloat32 = dtype === "float32";
    const isAdam = numbers.name === "adam";
    this.slots = numbers.name === "amsgrad" ? 3 : 2;
    if (isAdam) this.#kernel = isFloat32 ? kernels.adamF32 : kernels.adamF64;
    else this.#kernel = isFloat32 ? kernels.adamwF32 : kernels.adamwF64;
    this.#amsgrad = isFloat32 ? kernels.amsgradF32 : kernels.amsgradF64;
    const adamRows = isFloat32 ? kernels.adamRowsF32 : kernels.adamRowsF64;
    const adamwRows = isFloat32 ? kernels.adamwRowsF32 : kernels.adamwRowsF64;
    this.#rowsKernel = isAdam ? adamRows : adamwRows;
    this.#amsgradRows = isFloat32 ? kernels.amsgradRowsF32 : kernels.amsgradRowsF64;
    this.#numbers = numbers;
    this.#l2 = l2;
  }

  begin(kernels: Kernels, { count, learningRate }: UpdateRate): void {
    this.#learningRate = learningRate;
    if (count === this.#count) return;
    this.#count = count;
    const { beta1, beta2 } = this.#numbers;
    this.#root = Math.sqrt(1 - kernels.powF64(beta2, count));
    this.#correction = this.#root / (1 - kernels.powF64(beta1, count));
  }

  run(value: number, gradient: number, slots: readonly number[], n: number): void {
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

  runRows(columns: readonly number[], gradient: number, rows: CountedRows): void {
    const { name, beta1, beta2, epsilon } = this.#numbers;
    const value = slotAt(columns, 0);
    const first = slotAt(columns, 1);
    const second = slotAt(columns, 2);
    const { list, n, rowElements, counts } = rows;
    const [lr, l2] = [this.#learningRate, this.#l2];
    const rest = [counts, list, n, rowElements, beta1, beta2, lr, epsilon, l2] as const;
    if (name === "amsgrad") {
      this.#amsgradRows(value, gradient, first, second, slotAt(columns, 3), ...rest);
    } else {
      this.#rowsKernel(value, gradient, first, second, ...rest);
    }
  }
}
