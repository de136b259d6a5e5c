/** What a {@link Histogram} holds, as plain data that can be sent between threads and processes. */
export interface HistogramCounts {
  /** Values up to each bound and above the one before; the last count is of values above all bounds. */
  readonly counts: readonly number[];
  /** Sum of all values. */
  readonly sum: number;
}

/** Counts values by size. Counting allocates nothing. */
export class Histogram {
  readonly #bounds: readonly number[];
  readonly #counts: number[];
  #sum = 0;

  /** `bounds`: the largest value of each bucket, ascending; larger values have a bucket of their own. */
  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#counts = new Array(bounds.length + 1).fill(0);
  }

  /** Counts a value. */
  observe(value: number): void {
    const bounds = this.#bounds;
    let at = 0;
    while (at < bounds.length && value > (bounds[at] as number)) at += 1;
    this.#counts[at] = (this.#counts[at] as number) + 1;
    this.#sum += value;
  }

  /** Returns a copy of what was counted so far. */
  get counted(): HistogramCounts {
    return { counts: [...this.#counts], sum: this.#sum };
  }
}

/** Adds up what two histograms with the same bounds have counted. */
export function addHistograms(a: HistogramCounts, b: HistogramCounts): HistogramCounts {
  return {
    counts: a.counts.map((count, i) => count + (b.counts[i] ?? 0)),
    sum: a.sum + b.sum,
  };
}
