import type { Guard } from "../../../protocol/config/guard.ts";
import type { Kernels } from "../../kernel/kernels.ts";

// The median and the median absolute deviation (MAD) of logarithms are the robust counterparts of mean and deviation:
// half of the norms can be anything without moving them far (Iglewicz and Hoaglin, How to Detect and Handle Outliers,
// 1993). Logarithms, because norms are positive and fall by orders of magnitude while a model learns. As norms above the
// limit enter a history at the limit (as in ZClip, arXiv 2504.02507), a lone spike moves nothing, and a lasting rise of all
// norms is followed after some windows.

/** The deviation of a normal distribution in units of its MAD. */
const MAD_DEVIATION = 1.4826;

/** The least deviation of the logarithms as a factor: norms that hardly differ are no reason to reject the next one. */
const SPREAD_MIN = 1.05;

/** Where a limit comes from. */
export interface NormLimit {
  /** What a norm may be at most; may be infinite. */
  readonly limit: number;
  /** The median of the history. */
  readonly median: number;
  /** How many norms the history has. */
  readonly norms: number;
}

/** The last norms of a trainer, or of all, that are above 0. */
export class NormHistory {
  /** How many norms it keeps. */
  readonly window: number;
  /** A ring: the next norm takes the place of the oldest one. */
  readonly #ring: Float64Array;
  /** The same norms, ascending. */
  readonly #sorted: Float64Array;
  #next = 0;
  #count = 0;

  constructor(window: number) {
    this.window = window;
    this.#ring = new Float64Array(window);
    this.#sorted = new Float64Array(window);
  }

  /** Copies the norms, oldest first. */
  get norms(): Float64Array {
    if (this.#count < this.window) return this.#ring.slice(0, this.#count);
    const norms = new Float64Array(this.window);
    norms.set(this.#ring.subarray(this.#next));
    norms.set(this.#ring.subarray(0, this.#next), this.window - this.#next);
    return norms;
  }

  /** Adds a norm, and drops the oldest beyond the window. A norm of 0 has no logarithm, and is passed over. */
  add(norm: number): void {
    if (norm === 0) return;
    const sorted = this.#sorted;
    if (this.#count === this.window) {
      const oldest = this.#place(this.#ring[this.#next] as number);
      sorted.copyWithin(oldest, oldest + 1, this.#count);
      this.#count -= 1;
    }
    const place = this.#place(norm);
    sorted.copyWithin(place + 1, place, this.#count);
    sorted[place] = norm;
    this.#ring[this.#next] = norm;
    this.#next = (this.#next + 1) % this.window;
    this.#count += 1;
  }

  /**
   * Returns the limit that a guard sets for the next norm; undefined while the history has fewer norms than the guard
   * asks for. The result has the same bits on every machine.
   */
  limit(kernels: Pick<Kernels, "powF64">, guard: Guard): NormLimit | undefined {
    const norms = this.#count;
    if (norms < guard.warmup) return undefined;
    const upper = this.#sorted[norms >> 1] as number;
    const median =
      norms % 2 === 1 ? upper : between(this.#sorted[(norms >> 1) - 1] as number, upper);
    const { factor, deviations = 0 } = guard;
    if (factor !== undefined) return { limit: median * factor, median, norms };
    const spread = kernels.powF64(this.#medianRatio(median), MAD_DEVIATION);
    const above = kernels.powF64(Math.max(spread, SPREAD_MIN), deviations);
    return { limit: median * above, median, norms };
  }

  /**
   * Returns the median of max(x/m, m/x) over the norms, m being their median: its logarithm is the MAD of theirs. The
   * ratios grow to both sides of the median, so they are passed in order from there.
   */
  #medianRatio(median: number): number {
    const sorted = this.#sorted;
    const count = this.#count;
    let right = count >> 1;
    let left = right - 1;
    let [before, ratio] = [1, 1];
    for (let passed = 0; passed <= count >> 1; passed++) {
      const below = left < 0 ? Number.POSITIVE_INFINITY : median / (sorted[left] as number);
      const above = right < count ? (sorted[right] as number) / median : Number.POSITIVE_INFINITY;
      const takesBelow = right >= count || (left >= 0 && below <= above);
      before = ratio;
      ratio = takesBelow ? below : above;
      if (takesBelow) left -= 1;
      else right += 1;
    }
    return count % 2 === 1 ? ratio : between(before, ratio);
  }

  /** Returns the place of the first norm that is not below this one. */
  #place(norm: number): number {
    let [low, high] = [0, this.#count];
    while (low < high) {
      const mid = (low + high) >> 1;
      if ((this.#sorted[mid] as number) < norm) low = mid + 1;
      else high = mid;
    }
    return low;
  }
}

/** Returns the geometric mean of two numbers, whose product could be larger than any float64. */
function between(a: number, b: number): number {
  return Math.sqrt(a) * Math.sqrt(b);
}
