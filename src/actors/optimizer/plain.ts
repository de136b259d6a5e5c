import type { AddKernel, SgdKernel } from "../kernel/kernel-types.ts";
import type { Kernels } from "../kernel/kernels.ts";
import type { FloatDtype, UpdateRate, UpdateRule } from "./rule.ts";

/** value += gradient: the trainer has optimized and sends the difference. */
export class NoneRule implements UpdateRule {
  readonly slots = 0;
  readonly dependsOnCount = false;
  readonly #add: AddKernel;

  constructor(kernels: Kernels, dtype: FloatDtype) {
    this.#add = kernels[dtype === "float32" ? "addF32" : "addF64"];
  }

  begin(): void {}

  run(value: number, gradient: number, _slots: readonly number[], n: number): void {
    this.#add(value, gradient, n);
  }
}

/** value −= lr · gradient. */
export class SgdRule implements UpdateRule {
  readonly slots = 0;
  readonly dependsOnCount = false;
  readonly #kernel: SgdKernel;
  #learningRate = 0;

  constructor(kernels: Kernels, dtype: FloatDtype) {
    this.#kernel = kernels[dtype === "float32" ? "sgdF32" : "sgdF64"];
  }

  begin(_kernels: Kernels, { learningRate }: UpdateRate): void {
    this.#learningRate = learningRate;
  }

  run(value: number, gradient: number, _slots: readonly number[], n: number): void {
    this.#kernel(value, gradient, n, this.#learningRate);
  }
}
