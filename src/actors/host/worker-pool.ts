import { Worker } from "node:worker_threads";
import {
  ensureError,
  errorFromWire,
  type Fields,
  PserverError,
  type WireError,
} from "../../protocol/index.ts";
import type { ConnectionSettings } from "../../transport/connection.ts";
import type { JournalSettings } from "../journal/journal.ts";
import type { ContinuedShard } from "../journal/next-generation.ts";
import { addCounts, NO_COUNTS, type OwnerCounts } from "../owner/owner-counters.ts";
import type { ShardTrouble } from "../owner/serving-shard.ts";
import { WorkerThread } from "../worker-thread.ts";
import type { ConnectedNotice, ConnectedReceipt } from "./host-presence.ts";

/** How long a worker may take to connect, and to close. */
const START_MS = 60_000;
const CLOSE_MS = 5_000;

/** How long a shard that is being saved may make no progress: longer than the broker may take for one message. */
const SAVE_STALL_MS = 12_000;

/**
 * Memory for a worker's short-lived objects. V8 would take up to 48 MB before it collects garbage; tensors are
 * elsewhere. With less than this, the objects of a batch of a thousand blocks outlive several collections, and a host
 * that folds such batches takes a third more CPU time.
 */
const YOUNG_MB_MAX = 16;

/** Callbacks of {@link WorkerPool}. */
export interface WorkerPoolEvents {
  /** The connection of a worker that answers was made, or made anew. Leases name its broker when this returns. */
  readonly onConnected: (worker: number, broker: string) => void;
  readonly onServing: (shard: number) => void;
  readonly onRecovered: (recovered: ContinuedShard) => void;
  readonly onFellBack: (fallen: ContinuedShard) => void;
  readonly onTrouble: (type: ShardTrouble, shard: number, error: PserverError) => void;
  /** A worker thread has ended by itself: the host cannot go on. */
  readonly onCrash: (error: PserverError) => void;
}

/** A worker thread that owns shards. */
type HostThread = WorkerThread<WorkerCalls, WorkerEvent>;

/** The worker threads of a host, which share its shards evenly. */
export class WorkerPool {
  readonly #events: WorkerPoolEvents;
  readonly #threads: Set<HostThread> = new Set();
  readonly #shards: Map<number, HostThread> = new Map();
  readonly #reports: Map<HostThread, WorkerReport> = new Map();
  /** When each thread has last told anything, by the clock of this process. */
  readonly #heardMs: Map<HostThread, number> = new Map();
  #closing = false;

  constructor(events: WorkerPoolEvents) {
    this.#events = events;
  }

