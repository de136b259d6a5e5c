import type { Fallback } from "../../protocol/fallback.ts";

/** What a shard lost, for people, as `records 11 to 20 of generation 1 are lost`. */
export function describeFallbacks(fallbacks: readonly Fallback[]): string {
  const lost = fallbacks.filter(({ from, to }) => to >= from).map(describeFallback);
  return lost.length === 0 ? "no record is known to be lost" : lost.join("; ");
}

/** One replacement of a journal that lost something. */
export function describeFallback({ generation, from, to }: Fallback): string {
  const records = from === to ? `record ${from}` : `records ${from} to ${to}`;
  return `${records} of generation ${generation} ${from === to ? "is" : "are"} lost`;
}
