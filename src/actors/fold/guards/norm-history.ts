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
  /** Oldest first. */
  readonly #norms: number[] = [];
  /** The same norms, ascending. */
  readonly #sorted: number[] = [];

  constructor(window: number) {
    this.window = window;
  }

  /** The norms, oldest first. */
  get norms(): readonly number[] {
    return this.#norms;
  }

  /** Adds a norm, and drops the oldest beyond the window. A norm of 0 has no logarithm, and is passed over. */
  add(norm: number): void {
    if (norm === 0) return;
    if (this.#norms.length === this.window) {
      const oldest = this.#norms.shift() as number;
      this.#sorted.splice(this.#place(oldest), 1);
    }
    this.#norms.push(norm);
    this.#sorted.splice(this.#place(norm), 0, norm);
  }

  /**
   * Returns the limit that a guard sets for the next norm; undefined while the history has fewer norms than the guard
   * asks for. The result has the same bits on every machine.
   */
  limit(kernels: Pick<Kernels, "powF64">, guard: Guard): NormLimit | undefined {
    const sorted = this.#sorted;
    if (sorted.length < guard.warmup) return undefined;
    const median = middle(sorted, (place) => sorted[place] as number);
    const { factor, deviations = 0 } = guard;
    const above = factor ?? kernels.powF64(spreadOf(kernels, sorted, median), deviations);
    return { limit: median * above, median, norms: sorted.length };
  }

  /** Returns the place of the first norm that is not below this one. */
  #place(norm: number): number {
    let [low, high] = [0, this.#sorted.length];
    while (low < high) {
      const mid = (low + high) >> 1;
      if ((this.#sorted[mid] as number) < norm) low = mid + 1;
      else high = mid;
    }
    return low;
  }
}

/** Returns exp(σ) of sorted norms, where σ is the robust deviation of their logarithms, at least {@link SPREAD_MIN}. */
function spreadOf(
  kernels: Pick<Kernels, "powF64">,
  sorted: readonly number[],
  median: number,
): number {
  const spread = kernels.powF64(medianRatio(sorted, median), MAD_DEVIATION);
  return Math.max(spread, SPREAD_MIN);
}

/**
 * Returns the median of max(x/m, m/x) over sorted norms, m being their median: its logarithm is the MAD of theirs. The
 * ratios grow to both sides of the median, so they are passed in order from there.
 */
function medianRatio(sorted: readonly number[], median: number): number {
  let right = sorted.length >> 1;
  let left = right - 1;
  const ratios: number[] = [];
  while (ratios.length <= sorted.length / 2) {
    const below = left < 0 ? Number.POSITIVE_INFINITY : median / (sorted[left] as number);
    const above = right < sorted.length ? (sorted[right] as number) / median : Infinity;
    const takesBelow = right >= sorted.length || (left >= 0 && below <= above);
    ratios.push(takesBelow ? below : above);
    if (takesBelow) left -= 1;
    else right += 1;
  }
  return middle(sorted, (place) => ratios[place] as number);
}

/** Returns the median of as many numbers as `all` has, `at` their places in order: of two in the middle the geometric mean. */
function middle(all: readonly number[], at: (place: number) => number): number {
  const place = all.length >> 1;
  if (all.length % 2 === 1) return at(place);
  // The product of the two could be larger than any float64.
  return Math.sqrt(at(place - 1)) * Math.sqrt(at(place));
}
