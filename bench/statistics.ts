/** The middle of several values and how far they lie apart. */
export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

/** Returns the spread of at least one value; NaN of none. */
export function spread(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b);
  return {
    median: percentile(sorted, 50),
    min: percentile(sorted, 0),
    max: percentile(sorted, 100),
  };
}

/**
 * Returns the value that `percent` of the sorted values do not exceed, between two of them if need
 * be.
 */
export function percentile(sorted: readonly number[], percent: number): number {
  const at = ((sorted.length - 1) * percent) / 100;
  const low = sorted[Math.floor(at)] ?? Number.NaN;
  const high = sorted[Math.ceil(at)] ?? Number.NaN;
  return low + (high - low) * (at - Math.floor(at));
}
