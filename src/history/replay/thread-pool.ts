import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";
import type { BlockHeader } from "../../actors/fold/block-actor.ts";
import { type Progress, WorkerThread } from "../../actors/worker-thread.ts";
import {
  ensureError,
  type Position,
  PserverError,
  type ShardKnowledge,
} from "../../protocol/index.ts";
import type { HistoryPlace } from "../source.ts";
import type { ShardVerification } from "../verify.ts";
import type { ChangeCounts } from "../what-if.ts";
import type { ReplayedShard } from "./replayed-model.ts";
import type { OnShardProgress, Replayer, VerifiedShard, WhatIf, WhatIfShard } from "./replayer.ts";

/** Setup of a replay thread. */
export interface ThreadSetup {
  readonly place: HistoryPlace;
}

/** A shard that a thread has rebuilt and keeps. */
export interface KeptShard {
  /** Number by which the thread knows it. */
  readonly replay: number;
  readonly position: Position;
  readonly blocks: readonly BlockHeader[];
}

/** Requests to a replay thread. Its progress is the number of records folded, of those to fold. */
export interface ReplayCalls {
  replay(task: { readonly shard: number; readonly to: Position }): KeptShard;
  verify(task: { readonly shard: number; readonly from: Position | undefined }): {
    readonly verification: ShardVerification;
    readonly kept: KeptShard | undefined;
  };
  foldWhatIf(task: { readonly shard: number; readonly to: Position; readonly whatIf: WhatIf }): {
    readonly kept: KeptShard;
    readonly counts: ChangeCounts;
  };
  advance(task: { readonly replay: number; readonly to: Position }): KeptShard;
  known(replay: number): ShardKnowledge;
  digest(replay: number): string;
  stateDigest(replay: number): string;
  blockDigest(block: {
    readonly replay: number;
    readonly parameter: string;
    readonly index: number;
  }): string | undefined;
  slot(slot: {
    readonly replay: number;
    readonly parameter: string;
    readonly index: number;
    readonly slot: number;
  }): Uint8Array<ArrayBuffer>;
  free(replay: number): void;
}

/** A worker thread that rebuilds shards and keeps them. */
type ReplayThread = WorkerThread<ReplayCalls>;

/** A replayed shard of another thread. */
class RemoteReplayedShard implements ReplayedShard {
  readonly shard: number;
  readonly #thread: ReplayThread;
  #kept: KeptShard;

  constructor(thread: ReplayThread, shard: number, kept: KeptShard) {
    this.shard = shard;
    this.#thread = thread;
    this.#kept = kept;
  }

  get position(): Position {
    return this.#kept.position;
  }

  get blocks(): readonly BlockHeader[] {
    return this.#kept.blocks;
  }

  async advance(to: Position): Promise<void> {
    const { generation, seq } = this.position;
    if (generation === to.generation && seq >= to.seq) return;
    this.#kept = await this.#thread.ask("advance", { replay: this.#kept.replay, to });
  }

  known(): Promise<ShardKnowledge> {
    return this.#thread.ask("known", this.#kept.replay);
  }

  digest(): Promise<string> {
    return this.#thread.ask("digest", this.#kept.replay);
  }

  stateDigest(): Promise<string> {
    return this.#thread.ask("stateDigest", this.#kept.replay);
  }

  blockDigest(parameter: string, index: number): Promise<string | undefined> {
    return this.#thread.ask("blockDigest", { replay: this.#kept.replay, parameter, index });
  }

  slot(parameter: string, index: number, slot: number): Promise<Uint8Array<ArrayBuffer>> {
    return this.#thread.ask("slot", { replay: this.#kept.replay, parameter, index, slot });
  }

  async free(): Promise<void> {
    await this.#thread.ask("free", this.#kept.replay);
  }
}

/**
 * Rebuilds shards on worker threads, one shard at a time on each. A thread opens the history by itself and keeps the
 * shards that it has rebuilt; their blocks are then requested one by one.
 */
export class ThreadPool implements Replayer {
  readonly threads: number;
  readonly #threads: readonly ReplayThread[];
  readonly #idle: ReplayThread[];
  readonly #waiting: ((thread: ReplayThread) => void)[] = [];
  readonly #removeListener: () => void;

  private constructor(threads: readonly ReplayThread[], removeListener: () => void) {
    this.threads = threads.length;
    this.#threads = threads;
    this.#idle = [...threads];
    this.#removeListener = removeListener;
  }

  /**
   * Starts threads for so many shards, at most one for each processor. An abort of the signal ends all of
   * them. The caller closes the pool.
   */
  static start(place: HistoryPlace, shards: number, signal: AbortSignal): ThreadPool {
    signal.throwIfAborted();
    const workerData: ThreadSetup = { place };
    const threads = Array.from(
      { length: Math.max(1, Math.min(shards, availableParallelism())) },
      (): ReplayThread => {
        const worker = new Worker(new URL("./replay-worker.js", import.meta.url), { workerData });
        return new WorkerThread(worker, "the replay thread");
      },
    );
    const abort = (): void => {
      for (const thread of threads) void thread.stop(ensureError(signal.reason));
    };
    signal.addEventListener("abort", abort, { once: true });
    return new ThreadPool(threads, () => signal.removeEventListener("abort", abort));
  }

  replay(shard: number, to: Position, onProgress?: OnShardProgress): Promise<ReplayedShard> {
    return this.#work(async (thread) => {
      const kept = await thread.ask("replay", { shard, to }, progressOf(shard, onProgress));
      return new RemoteReplayedShard(thread, shard, kept);
    });
  }

  verify(
    shard: number,
    from: Position | undefined,
    onProgress?: OnShardProgress,
  ): Promise<VerifiedShard> {
    return this.#work(async (thread) => {
      const progress = progressOf(shard, onProgress);
      const { verification, kept } = await thread.ask("verify", { shard, from }, progress);
      return { verification, replayed: kept && new RemoteReplayedShard(thread, shard, kept) };
    });
  }

  foldWhatIf(
    shard: number,
    to: Position,
    whatIf: WhatIf,
    onProgress?: OnShardProgress,
  ): Promise<WhatIfShard> {
    return this.#work(async (thread) => {
      const task = { shard, to, whatIf };
      const progress = progressOf(shard, onProgress);
      const { kept, counts } = await thread.ask("foldWhatIf", task, progress);
      return { replayed: new RemoteReplayedShard(thread, shard, kept), counts };
    });
  }

  async close(): Promise<void> {
    this.#removeListener();
    const closed = new PserverError("CLOSED", "the replay has been closed");
    await Promise.all(this.#threads.map((thread) => thread.stop(closed)));
  }

  /** Runs long work on a thread that is idle. */
  async #work<Result>(run: (thread: ReplayThread) => Promise<Result>): Promise<Result> {
    const thread = await this.#take();
    try {
      return await run(thread);
    } finally {
      this.#giveBack(thread);
    }
  }

  #take(): Promise<ReplayThread> {
    const thread = this.#idle.shift();
    if (thread !== undefined) return Promise.resolve(thread);
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  #giveBack(thread: ReplayThread): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#idle.push(thread);
    else next(thread);
  }
}

function progressOf(shard: number, onProgress: OnShardProgress | undefined): Progress {
  return (done = 0, total = 0) => onProgress?.(shard, done, total);
}
