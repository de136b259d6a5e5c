import { Worker } from "node:worker_threads";
import { errorFromWire, type Fields, PserverError, type WireError } from "../../protocol/index.ts";
import type { ConnectionSettings } from "../../transport/connection.ts";
import { fromThread } from "../concurrent.ts";
import type { JournalSettings } from "../journal/journal.ts";
import type { ShardTrouble } from "../owner/serving-shard.ts";
import type { AcceptedLoss } from "../recovery/accept-loss.ts";

/** How long a worker may take to connect, and to close. */
const START_MS = 15_000;
const CLOSE_MS = 5_000;

/** How long the saving of a shard may take without progress: longer than the broker may take for one message. */
const SAVE_STALL_MS = 12_000;

/**
 * Memory for a worker's short-lived objects. V8 would take up to 48 MB before it collects garbage; tensors are
 * elsewhere. With less than this, the objects of a batch of a thousand blocks outlive several collections, and a host
 * that folds such batches takes a third more CPU time.
 */
const YOUNG_MB_MAX = 16;

/** Callbacks of {@link WorkerPool}. */
export interface WorkerPoolEvents {
  readonly onServing: (shard: number) => void;
  readonly onTrouble: (type: ShardTrouble, shard: number, error: PserverError) => void;
  readonly onRecovered: (recovered: AcceptedLoss) => void;
  readonly onFellBack: (fallen: AcceptedLoss) => void;
  /** A worker thread has ended by itself: the host cannot go on. */
  readonly onCrash: (error: PserverError) => void;
}

/** The worker threads of a host, which share its shards evenly. */
export class WorkerPool {
  readonly #events: WorkerPoolEvents;
  /** Each worker with the promise of its end. */
  readonly #workers: Map<Worker, Promise<void>> = new Map();
  readonly #shards: Map<number, Worker> = new Map();
  readonly #statuses: Map<Worker, readonly Fields[]> = new Map();
  /** Shards that are being saved. */
  readonly #saves: Map<number, ShardSave> = new Map();
  #closing = false;

  constructor(events: WorkerPoolEvents) {
    this.#events = events;
  }

  /** Starts `count` workers; @throws the error of the first that cannot start. */
  async start(count: number, setup: Omit<WorkerSetup, "index">): Promise<void> {
    await Promise.all(
      Array.from({ length: count }, (_, index) => this.#startWorker({ ...setup, index })),
    );
  }

  /** The last statuses of the shards, which come twice a second. */
  get statuses(): Fields[] {
    return [...this.#statuses.values()].flat();
  }

  /** Gives a shard, whose lease must be held, to the worker that has it, or else to the one with the fewest. */
  own(shard: number): void {
    const current = this.#shards.get(shard);
    if (current !== undefined) {
      post(current, { type: "own", shard });
      return;
    }
    const counts = new Map([...this.#workers.keys()].map((worker) => [worker, 0]));
    for (const worker of this.#shards.values()) counts.set(worker, (counts.get(worker) ?? 0) + 1);
    const [least] = [...counts].sort(([, a], [, b]) => a - b);
    if (least === undefined) throw new PserverError("CLOSED", "the host has no workers");
    this.#shards.set(shard, least[0]);
    post(least[0], { type: "own", shard });
  }

  /** Takes a shard from its worker, which stops answering for it. */
  disown(shard: number): void {
    const worker = this.#shards.get(shard);
    this.#shards.delete(shard);
    if (worker !== undefined) post(worker, { type: "disown", shard });
  }

  /**
   * Has the worker of a shard fold all that its journal holds and store a snapshot of that, after which it folds
   * nothing more; the shard's lease must stay held meanwhile. `onProgress` is called now and then while it gets on.
   * @returns why the shard could not be saved; undefined if it was. TIMEOUT without progress for some seconds.
   */
  async save(shard: number, onProgress: () => void): Promise<PserverError | undefined> {
    const worker = this.#shards.get(shard);
    const exited = worker && this.#workers.get(worker);
    if (worker === undefined || exited === undefined) return undefined;
    const save = new ShardSave(shard, onProgress);
    this.#saves.set(shard, save);
    post(worker, { type: "save", shard });
    void exited.then(() =>
      save.end(new PserverError("CLOSED", `shard ${shard}: its worker has ended`, { shard })),
    );
    const failure = await save.ended;
    this.#saves.delete(shard);
    return failure;
  }

  /** Closes all workers; one that does not react is terminated. */
  async close(): Promise<void> {
    this.#closing = true;
    await Promise.all([...this.#workers].map(([worker, exited]) => closeWorker(worker, exited)));
  }

  #startWorker(setup: WorkerSetup): Promise<void> {
    const worker = new Worker(new URL("./host-worker.js", import.meta.url), {
      workerData: setup,
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB_MAX },
    });
    this.#workers.set(worker, new Promise((resolve) => worker.once("exit", () => resolve())));
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        reject(
          new PserverError("TIMEOUT", `worker ${setup.index} did not start in ${START_MS} ms`),
        );
      }, START_MS);
      const failed = (error: PserverError): void => {
        clearTimeout(timer);
        reject(error);
        if (!this.#closing) this.#events.onCrash(error);
      };
      worker.on("error", (error: Error) => failed(fromThread(error)));
      worker.on("exit", (code) =>
        failed(new PserverError("INTERNAL", `worker ${setup.index} ended with code ${code}`)),
      );
      worker.on("message", (message: FromWorker) => {
        if (message.type === "ready") {
          clearTimeout(timer);
          resolve();
        } else this.#receive(worker, message);
      });
    });
  }

  #receive(worker: Worker, message: Exclude<FromWorker, { type: "ready" }>): void {
    switch (message.type) {
      case "serving":
        this.#events.onServing(message.shard);
        break;
      case "saving":
        this.#saves.get(message.shard)?.progressed();
        break;
      case "saved":
        this.#saves.get(message.shard)?.end(message.error && errorFromWire(message.error));
        break;
      case "statuses":
        this.#statuses.set(worker, message.statuses);
        break;
      case "recovered": {
        const { shard, generation, fallbacks } = message;
        this.#events.onRecovered({ shard, generation, fallbacks });
        break;
      }
      case "fell-back": {
        const { shard, generation, fallbacks } = message;
        this.#events.onFellBack({ shard, generation, fallbacks });
        break;
      }
      default:
        this.#events.onTrouble(message.type, message.shard, errorFromWire(message.error));
    }
  }
}

/** A shard that is being saved: ends when its worker says so, or does not get on. */
class ShardSave {
  /** Why the shard was not saved; undefined if it was. */
  readonly ended: Promise<PserverError | undefined>;
  readonly end: (failure: PserverError | undefined) => void;
  readonly #onProgress: () => void;
  readonly #timer: NodeJS.Timeout;

