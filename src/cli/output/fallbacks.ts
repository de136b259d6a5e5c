import type { Fallback } from "../../protocol/fallback.ts";
import { nameRecords } from "./amounts.ts";

/** What a shard lost, for people, as `records 11 to 20 of generation 1 are lost`. */
export function describeFallbacks(fallbacks: readonly Fallback[]): string {
  const losses = fallbacks.filter(({ from, to }) => to >= from);
  const lost = losses.map(({ generation, from, to }) => {
    return `${nameRecords({ from, to })} of generation ${generation} ${from === to ? "is" : "are"} lost`;
  });
  return lost.length === 0 ? "no record is known to be lost" : lost.join("; ");
}

/** What a shard lost with the journal that was replaced last. */
export function describeLastFallback(fallbacks: readonly Fallback[]): string {
  const generation = fallbacks.at(-1)?.generation;
  return describeFallbacks(fallbacks.filter((fallback) => fallback.generation === generation));
}
