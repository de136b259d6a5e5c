import type { Shard } from "../../actors/fold/shard.ts";
import type { Position } from "../../protocol/index.ts";
import { startOf, takeInventory } from "../reach.ts";
import { foldRecords } from "../replay/fold-records.ts";
import { loadBase, type ReplayOptions } from "../replay/replay-shard.ts";
import type { ShardHistory } from "../source.ts";
import type { ChangeCounts, FoldChanges } from "./fold-changes.ts";
import { RecordEditor } from "./record-editor.ts";

/** How {@link foldOtherwise} folds. */
export interface OtherwiseOptions extends ReplayOptions {
  readonly changes: FoldChanges;
  /** Records up to it are folded as they are; by default none. */
  readonly from?: Position | undefined;
}

/**
 * Rebuilds a shard as it would have been at a position if the records had been others, beginning with what
 * it was at `from`. Gradients stay those that trainers computed from the values that they really had.
 * @throws as `replayShard`.
 */
export async function foldOtherwise(
  history: ShardHistory,
  to: Position,
  options: OtherwiseOptions,
): Promise<{ shard: Shard; counts: ChangeCounts }> {
  const { subjects, changes, signal, onProgress } = options;
  const { generation } = to;
  const from = options.from ?? startOf(await takeInventory(history), to);
  // Of an older generation than the end: then its own begins with all that was folded before.
  const start = from.generation === generation ? from : { generation, seq: 0 };
  const shard = await loadBase(history, start, options);
  const baseSeq = shard.seq;
  const onFolded = (seq: number): void => onProgress?.(seq - baseSeq, to.seq - baseSeq);
  await foldRecords(shard, history, start, { signal, onFolded });
  // What follows is not what was folded before.
  shard.expect([]);
  const editor = new RecordEditor(changes, subjects, history.shard, generation);
  await foldRecords(shard, history, to, {
    signal,
    onFolded,
    edit: (record) => editor.edit(record, shard),
  });
  return { shard, counts: editor.counts };
}