  constructor(shard: number, onProgress: () => void) {
    let end: (failure: PserverError | undefined) => void = () => undefined;
    this.ended = new Promise((resolve) => {
      end = resolve;
    });
    const text = `shard ${shard}: no progress for ${SAVE_STALL_MS} ms`;
    this.#timer = setTimeout(() => this.end(new PserverError("TIMEOUT", text)), SAVE_STALL_MS);
    this.#onProgress = onProgress;
    this.end = (failure) => {
      clearTimeout(this.#timer);
      end(failure);
    };
  }

  progressed(): void {
    this.#timer.refresh();
    this.#onProgress();
  }
}

function post(worker: Worker, message: ToWorker): void {
  worker.postMessage(message);
}

async function closeWorker(worker: Worker, exited: Promise<void>): Promise<void> {
  post(worker, { type: "close" });
  const timer = setTimeout(() => void worker.terminate(), CLOSE_MS);
  await exited;
  clearTimeout(timer);
}

/** What a worker thread is started with. */
export interface WorkerSetup {
  readonly connection: ConnectionSettings;
  /** Settings of the connection that answers. */
  readonly answerConnection: ConnectionSettings;
  readonly job: string;
  /** Whether requests may come from another account of the broker. */
  readonly acrossAccounts: boolean;
  readonly host: string;
  readonly index: number;
  readonly shards: number;
  readonly leaseMs: number;
  /** The buffer of the host's `LeaseClock`. */
  readonly leases: SharedArrayBuffer;
  readonly journal: JournalSettings;
  /** Whether the job has a tape. */
  readonly tape: boolean;
  readonly retainBytes: number;
  readonly snapshotBytes: number;
  /** Journal bytes that may be under way to one shard. */
  readonly creditBytes: number;
  /** The buffer of the host's `HostMemory`, and the most that the host may use for values. */
  readonly memory: SharedArrayBuffer;
  readonly memoryLimitBytes: number | undefined;
}

/** Messages from the main thread to a worker. */
export type ToWorker =
  | { readonly type: "own"; readonly shard: number }
  | { readonly type: "disown"; readonly shard: number }
  /** Store all of a shard whose journal may go with the broker; its lease is held until that is done. */
  | { readonly type: "save"; readonly shard: number }
  | { readonly type: "close" };

/** Messages from a worker to the main thread. */
export type FromWorker =
  | { readonly type: "ready" }
  | { readonly type: "serving"; readonly shard: number }
  | { readonly type: ShardTrouble; readonly shard: number; readonly error: WireError }
  /** The work on a `save` has progressed; or it has ended, with an error unless the shard is stored. */
  | { readonly type: "saving"; readonly shard: number }
  | { readonly type: "saved"; readonly shard: number; readonly error?: WireError }
  | ({ readonly type: "recovered" | "fell-back" } & AcceptedLoss)
  | { readonly type: "statuses"; readonly statuses: readonly Fields[] };
