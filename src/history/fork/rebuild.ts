import type { Shard } from "../../actors/fold/shard.ts";
import { JobSubjects, type Position } from "../../protocol/index.ts";
import { replayShard } from "../replay/replay-shard.ts";
import type { HistorySource } from "../source.ts";

/** Makes a shard as it was at a position of its history. @throws the errors of `replayShard`. */
export type Rebuild = (shard: number, at: Position) => Promise<Shard>;

/** Rebuilds the shards of a source; `onProgress` is told now and then which one, and of how many records. */
export function rebuildFrom(
  source: HistorySource,
  signal: AbortSignal,
  onProgress: (shard: number, doneRecords: number, totalRecords: number) => void = () => undefined,
): Rebuild {
  const subjects = new JobSubjects(source.job);
  return (shard, at) =>
    replayShard(source.shard(shard), at, {
      ...{ subjects, signal },
      onProgress: (done, total) => onProgress(shard, done, total),
    });
}
