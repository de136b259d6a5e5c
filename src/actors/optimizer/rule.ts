import { PserverError } from "../../protocol/errors.ts";
import type { Kernels } from "../kernel/kernels.ts";

/** The element types that rules work on. */
export type FloatDtype = "float32" | "float64";

/** What a step depends on besides its gradient. */
export interface StepRate {
  /** Number of the update, 1 for the first of its block or row. */
  readonly count: number;
  readonly learningRate: number;
}

/** One optimizer's step with the penalties of a configuration, on blocks in one memory. */
export interface UpdateRule {
  /** Slots it keeps beside the values. */
  readonly slots: number;
  /**
   * Sets the coefficients of a step, which hold until the next call; the same rate again costs
   * nothing. Powers are computed in WebAssembly.
   */
  begin(kernels: Kernels, rate: StepRate): void;
  /**
   * One step over `n` elements. `gradient` may be overwritten; `slots` are the pointers of
   * {@link slots} slots, at the same elements as `value`. Nothing is allocated.
   */
  run(value: number, gradient: number, slots: readonly number[], n: number): void;
}

/** The pointer of slot `i`. @throws INTERNAL if the caller left it out. */
export function slotAt(slots: readonly number[], i: number): number {
  const pointer = slots[i];
  if (pointer !== undefined) return pointer;
  throw new PserverError("INTERNAL", `expected more than ${i} slots; received ${slots.length}`);
}
