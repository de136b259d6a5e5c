import { JobSubjects, type Position } from "../../protocol/index.ts";
import type { HistorySource } from "../source.ts";
import { replayShard } from "./replay-shard.ts";
import { LocalReplayedShard, type ReplayedShard } from "./replayed-shard.ts";

/** Told now and then how many records of a shard are folded, of those to fold. */
export type OnShardProgress = (shard: number, doneRecords: number, totalRecords: number) => void;

/** Rebuilds shards, wherever that happens. */
export interface Replayer {
  /** Threads that it keeps busy. */
  readonly threads: number;
  /** Rebuilds a shard; @throws as `replayShard`. */
  replay(shard: number, to: Position, onProgress?: OnShardProgress): Promise<ReplayedShard>;
  /** Frees the shards that were rebuilt. */
  close(): Promise<void>;
}

/** Rebuilds shards in this thread. */
export class LocalReplayer implements Replayer {
  readonly threads = 1;
  readonly #source: HistorySource;
  readonly #signal: AbortSignal;

  /** The source stays the caller's. */
  constructor(source: HistorySource, signal: AbortSignal) {
    this.#source = source;
    this.#signal = signal;
  }

  async replay(shard: number, to: Position, onProgress?: OnShardProgress): Promise<ReplayedShard> {
    const state = await replayShard(this.#source.shard(shard), to, {
      subjects: new JobSubjects(this.#source.job),
      signal: this.#signal,
      ...(onProgress && { onProgress: (done, total) => onProgress(shard, done, total) }),
    });
    return new LocalReplayedShard(shard, to, state);
  }

  async close(): Promise<void> {
    // Its shards go with the last reference to them.
  }
}