  /** Starts `count` workers; @throws the error of the first that cannot start. */
  async start(count: number, setup: Omit<WorkerSetup, "index">): Promise<void> {
    await Promise.all(
      Array.from({ length: count }, (_, index) => this.#startThread({ ...setup, index })),
    );
  }

  /** The last statuses of the shards, which workers send twice a second. */
  get statuses(): Fields[] {
    return [...this.#reports.values()].flatMap(({ statuses }) => statuses);
  }

  /** What the workers have counted, as they have last told. */
  get counts(): OwnerCounts {
    return [...this.#reports.values()].reduce(
      (sum, { counts }) => addCounts(sum, counts),
      NO_COUNTS,
    );
  }

  /** For how many milliseconds the worker that is silent for longest has told nothing. */
  get silentMs(): number {
    const nowMs = performance.now();
    return nowMs - Math.min(nowMs, ...this.#heardMs.values());
  }

  /**
   * Gives a shard, whose lease must be held, to the worker that owned it, or else to the one with the fewest shards.
   */
  own(shard: number): void {
    let thread = this.#shards.get(shard);
    if (thread === undefined) {
      const counts = new Map([...this.#threads].map((each) => [each, 0]));
      for (const each of this.#shards.values()) counts.set(each, (counts.get(each) ?? 0) + 1);
      const [least] = [...counts].sort(([, a], [, b]) => a - b);
      if (least === undefined) throw new PserverError("CLOSED", "the host has no workers");
      thread = least[0];
      this.#shards.set(shard, thread);
    }
    unawaited(thread.ask("own", shard));
  }

  /** Takes a shard from its worker, which stops answering for it. */
  disown(shard: number): void {
    const thread = this.#shards.get(shard);
    this.#shards.delete(shard);
    if (thread !== undefined) unawaited(thread.ask("disown", shard));
  }

  /**
   * Has the worker of a shard fold all that its journal holds, store a snapshot of that, and fold nothing more. The
   * shard's lease must stay held until then. `onProgress` is called now and then while there is progress.
   * @returns why the shard could not be saved; undefined if it was. TIMEOUT without progress for some seconds.
   */
  async save(shard: number, onProgress: () => void): Promise<PserverError | undefined> {
    const thread = this.#shards.get(shard);
    if (thread === undefined) return undefined;
    return await new Promise((resolve) => {
      const text = `shard ${shard}: no progress for ${SAVE_STALL_MS} ms`;
      const stall = setTimeout(() => end(new PserverError("TIMEOUT", text)), SAVE_STALL_MS);
      const end = (failure?: PserverError): void => {
        clearTimeout(stall);
        resolve(failure);
      };
      const progressed = (): void => {
        stall.refresh();
        onProgress();
      };
      thread.ask("save", shard, progressed).then(
        () => end(),
        (error: unknown) => end(ensureError(error)),
      );
    });
  }

  /** Closes all workers; one that does not react is terminated. */
  async close(): Promise<void> {
    this.#closing = true;
    await Promise.all([...this.#threads].map(closeThread));
  }

  async #startThread(setup: WorkerSetup): Promise<void> {
    const worker = new Worker(new URL("./host-worker.js", import.meta.url), {
      workerData: setup,
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB_MAX },
    });
    const thread: HostThread = new WorkerThread(worker, `worker ${setup.index}`, (event) => {
      if (event.type === "connected") this.#connected(thread, setup.index, event);
      else this.#receive(thread, event);
    });
    this.#threads.add(thread);
    void thread.ended.then((error) => {
      if (!this.#closing) this.#events.onCrash(error);
    });
    const text = `worker ${setup.index} did not start in ${START_MS} ms`;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => reject(new PserverError("TIMEOUT", text)), START_MS);
    });
    await Promise.race([thread.ready, late]).finally(() => clearTimeout(timer));
    this.#heardMs.set(thread, performance.now());
  }

  #connected(thread: HostThread, index: number, { broker, connection }: ConnectedNotice): void {
    this.#events.onConnected(index, broker);
    const namedSinceNs = process.hrtime.bigint();
    unawaited(thread.ask("named", { connection, namedSinceNs }));
  }

  #receive(thread: HostThread, event: Exclude<WorkerEvent, { type: "connected" }>): void {
    this.#heardMs.set(thread, performance.now());
    switch (event.type) {
      case "serving":
        this.#events.onServing(event.shard);
        break;
      case "statuses":
        this.#reports.set(thread, event);
        break;
      case "recovered":
        this.#events.onRecovered(event.continued);
        break;
      case "fell-back":
        this.#events.onFellBack(event.continued);
        break;
      default:
        this.#events.onTrouble(event.type, event.shard, errorFromWire(event.error));
    }
  }
}

/** What a worker has last told of itself. */
type WorkerReport = Extract<WorkerEvent, { type: "statuses" }>;

/** Waits for no answer of a thread: a request fails only if the thread ends, and the host with it. */
function unawaited(request: Promise<void>): void {
  request.catch(() => undefined);
}

async function closeThread(thread: HostThread): Promise<void> {
  const closed = new PserverError("CLOSED", "the host is being closed");
  const timer = setTimeout(() => void thread.stop(closed), CLOSE_MS);
  // A thread that has ended need not be closed.
  await thread.ask("close", undefined).catch(() => undefined);
  clearTimeout(timer);
  await thread.stop(closed);
}

/** Setup of a worker thread. */
export interface WorkerSetup {
  readonly connection: ConnectionSettings;
  /** Settings of the connection that answers. */
  readonly answerConnection: ConnectionSettings;
  readonly job: string;
  /** Whether requests may come from another account of the broker. */
  readonly acrossAccounts: boolean;
  readonly host: string;
  /** Names this run of the host. */
  readonly run: string;
  readonly index: number;
  readonly shards: number;
  readonly leaseMs: number;
  /** The buffer of the host's `LeaseClock`. */
  readonly leases: SharedArrayBuffer;
  readonly journal: JournalSettings;
  /** Whether the job has a tape. */
  readonly tape: boolean;
  /** Each shard's part of the bytes that the tape may have. */
  readonly tapeBytesMax: number;
  readonly retainBytes: number;
  readonly snapshotBytes: number;
  /** Journal bytes that may be under way to one shard. */
  readonly creditBytes: number;
  /** The buffer of the host's `HostMemory`, and the most that the host may use for values. */
  readonly memory: SharedArrayBuffer;
  readonly memoryLimitBytes: number | undefined;
  /** Whether trainers are counted one by one. */
  readonly countsTrainers: boolean;
}

/** Requests of the main thread to a worker. */
export interface WorkerCalls {
  /** Answers a notice of the worker's connection. */
  named(receipt: ConnectedReceipt): void;
  own(shard: number): void;
  disown(shard: number): void;
  /** Stores all of a shard whose journal may go with the broker; its lease is held until that is done. */
  save(shard: number): void;
  close(nothing: undefined): void;
}

/** Messages of a worker to the main thread. */
export type WorkerEvent =
  | ({ readonly type: "connected" } & ConnectedNotice)
  | { readonly type: "serving"; readonly shard: number }
  | { readonly type: ShardTrouble; readonly shard: number; readonly error: WireError }
  | { readonly type: "recovered" | "fell-back"; readonly continued: ContinuedShard }
  | {
      readonly type: "statuses";
      readonly statuses: readonly Fields[];
      readonly counts: OwnerCounts;
    };
