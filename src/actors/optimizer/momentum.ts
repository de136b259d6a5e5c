import type { MomentumKernel } from "../kernel/kernel-types.ts";
import type { Kernels } from "../kernel/kernels.ts";
import { type FloatDtype, slotAt, type UpdateRate, type UpdateRule } from "./rule.ts";

const KERNELS = {
  momentum: { float32: "momentumF32", float64: "momentumF64" },
  nesterov: { float32: "nesterovF32", float64: "nesterovF64" },
} as const;

/**
 * m = μ·m − lr·g, then value += m (momentum: Polyak's heavy ball) or value += μ·m − lr·g (Nesterov in
 * the form of Sutskever and others, 2013). `l2` is decoupled: the value also loses lr·l2·value.
 */
export class MomentumRule implements UpdateRule {
  readonly slots = 1;
  readonly dependsOnCount = false;
  readonly #kernel: MomentumKernel;
  readonly #momentum: number;
  readonly #l2: number;
  #learningRate = 0;

  constructor(
    kernels: Kernels,
    dtype: FloatDtype,
    name: "momentum" | "nesterov",
    momentum: number,
    l2: number,
  ) {
    this.#kernel = kernels[KERNELS[name][dtype]];
    this.#momentum = momentum;
    this.#l2 = l2;
  }

  begin(_kernels: Kernels, { learningRate }: UpdateRate): void {
    this.#learningRate = learningRate;
  }

  run(value: number, gradient: number, slots: readonly number[], n: number): void {
    const lr = this.#learningRate;
    this.#kernel(value, gradient, slotAt(slots, 0), n, lr, this.#momentum, lr * this.#l2);
  }
}
