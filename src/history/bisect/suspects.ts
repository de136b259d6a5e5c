import type { Cut } from "../points/point.ts";

/** Two cuts, the model at the first of which is good, and at the other bad. */
export interface Suspects {
  readonly good: Cut;
  readonly bad: Cut;
}

/** Records between two cuts. */
export function recordsBetween({ good, bad }: Suspects): number {
  return good.reduce((sum, { seq }, shard) => sum + Math.max(0, (bad[shard]?.seq ?? 0) - seq), 0);
}
