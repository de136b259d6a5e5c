import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";
import { fromThread } from "../../actors/concurrent.ts";
import type { BlockHeader } from "../../actors/fold/block-actor.ts";
import {
  ensureError,
  errorFromWire,
  type Position,
  PserverError,
  type WireError,
} from "../../protocol/index.ts";
import type { HistoryPlace } from "../open-journal.ts";
import type { ShardVerification } from "../verify.ts";
import type { ChangeCounts } from "../what-if.ts";
import type { ReplayedShard } from "./replayed-model.ts";
import type {
  OnShardProgress,
  Otherwise,
  OtherwiseShard,
  Replayer,
  VerifiedShard,
} from "./replayer.ts";

/** A replayed shard of another thread. */
class RemoteReplayedShard implements ReplayedShard {
  readonly shard: number;
  readonly #thread: ReplayThread;
  readonly #replay: number;
  #kept: KeptShard;

  /** `replay`: by which the thread knows it; `kept`: what the thread told of it. */
  constructor(thread: ReplayThread, replay: number, shard: number, kept: KeptShard) {
    this.shard = shard;
    this.#thread = thread;
    this.#replay = replay;
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
    const replay = this.#replay;
    this.#kept = await this.#thread.ask({ kind: "advance", replay, to }).result;
  }

  digest(): Promise<string> {
    return this.#thread.ask({ kind: "digest", replay: this.#replay }).result;
  }

  stateDigest(): Promise<string> {
    return this.#thread.ask({ kind: "state-digest", replay: this.#replay }).result;
  }

  blockDigest(parameter: string, index: number): Promise<string | undefined> {
    const replay = this.#replay;
    return this.#thread.ask({ kind: "block-digest", replay, parameter, index }).result;
  }

  slot(parameter: string, index: number, slot: number): Promise<Uint8Array<ArrayBuffer>> {
    const replay = this.#replay;
    return this.#thread.ask({ kind: "slot", replay, parameter, index, slot }).result;
  }

  async free(): Promise<void> {
    await this.#thread.ask({ kind: "free", replay: this.#replay }).result;
  }
}

/** A request that a thread works on. */
interface OpenRequest {
  readonly resolve: (result: never) => void;
  readonly reject: (error: PserverError) => void;
  readonly onProgress: (doneRecords: number, totalRecords: number) => void;
}

/** A request's id, by which a replay is named later, and its result. */
export interface Asked<Result> {
  readonly id: number;
  readonly result: Promise<Result>;
}

/** A worker thread that rebuilds shards and keeps them. */
export class ReplayThread {
  readonly #worker: Worker;
  readonly #open: Map<number, OpenRequest> = new Map();
  readonly #ready: Promise<void>;
  #ids = 0;
  #failure: PserverError | undefined;

  private constructor(worker: Worker) {
    this.#worker = worker;
    this.#ready = new Promise((resolve, reject) => {
      worker.on("message", (message: FromThread) => {
        if (message.kind === "ready") resolve();
        else this.#receive(message);
      });
      const ended = (error: PserverError): void => {
        reject(error);
        this.#fail(error);
      };
      worker.on("error", (error: Error) => ended(fromThread(error)));
      worker.on("exit", () => ended(new PserverError("CLOSED", "the replay thread has ended")));
    });
    // A thread that is never used may fail unnoticed.
    this.#ready.catch(() => undefined);
  }

  /** Starts a thread; the caller stops it. */
  static start(setup: ThreadSetup): ReplayThread {
    const worker = new Worker(new URL("./replay-worker.js", import.meta.url), {
      workerData: setup,
    });
    return new ReplayThread(worker);
  }

  /** Gives the thread a task. The result fails with what the thread or its task fails with. */
  ask<Kind extends ThreadTask["kind"]>(
    task: ThreadTask & { readonly kind: Kind },
    onProgress: OpenRequest["onProgress"] = () => undefined,
  ): Asked<TaskResults[Kind]> {
    this.#ids += 1;
    const id = this.#ids;
    const result = this.#ready.then(
      () =>
        new Promise<TaskResults[Kind]>((resolve, reject) => {
          if (this.#failure !== undefined) return reject(this.#failure);
          this.#open.set(id, { resolve, reject, onProgress });
          this.#worker.postMessage({ id, task });
        }),
    );
    return { id, result };
  }

  /** Ends the thread at once, with all that it keeps; open requests fail with `reason`. */
  async stop(reason: PserverError): Promise<void> {
    this.#fail(reason);
    await this.#worker.terminate();
  }

  #receive(message: Exclude<FromThread, { kind: "ready" }>): void {
    const request = this.#open.get(message.id);
    if (message.kind === "progress") {
      request?.onProgress(message.doneRecords, message.totalRecords);
      return;
    }
    this.#open.delete(message.id);
    if (message.kind === "done") request?.resolve(message.result as never);
    else request?.reject(errorFromWire(message.error));
  }

  #fail(error: PserverError): void {
    this.#failure ??= error;
    for (const { reject } of this.#open.values()) reject(this.#failure);
    this.#open.clear();
  }
}

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

/** What a replay thread is started with. */
export interface ThreadSetup {
  readonly place: HistoryPlace;
}

/** A shard that a thread has rebuilt: known by the `id` of the request for it. */
export interface KeptShard {
  readonly position: Position;
  readonly blocks: readonly BlockHeader[];
}

/** Work for a replay thread; `replay` is the id of an earlier request. */
export type ThreadTask =
  | { readonly kind: "replay"; readonly shard: number; readonly to: Position }
  | { readonly kind: "verify"; readonly shard: number; readonly from: Position | undefined }
  | {
      readonly kind: "otherwise";
      readonly shard: number;
      readonly to: Position;
      readonly otherwise: Otherwise;
    }
  | { readonly kind: "advance"; readonly replay: number; readonly to: Position }
  | { readonly kind: "digest" | "state-digest" | "free"; readonly replay: number }
  | {
      readonly kind: "block-digest";
      readonly replay: number;
      readonly parameter: string;
      readonly index: number;
    }
  | {
      readonly kind: "slot";
      readonly replay: number;
      readonly parameter: string;
      readonly index: number;
      readonly slot: number;
    };

/** A message to a replay thread. */
export interface ToThread {
  readonly id: number;
  readonly task: ThreadTask;
}

/** What a task of each kind results in. */
export interface TaskResults {
  readonly replay: KeptShard;
  readonly verify: {
    readonly verification: ShardVerification;
    readonly kept: KeptShard | undefined;
  };
  readonly otherwise: { readonly kept: KeptShard; readonly counts: ChangeCounts };
  readonly advance: KeptShard;
  readonly free: undefined;
  readonly digest: string;
  readonly "state-digest": string;
  readonly "block-digest": string | undefined;
  readonly slot: Uint8Array<ArrayBuffer>;
}

/** A message of a replay thread; `id` is that of the request. */
export type FromThread =
  | { readonly kind: "ready" }
  | {
      readonly kind: "progress";
      readonly id: number;
      readonly doneRecords: number;
      readonly totalRecords: number;
    }
  | { readonly kind: "done"; readonly id: number; readonly result: TaskResults[keyof TaskResults] }
  | { readonly kind: "failed"; readonly id: number; readonly error: WireError };
