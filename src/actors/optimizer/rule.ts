import { PserverError } from "../../protocol/errors.ts";
import type { Kernels } from "../kernel/kernels.ts";

/** Element types of the rules. */
export type FloatDtype = "float32" | "float64";

/** Parameters of an update besides its gradient. */
export interface UpdateRate {
  /** Number of the update; 1 for the first of its block or row. */
  readonly count: number;
  readonly learningRate: number;
}

/** Rows of a list, each with an update count of its own. */
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
  /** Whether coefficients depend on the number of the update, besides the learning rate. */
  readonly dependsOnCount: boolean;
  /**
   * Sets the coefficients of an update, which apply until the next call. Powers are computed in
   * WebAssembly.
   */
  begin(kernels: Kernels, rate: UpdateRate): void;
  /**
   * Updates `n` elements. `gradient` may be overwritten; `slots` are the addresses of {@link slots}
   * slots, at the same elements as `value`. Allocates nothing.
   */
  run(value: number, gradient: number, slots: readonly number[], n: number): void;
  /**
   * Updates the rows of a list where they are, each as its own next update, at the learning rate of the
   * last {@link begin}. `columns` are the addresses of values and slots, each of all rows; `gradient` is
   * contiguous. Absent if the rule has no kernel for it.
   */
  runRows?(columns: readonly number[], gradient: number, rows: CountedRows): void;
}

/** The address of slot `i`. @throws INTERNAL if the caller has left it out. */
export function slotAt(slots: readonly number[], i: number): number {
  const pointer = slots[i];
  if (pointer !== undefined) return pointer;
  throw new PserverError("INTERNAL", `expected more than ${i} slots; received ${slots.length}`);
}
