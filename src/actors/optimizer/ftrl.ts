import type { FtrlKernel } from "../kernel/kernel-types.ts";
import type { Kernels } from "../kernel/kernels.ts";
import { type FloatDtype, slotAt, type UpdateRate, type UpdateRule } from "./rule.ts";

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
export class FtrlRule implements UpdateRule {
  readonly slots = 2;
  readonly dependsOnCount = false;
  readonly #kernel: FtrlKernel;
  readonly #beta: number;
  readonly #l1: number;
  readonly #l2: number;
  #learningRate = 0;

  constructor(kernels: Kernels, dtype: FloatDtype, beta: number, l1: number, l2: number) {
    this.#kernel = kernels[dtype === "float32" ? "ftrlF32" : "ftrlF64"];
    this.#beta = beta;
    this.#l1 = l1;
    this.#l2 = l2;
  }

  begin(_kernels: Kernels, { learningRate }: UpdateRate): void {
    this.#learningRate = learningRate;
  }

  run(value: number, gradient: number, slots: readonly number[], n: number): void {
    const alpha = this.#learningRate;
    if (Math.abs(alpha) < RATE_MIN) return;
    const linear = slotAt(slots, 0);
    const squares = slotAt(slots, 1);
    this.#kernel(value, gradient, linear, squares, n, alpha, this.#beta, this.#l1, this.#l2);
  }
}
