import { JobSubjects, type Position } from "../../protocol/index.ts";
import type { HistorySource } from "../source.ts";
import { type ShardVerification, verifyShard } from "../verify.ts";
import { type ChangeCounts, type FoldChanges, foldOtherwise } from "../what-if.ts";

import { replayShard } from "./replay-shard.ts";
import { LocalReplayedShard, type ReplayedShard } from "./replayed-model.ts";

/** Told now and then how many records of a shard are folded, of those to fold. */
export type OnShardProgress = (shard: number, doneRecords: number, totalRecords: number) => void;

/** What a verification found out, and the shard at its end; undefined if damage hides it. */
export interface VerifiedShard {
  readonly verification: ShardVerification;
  readonly replayed: ReplayedShard | undefined;
}

/** What is folded otherwise, and after which position. */
export interface Otherwise {
  readonly changes: FoldChanges;
  readonly from: Position | undefined;
}

/** A shard that was folded otherwise, and how many records were changed. */
export interface OtherwiseShard {
  readonly replayed: ReplayedShard;
  readonly counts: ChangeCounts;
}

/** Rebuilds shards, wherever that happens. */
export interface Replayer {
  /** Threads that it keeps busy. */
  readonly threads: number;
  /** Rebuilds a shard; @throws as `replayShard`. */
  replay(shard: number, to: Position, onProgress?: OnShardProgress): Promise<ReplayedShard>;
  /** Folds all that is kept of a shard, from a position on; @throws as `verifyShard`. */
  verify(
    shard: number,
    from: Position | undefined,
    onProgress?: OnShardProgress,
  ): Promise<VerifiedShard>;
  /** Rebuilds a shard from changed records; @throws as `foldOtherwise`. */
  foldOtherwise(
    shard: number,
    to: Position,
    otherwise: Otherwise,
    onProgress?: OnShardProgress,
  ): Promise<OtherwiseShard>;
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

  async replay(
    shard: number,
    to: Position,
    onProgress?: OnShardProgress,
  ): Promise<LocalReplayedShard> {
    const history = this.#source.shard(shard);
    const state = await replayShard(history, to, this.#options(shard, onProgress));
    return new LocalReplayedShard(state, to.generation, history, this.#signal);
  }

  async verify(shard: number, from: Position | undefined, onProgress?: OnShardProgress) {
    const history = this.#source.shard(shard);
    const { verification, end } = await verifyShard(history, {
      ...this.#options(shard, onProgress),
      from,
    });
    const replayed =
      end && new LocalReplayedShard(end.shard, end.generation, history, this.#signal);
    return { verification, replayed };
  }

  async foldOtherwise(
    shard: number,
    to: Position,
    otherwise: Otherwise,
    onProgress?: OnShardProgress,
  ) {
    const history = this.#source.shard(shard);
    const options = { ...this.#options(shard, onProgress), ...otherwise };
    const { shard: state, counts } = await foldOtherwise(history, to, options);
    const replayed = new LocalReplayedShard(state, to.generation, history, this.#signal);
    return { replayed, counts };
  }

  async close(): Promise<void> {
    // Its shards go with the last reference to them.
  }

  #options(shard: number, onProgress: OnShardProgress | undefined) {
    return {
      subjects: new JobSubjects(this.#source.job),
      signal: this.#signal,
      ...(onProgress && {
        onProgress: (done: number, total: number) => onProgress(shard, done, total),
      }),
    };
  }
}
