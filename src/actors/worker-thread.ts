import { type MessagePort, parentPort, type Transferable, type Worker } from "node:worker_threads";
import {
  ensureError,
  errorFromWire,
  type Fields,
  PserverError,
  type WireError,
} from "../protocol/index.ts";

// Calls between a thread and the worker threads that it starts. A kind of thread has an interface of methods with one
// argument; arguments, results and events are copied, and the buffer of a result that is a Uint8Array is moved.

type Argument<Call> = Call extends (argument: infer Value) => unknown ? Value : never;
type Result<Call> = Call extends (...values: never[]) => infer Value ? Value : never;

/** Reports how far the work on a call has come; each call defines what its numbers mean. */
export type Progress = (...counts: number[]) => void;

/** Functions that answer the calls of an interface in a worker thread. */
export type Handlers<Calls> = {
  readonly [Verb in keyof Calls]: (
    argument: Argument<Calls[Verb]>,
    progress: Progress,
  ) => Result<Calls[Verb]> | Promise<Result<Calls[Verb]>>;
};

/** A message to a worker thread. */
interface Call {
  readonly id: number;
  readonly verb: string;
  readonly argument: unknown;
}

/** A message of a worker thread; `id` is that of the call. */
type Reply =
  | { readonly kind: "ready" }
  | { readonly kind: "event"; readonly event: unknown }
  | { readonly kind: "progress"; readonly id: number; readonly counts: readonly number[] }
  | { readonly kind: "done"; readonly id: number; readonly result: unknown }
  | { readonly kind: "failed"; readonly id: number; readonly error: WireError };

/** A call that is not answered yet. */
interface OpenCall {
  readonly resolve: (result: never) => void;
  readonly reject: (error: PserverError) => void;
  readonly onProgress: Progress;
}

/** The part of a worker thread that calls need. */
export type CalledWorker = Pick<Worker, "on" | "postMessage" | "terminate">;

/** A worker thread that runs {@link serveThread}, seen from the thread that has started it. */
export class WorkerThread<Calls, Event = never> {
  /** Resolves when the thread answers calls; fails like {@link ask} if the thread ends before. */
  readonly ready: Promise<void>;
  /** Why the thread has ended; pending until then. */
  readonly ended: Promise<PserverError>;
  readonly #worker: CalledWorker;
  readonly #open: Map<number, OpenCall> = new Map();
  readonly #end: (reason: PserverError) => void;
  #ids = 0;
  #failure: PserverError | undefined;

  /** `name` names the thread in errors. `onEvent` is called with each event that the thread emits. */
  constructor(
    worker: CalledWorker,
    name: string,
    onEvent: (event: Event) => void = () => undefined,
  ) {
    this.#worker = worker;
    let end: (reason: PserverError) => void = () => undefined;
    this.ended = new Promise((resolve) => {
      end = resolve;
    });
    this.#end = end;
    this.ready = new Promise((resolve, reject) => {
      worker.on("message", (reply: Reply) => {
        if (reply.kind === "ready") resolve();
        else if (reply.kind === "event") onEvent(reply.event as Event);
        else this.#receive(reply);
      });
      void this.ended.then(reject);
    });
    // Nobody may wait for a thread that is never used: its failure is no unhandled rejection.
    this.ready.catch(() => undefined);
    worker.on("error", (error: Error) => this.#fail(fromThread(error)));
    worker.on("exit", (code) =>
      this.#fail(new PserverError("INTERNAL", `${name} ended with code ${code}`)),
    );
  }

  /**
   * Sends a call to the thread and returns the answer; waits until the thread is ready. Throws the error of the work,
   * or the error that ended the thread.
   */
  ask<Verb extends keyof Calls & string>(
    verb: Verb,
    argument: Argument<Calls[Verb]>,
    onProgress: Progress = () => undefined,
  ): Promise<Result<Calls[Verb]>> {
    return new Promise((resolve, reject) => {
      if (this.#failure !== undefined) return reject(this.#failure);
      this.#ids += 1;
      const call: Call = { id: this.#ids, verb, argument };
      this.#worker.postMessage(call);
      this.#open.set(call.id, { resolve, reject, onProgress });
    });
  }

  /** Ends the thread at once and frees its memory; open calls fail with `reason`. */
  async stop(reason: PserverError): Promise<void> {
    this.#fail(reason);
    await this.#worker.terminate();
  }

  #receive(reply: Exclude<Reply, { kind: "ready" | "event" }>): void {
    const call = this.#open.get(reply.id);
    if (reply.kind === "progress") {
      call?.onProgress(...reply.counts);
      return;
    }
    this.#open.delete(reply.id);
    if (reply.kind === "done") call?.resolve(reply.result as never);
    else call?.reject(errorFromWire(reply.error));
  }

  #fail(error: PserverError): void {
    this.#failure ??= error;
    this.#end(this.#failure);
    for (const { reject } of this.#open.values()) reject(this.#failure);
    this.#open.clear();
  }
}

/**
 * Answers the calls to this worker thread with the handlers that `start` returns, until the thread is ended. `start`
 * may send events with `emit`. If it fails, the thread ends with that error.
 */
export async function serveThread<Calls, Event = never>(
  start: (emit: (event: Event) => void) => Promise<Handlers<Calls>>,
  port: Pick<MessagePort, "on" | "postMessage"> | null = parentPort,
): Promise<void> {
  if (port === null) throw new PserverError("INTERNAL", "expected to run as a worker thread");
  const send = (reply: Reply, moved: readonly Transferable[] = []): void =>
    port.postMessage(reply, moved);
  const handlers = await start((event) => send({ kind: "event", event }));
  port.on("message", async ({ id, verb, argument }: Call) => {
    const progress: Progress = (...counts) => send({ kind: "progress", id, counts });
    try {
      const handle = handlers[verb as keyof Calls];
      const result = await handle(argument as never, progress);
      send(
        { kind: "done", id, result },
        result instanceof Uint8Array ? [result.buffer as ArrayBuffer] : [],
      );
    } catch (error) {
      send({ kind: "failed", id, error: ensureError(error).toWire() });
    }
  });
  send({ kind: "ready" });
}

/** Restores an error that ended a thread: its class is lost between threads, its code is not. */
function fromThread(error: Error): PserverError {
  const { code, details } = error as Error & { code?: unknown; details?: unknown };
  if (typeof code !== "string") return ensureError(error);
  return errorFromWire({ code, message: error.message, details: (details ?? {}) as Fields });
}
