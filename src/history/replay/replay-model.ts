import { mapConcurrently } from "../../actors/concurrent.ts";
import type { Cut } from "../points/point.ts";
import { ReplayedModel } from "./replayed-model.ts";
import type { Replayer } from "./replayer.ts";

/** How much of a model is rebuilt, and who is told. */
export interface ReplayModelOptions {
  /** Only these shards; by default all. */
  readonly shards?: readonly number[];
  /** Told the records folded in all shards, of those to fold as far as is known. */
  readonly onProgress?: (doneRecords: number, totalRecords: number) => void;
}

/**
 * Rebuilds the model at a cut, as many shards at once as the replayer has threads. After a failure no
 * further shard is begun.
 * @throws as `replayShard`.
 */
export async function replayModel(
  replayer: Replayer,
  cut: Cut,
  { shards, onProgress }: ReplayModelOptions = {},
): Promise<ReplayedModel> {
  const numbers = shards ?? cut.map((_, shard) => shard);
  const progress = new Map<number, readonly [done: number, total: number]>();
  const note = (shard: number, done: number, total: number): void => {
    progress.set(shard, [done, total]);
    let [doneRecords, totalRecords] = [0, 0];
    for (const [one, all] of progress.values()) {
      doneRecords += one;
      totalRecords += all;
    }
    onProgress?.(doneRecords, totalRecords);
  };
  const replay = async (shard: number) => {
    const to = cut[shard];
    return to === undefined ? [] : [await replayer.replay(shard, to, note)];
  };
  return new ReplayedModel((await mapConcurrently(numbers, replay, replayer.threads)).flat());
}
