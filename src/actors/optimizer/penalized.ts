import type { AddScaledKernel, ElementKernel } from "../kernel/kernel-types.ts";
import type { Kernels } from "../kernel/kernels.ts";
import type { FloatDtype, UpdateRate, UpdateRule } from "./rule.ts";

/**
 * A rule between coupled L2, gradient += l2 · value, and proximal L1,
 * value = sign(value) · max(|value| − lr·l1, 0). Each is a separate pass, left out where its coefficient
 * is 0, so that 0 gives the same bits as absence; a rate of 0 or less leaves out L1.
 */
export class PenalizedRule implements UpdateRule {
  readonly slots: number;
  readonly dependsOnCount: boolean;
  readonly #rule: UpdateRule;
  readonly #addScaled: AddScaledKernel;
  readonly #proximal: ElementKernel;
  readonly #l1: number;
  readonly #l2: number;
  #threshold = 0;

  constructor(kernels: Kernels, dtype: FloatDtype, rule: UpdateRule, l1: number, l2: number) {
    this.slots = rule.slots;
    this.dependsOnCount = rule.dependsOnCount;
    this.#rule = rule;
    this.#addScaled = kernels[dtype === "float32" ? "addScaledF32" : "addScaledF64"];
    this.#proximal = kernels[dtype === "float32" ? "proximalF32" : "proximalF64"];
    this.#l1 = l1;
    this.#l2 = l2;
  }

  begin(kernels: Kernels, rate: UpdateRate): void {
    this.#rule.begin(kernels, rate);
    this.#threshold = rate.learningRate * this.#l1;
  }

  run(value: number, gradient: number, slots: readonly number[], n: number): void {
    if (this.#l2 !== 0) this.#addScaled(gradient, value, n, this.#l2);
    this.#rule.run(value, gradient, slots, n);
    if (this.#threshold > 0) this.#proximal(value, n, this.#threshold);
  }
}
