import { mapConcurrently } from "../../actors/concurrent.ts";
import { JobSubjects, type Position } from "../../protocol/index.ts";
import type { Cut } from "../points.ts";
import type { HistorySource } from "../source.ts";
import { type ShardVerification, verifyShard } from "../verify.ts";
import { type ChangeCounts, type FoldChanges, foldWhatIf } from "../what-if.ts";
import { replayShard } from "./replay-shard.ts";
import { LocalReplayedShard, ReplayedModel, type ReplayedShard } from "./replayed-model.ts";

/** Called now and then with the number of records of a shard that are folded, of those to fold. */
export type OnShardProgress = (shard: number, doneRecords: number, totalRecords: number) => void;

/** Result of a verification, and the shard at its end; undefined if damage hides it. */
export interface VerifiedShard {
  readonly verification: ShardVerification;
  readonly replayed: ReplayedShard | undefined;
}

/** Changes with which a shard is folded, and the position after which they hold. */
export interface WhatIf {
  readonly changes: FoldChanges;
  readonly from: Position | undefined;
}

/** A shard that was folded with changes, and how many records were changed. */
export interface WhatIfShard {
  readonly replayed: ReplayedShard;
  readonly counts: ChangeCounts;
}

/** Rebuilds shards, in this thread or in others. */
export interface Replayer {
  /** Number of threads that it can keep busy. */
  readonly threads: number;
  /** Rebuilds a shard; @throws as `replayShard`. */
  replay(shard: number, to: Position, onProgress?: OnShardProgress): Promise<ReplayedShard>;
  /** Folds all that is kept of a shard, from a position on; @throws as `verifyShard`. */
  verify(
    shard: number,
    from: Position | undefined,
    onProgress?: OnShardProgress,
  ): Promise<VerifiedShard>;
  /** Rebuilds a shard from changed records; @throws as `foldWhatIf`. */
  foldWhatIf(
    shard: number,
    to: Position,
    whatIf: WhatIf,
    onProgress?: OnShardProgress,
  ): Promise<WhatIfShard>;
  /** Frees the shards that were rebuilt. */
  close(): Promise<void>;
}

/** Rebuilds shards in this thread. */
export class LocalReplayer implements Replayer {
  readonly threads = 1;
  readonly #source: HistorySource;
  readonly #signal: AbortSignal;

  /** `source` stays the caller's. */
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

  async foldWhatIf(shard: number, to: Position, whatIf: WhatIf, onProgress?: OnShardProgress) {
    const history = this.#source.shard(shard);
    const options = { ...this.#options(shard, onProgress), ...whatIf };
    const { shard: state, counts } = await foldWhatIf(history, to, options);
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

/** Adds up the progress of several shards. */
export class ProgressSum {
  readonly #onProgress: (doneRecords: number, totalRecords: number) => void;
  readonly #shards: Map<number, readonly [done: number, total: number]> = new Map();

  constructor(onProgress: (doneRecords: number, totalRecords: number) => void) {
    this.#onProgress = onProgress;
  }

  /** Notes the progress of a shard, and reports the sum. */
  readonly note = (shard: number, doneRecords: number, totalRecords: number): void => {
    this.#shards.set(shard, [doneRecords, totalRecords]);
    let [allDone, allTotal] = [0, 0];
    for (const [done, total] of this.#shards.values()) {
      allDone += done;
      allTotal += total;
    }
    this.#onProgress(allDone, allTotal);
  };
}

/** Options of {@link replayModel}. */
export interface ReplayModelOptions {
  /** Only these shards; by default all. */
  readonly shards?: readonly number[];
  /** Called with the number of records folded in all shards, of those to fold as far as that is known. */
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

/** The part of a history that is folded with changes. */
export interface WhatIfSpan {
  /** Records after this cut are changed; by default all that lead to the end. */
  readonly from: Cut | undefined;
  readonly to: Cut;
}

/**
 * Rebuilds the model as it would have been at the end of a span if its records had been others.
 * @throws as `foldWhatIf`.
 */
export async function modelWhatIf(
  replayer: Replayer,
  { from, to }: WhatIfSpan,
  changes: FoldChanges,
  onProgress: (doneRecords: number, totalRecords: number) => void = () => undefined,
): Promise<{ model: ReplayedModel; counts: ChangeCounts }> {
  const sum = new ProgressSum(onProgress);
  const folded = await mapConcurrently(
    [...to.entries()],
    ([shard, position]) =>
      replayer.foldWhatIf(shard, position, { changes, from: from?.[shard] }, sum.note),
    replayer.threads,
  );
  let [leftOut, changed] = [0, 0];
  for (const { counts } of folded) {
    leftOut += counts.leftOut;
    changed += counts.changed;
  }
  const model = new ReplayedModel(folded.map(({ replayed }) => replayed));
  return { model, counts: { leftOut, changed } };
}
