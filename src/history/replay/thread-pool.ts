import { availableParallelism } from "node:os";
import { ensureError, type Position, PserverError } from "../../protocol/index.ts";
import type { HistoryPlace } from "../open-history.ts";
import { RemoteReplayedShard } from "./remote-replayed-shard.ts";
import { ReplayThread } from "./replay-thread.ts";
import type { ReplayedShard } from "./replayed-shard.ts";
import type {
  OnShardProgress,
  Otherwise,
  OtherwiseShard,
  Replayer,
  VerifiedShard,
} from "./replayer.ts";

/**
 * Rebuilds shards on worker threads, one shard at a time on each. A thread opens the history by itself and
 * keeps the shards that it has rebuilt, of which blocks are then asked for one by one.
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
    const count = Math.max(1, Math.min(shards, availableParallelism()));
    const threads = Array.from({ length: count }, () => ReplayThread.start({ place }));
    const abort = (): void => {
      for (const thread of threads) void thread.stop(ensureError(signal.reason));
    };
    signal.addEventListener("abort", abort, { once: true });
    return new ThreadPool(threads, () => signal.removeEventListener("abort", abort));
  }

  replay(shard: number, to: Position, onProgress?: OnShardProgress): Promise<ReplayedShard> {
    return this.#work(async (thread) => {
      const { id, result } = thread.ask({ kind: "replay", shard, to }, (done, total) =>
        onProgress?.(shard, done, total),
      );
      return new RemoteReplayedShard(thread, id, shard, await result);
    });
  }

  verify(
    shard: number,
    from: Position | undefined,
    onProgress?: OnShardProgress,
  ): Promise<VerifiedShard> {
    return this.#work(async (thread) => {
      const { id, result } = thread.ask({ kind: "verify", shard, from }, (done, total) =>
        onProgress?.(shard, done, total),
      );
      const { verification, kept } = await result;
      return { verification, replayed: kept && new RemoteReplayedShard(thread, id, shard, kept) };
    });
  }

  foldOtherwise(
    shard: number,
    to: Position,
    otherwise: Otherwise,
    onProgress?: OnShardProgress,
  ): Promise<OtherwiseShard> {
    return this.#work(async (thread) => {
      const task = { kind: "otherwise", shard, to, otherwise } as const;
      const { id, result } = thread.ask(task, (done, total) => onProgress?.(shard, done, total));
      const { kept, counts } = await result;
      return { replayed: new RemoteReplayedShard(thread, id, shard, kept), counts };
    });
  }

  async close(): Promise<void> {
    this.#removeListener();
    const closed = new PserverError("CLOSED", "the replay has been closed");
    await Promise.all(this.#threads.map((thread) => thread.stop(closed)));
  }

  /** Runs long work on a thread that has none. */
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
