import type { Shard } from "../../actors/fold/shard.ts";
import type { Manifest } from "../../actors/snapshot/manifest.ts";
import { type ErrorCode, ensureError, type Position } from "../../protocol/index.ts";
import type { Inventory } from "../reach.ts";
import { type ReplayOptions, replayShard } from "../replay/replay-shard.ts";
import type { ShardHistory, TimedRecord } from "../source.ts";

/** Errors of a state that cannot be rebuilt. */
const UNKNOWN_BEFORE: readonly ErrorCode[] = [
  "HISTORY_LOST",
  "JOURNAL_DAMAGED",
  "SNAPSHOT_DAMAGED",
  "FOLD_FAILED",
];

/**
 * Compares the state that a generation began with, of which `shard` was loaded, with the state of the older
 * generation that it went on from. `first` if that cannot be rebuilt, or differs and need not be the same: after
 * an accepted loss the shard may have gone on from another state than its manifest tells.
 * @throws as `replayShard`, but for damage, which is told where it is.
 */
export async function compareBeginning(
  history: ShardHistory,
  { spans }: Inventory,
  manifest: Manifest,
  shard: Shard,
  { subjects, signal }: Pick<ReplayOptions, "subjects" | "signal">,
): Promise<"equal" | "different" | "first"> {
  const from = wentOnFrom(manifest);
  if (from === undefined) return "first";
  if (!spans.some(({ generation }) => generation === from.generation)) return "first";
  try {
    const edit = withoutAside(manifest, from.generation);
    const before = await replayShard(history, from, { subjects, signal, edit });
    before.restartJournal();
    if (before.digest() === shard.digest()) return "equal";
    return manifest.past === undefined ? "first" : "different";
  } catch (error) {
    if (!UNKNOWN_BEFORE.includes(ensureError(error).code)) throw error;
    return "first";
  }
}

/** The position whose state a generation went on from; undefined if its manifest does not tell. */
function wentOnFrom({ fallbacks }: Manifest): Position | undefined {
  // Generations after that one were left out as a whole.
  const base = fallbacks.findLast(({ generation, from }) => from > 1 || generation === 1);
  return base && { generation: base.generation, seq: base.from - 1 };
}

/** Leaves records out that were put aside: of several losses of one generation, all but the last. */
function withoutAside(
  { fallbacks }: Manifest,
  generation: number,
): (record: TimedRecord) => TimedRecord | undefined {
  const aside = fallbacks.filter((fallback) => fallback.generation === generation).slice(0, -1);
  return (record) =>
    aside.some(({ from, to }) => from <= record.seq && record.seq <= to) ? undefined : record;
}
