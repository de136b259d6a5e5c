import { Shard } from "../../actors/fold/shard.ts";
import { loadSnapshot } from "../../actors/owner/recover-shard.ts";
import type { PieceRef } from "../../actors/snapshot/manifest.ts";
import { ensureError, type JobSubjects, type Position } from "../../protocol/index.ts";
import { basesBefore, notedIn, type ReplayBase, takeInventory } from "../reach.ts";
import type { ShardHistory } from "../source.ts";
import { type FoldOptions, foldRecords } from "./fold-records.ts";

/** Lists of snapshots tried: a list is outdated once a host has made room for a newer snapshot. */
const LISTS_MAX = 3;

/** How {@link replayShard} folds. */
export interface ReplayOptions extends Omit<FoldOptions, "onFolded"> {
  readonly subjects: JobSubjects;
  /** Called now and then with the records folded, of those to fold. */
  readonly onProgress?: (doneRecords: number, totalRecords: number) => void;
}

/**
 * Rebuilds a shard as it was right after a record: loads the newest snapshot before it, or an older one if
 * that is damaged, and folds the records after the snapshot by the code that hosts fold with.
 * @throws HISTORY_LOST if the position lies before what is kept, SNAPSHOT_DAMAGED if no snapshot before it
 * can be loaded, JOURNAL_DAMAGED if a record is missing or has changed; UNKNOWN_RULES, TOO_LARGE as the fold; what the
 * source throws; the reason of the signal.
 */
export async function replayShard(
  history: ShardHistory,
  to: Position,
  options: ReplayOptions,
): Promise<Shard> {
  const { onProgress } = options;
  const shard = await loadBase(history, to, options);
  const fromSeq = shard.seq;
  const onFolded = (seq: number): void => onProgress?.(seq - fromSeq, to.seq - fromSeq);
  await foldRecords(shard, history, to, { ...options, onFolded });
  return shard;
}

/**
 * Rebuilds a shard as the nearest readable snapshot at or before a position has it.
 * @throws as {@link replayShard}.
 */
export async function loadBase(
  history: ShardHistory,
  to: Position,
  { subjects, signal }: Pick<ReplayOptions, "subjects" | "signal">,
): Promise<Shard> {
  for (let lists = 1; ; lists++) {
    let failure: unknown;
    const inventory = await takeInventory(history);
    const noted = notedIn(inventory, await history.mark?.(), to.generation);
    for (const base of basesBefore(inventory, to)) {
      signal.throwIfAborted();
      try {
        const shard = await shardAt(history, base, subjects);
        shard.expect(noted);
        return shard;
      } catch (error) {
        if (ensureError(error).code !== "SNAPSHOT_DAMAGED") throw error;
        failure ??= error;
      }
    }
    if (lists === LISTS_MAX) throw failure;
  }
}

/** The shard at a place where a rebuilding can begin. @throws SNAPSHOT_DAMAGED, UNKNOWN_RULES. */
export async function shardAt(
  history: ShardHistory,
  { snapshot }: ReplayBase,
  subjects: JobSubjects,
): Promise<Shard> {
  const { shard: number } = history;
  if (snapshot === undefined) return Shard.create({ subjects, shard: number });
  const store = { read: (ref: PieceRef) => history.piece(ref) };
  const { shard } = await loadSnapshot({ subjects, shard: number, store }, snapshot);
  return shard;
}
