import { availableParallelism } from "node:os";
import type { BlockHeader } from "../../actors/fold/block.ts";
import { ensureError, type Position, PserverError } from "../../protocol/index.ts";
import type { HistoryPlace } from "../open-history.ts";
import { ReplayThread } from "./replay-thread.ts";
import type { ReplayedShard } from "./replayed-shard.ts";
import type { OnShardProgress, Replayer } from "./replayer.ts";

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

  async replay(shard: number, to: Position, onProgress?: OnShardProgress): Promise<ReplayedShard> {
    const thread = await this.#take();
    try {
      const { id, result } = thread.ask({ kind: "replay", shard, to }, (done, total) =>
        onProgress?.(shard, done, total),
      );
      return new RemoteReplayedShard({ thread, replay: id, shard, to, blocks: await result });
    } finally {
      this.#giveBack(thread);
    }
  }

  async close(): Promise<void> {
    this.#removeListener();
    const closed = new PserverError("CLOSED", "the replay has been closed");
    await Promise.all(this.#threads.map((thread) => thread.stop(closed)));
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

/** Where a shard that a thread has rebuilt is. */
interface RemotePlace {
  readonly thread: ReplayThread;
  readonly replay: number;
  readonly shard: number;
  readonly to: Position;
  readonly blocks: readonly BlockHeader[];
}

/** A replayed shard of another thread. */
class RemoteReplayedShard implements ReplayedShard {
  readonly shard: number;
  readonly position: Position;
  readonly blocks: readonly BlockHeader[];
  readonly #place: RemotePlace;

  constructor(place: RemotePlace) {
    this.shard = place.shard;
    this.position = place.to;
    this.blocks = place.blocks;
    this.#place = place;
  }

  digest(): Promise<string> {
    const { thread, replay } = this.#place;
    return thread.ask({ kind: "digest", replay }).result;
  }

  slot(parameter: string, index: number, slot: number): Promise<Uint8Array<ArrayBuffer>> {
    const { thread, replay } = this.#place;
    return thread.ask({ kind: "slot", replay, parameter, index, slot }).result;
  }
}
