import { Worker } from "node:worker_threads";
import { fromThread } from "../../actors/thread-error.ts";
import { errorFromWire, PserverError } from "../../protocol/index.ts";
import type { FromThread, TaskResults, ThreadSetup, ThreadTask } from "./thread-messages.ts";

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
