import { mapConcurrently } from "../../actors/concurrent.ts";
import type { Cut } from "../points/point.ts";
import { ProgressSum } from "./progress-sum.ts";
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
  const sum = new ProgressSum((done, total) => onProgress?.(done, total));
  const replay = async (shard: number) => {
    const to = cut[shard];
    return to === undefined ? [] : [await replayer.replay(shard, to, sum.note)];
  };
  return new ReplayedModel((await mapConcurrently(numbers, replay, replayer.threads)).flat());
}
