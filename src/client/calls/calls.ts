import type { Encoding, TensorData } from "../../protocol/dtypes.ts";
import { type ErrorCode, ensureError, PserverError } from "../../protocol/errors.ts";
import type { Tensor } from "../../protocol/tensor.ts";
import type { ClientStats } from "../client-stats.ts";

/** Options of every call. */
export interface CallOptions {
  /**
   * Timeout of the whole call. Without it a call ends when it has made no progress for 30,000 ms, or what the call
   * states: bytes that come or go, acknowledgements and answers are progress.
   */
  readonly timeoutMs?: number;
  /** Ends the call with `ABORTED`. */
  readonly signal?: AbortSignal;
}

/** How long a call without `timeoutMs` may make no progress. */
const CALL_TIMEOUT_MS = 30_000;

/** The longest delay a timer of Node.js can have. */
const TIMEOUT_MS_MAX = 2 ** 31 - 1;

/**
 * The end of a call: by its timeout, by its caller, or with the client. Everything that a call waits for
 * listens to it, so that no part of a call outlives the call.
 */
export class Deadline {
  /** Name of the call, for messages. */
  readonly what: string;
  readonly #timeoutMs: number;
  /** Whether progress gives the call the whole timeout again. */
  readonly #followsProgress: boolean;
  #endsAtMs: number;
  readonly #listeners = new Set<(error: PserverError) => void>();
  readonly #signal: AbortSignal | undefined;
  #timer: NodeJS.Timeout | undefined;
  #ended: PserverError | undefined;
  /** Returns why the call's request is not answered yet: the last error after which it is sent again. */
  obstacle: () => PserverError | undefined = () => undefined;

  private constructor(what: string, timeoutMs: number, options: CallOptions) {
    this.what = what;
    this.#timeoutMs = timeoutMs;
    this.#followsProgress = options.timeoutMs === undefined;
    this.#endsAtMs = performance.now() + timeoutMs;
    this.#signal = options.signal;
    this.#arm();
    options.signal?.addEventListener("abort", this.#onAbort);
  }

  /**
   * Begins a call; {@link dispose} must be called when it is over.
   * @throws BAD_VALUE if `timeoutMs` is out of range, ABORTED if the signal is aborted already.
   */
  static start(
    what: string,
    options: CallOptions = {},
    defaultMs: number = CALL_TIMEOUT_MS,
  ): Deadline {
    const { timeoutMs = defaultMs, signal } = options;
    if (!(timeoutMs > 0 && timeoutMs <= TIMEOUT_MS_MAX)) {
      throw new PserverError(
        "BAD_VALUE",
        `${what}: timeoutMs: expected more than 0 and at most ${TIMEOUT_MS_MAX}; received ${String(timeoutMs)}`,
        { expected: `0..${TIMEOUT_MS_MAX}`, received: String(timeoutMs) },
      );
    }
    if (signal?.aborted) throw aborted(what, signal);
    return new Deadline(what, timeoutMs, options);
  }

  /** Why the call has ended; undefined while it may go on. */
  get ended(): PserverError | undefined {
    return this.#ended;
  }

  /** The time left, never below 0. */
  get remainingMs(): number {
    return this.#ended === undefined ? Math.max(0, this.#endsAtMs - performance.now()) : 0;
  }

  /** Notes that the call has made progress, after which it has its whole time again unless its caller has set one. */
  progressed(): void {
    if (this.#followsProgress) this.#endsAtMs = performance.now() + this.#timeoutMs;
  }

  /**
   * Returns whether the call can sleep for this delay. Also true if it has ended by anything but its timeout:
   * sleeping then fails with that error, which says more than the error that the caller would report.
   */
  allows(delayMs: number): boolean {
    return this.#ended === undefined ? this.remainingMs > delayMs : this.#ended.code !== "TIMEOUT";
  }

  /** Ends the call with an error; only the first end counts. */
  end(error: PserverError): void {
    if (this.#ended !== undefined) return;
    this.#ended = error;
    this.#clear();
    for (const listener of [...this.#listeners]) listener(error);
    this.#listeners.clear();
  }

  /** Calls `listener` when the call ends, at once if it has. Returns what stops listening. */
  onEnd(listener: (error: PserverError) => void): () => void {
    if (this.#ended !== undefined) {
      listener(this.#ended);
      return () => {};
    }
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  /** Waits for a time; @throws what ended the call, if it ends first. */
  sleep(ms: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        stopListening();
        resolve();
      }, ms);
      const stopListening = this.onEnd((error) => {
        clearTimeout(timer);
        reject(error);
      });
    });
  }

  /**
   * Returns the result of `work`. `other` is the deadline of the request that it waits for, if several calls share
   * that. @throws what ended the call, if it ends first: at its timeout, the request's obstacle.
   */
  race<T>(work: Promise<T>, other?: () => Deadline | undefined): Promise<T> {
    return new Promise((resolve, reject) => {
      const stopListening = this.onEnd((end) => reject(orObstacle(end, other?.()?.obstacle())));
      work.finally(stopListening).then(resolve, reject);
    });
  }

  /** Releases the timer and the signal when the call is over. */
  dispose(): void {
    this.#clear();
    this.#listeners.clear();
  }

  #arm(): void {
    this.#timer = setTimeout(() => {
      if (this.#followsProgress && this.remainingMs > 0) this.#arm();
      else this.end(this.#timedOut());
    }, this.remainingMs);
  }

  #timedOut(): PserverError {
    const timeoutMs = this.#timeoutMs;
    const text = this.#followsProgress ? "no progress within" : "not finished within";
    return new PserverError("TIMEOUT", `${this.what}: ${text} ${timeoutMs} ms`, { timeoutMs });
  }

  readonly #onAbort = (): void => {
    if (this.#signal !== undefined) this.end(aborted(this.what, this.#signal));
  };

  #clear(): void {
    clearTimeout(this.#timer);
    this.#signal?.removeEventListener("abort", this.#onAbort);
  }
}

/** Returns the error of what a call waited for, at the call's end: at its timeout, the last obstacle. */
export function orObstacle(end: PserverError, last: PserverError | undefined): PserverError {
  if (end.code !== "TIMEOUT" || last === undefined) return end;
  const { code, message, details } = last;
  return new PserverError(code, `${end.message}; last: ${message}`, details, { cause: end });
}

function aborted(what: string, signal: AbortSignal): PserverError {
  return new PserverError(
    "ABORTED",
    `${what}: aborted by the caller`,
    {},
    { cause: signal.reason },
  );
}

const FIRST_MS = 50;
const MAX_MS = 500;

/**
 * Growing delays between attempts: from 50 ms, doubled up to 500 ms, each shortened at random by up to a
 * quarter so that trainers that failed together do not retry together.
 */
export class Backoff {
  #nextMs = FIRST_MS;

  /** Returns the delay before the next attempt. */
  nextMs(): number {
    const baseMs = this.#nextMs;
    this.#nextMs = Math.min(baseMs * 2, MAX_MS);
    return baseMs * (0.75 + Math.random() * 0.25);
  }
}

const UNITS_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

/**
 * Parses a duration as the `nats` command takes it, such as `5s`, `500ms` or `1m30s`; returns milliseconds.
 * @throws BAD_VALUE for any other text.
 */
export function parseDuration(text: string, what: string): number {
  if (/^(?:\d+(?:\.\d+)?(?:ms|s|m|h))+$/.test(text)) {
    let totalMs = 0;
    for (const [, count = "", unit = ""] of text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h)/g)) {
      totalMs += Number(count) * (UNITS_MS[unit] ?? 0);
    }
    if (totalMs > 0) return totalMs;
  }
  throw new PserverError(
    "BAD_VALUE",
    `${what}: expected a duration such as 5s or 500ms; received ${JSON.stringify(text)}`,
    { expected: "a duration", received: text },
  );
}

/** Waits for all promises, so that none outlives the call. @throws the first error. */
export async function allOrFirstError<T>(work: readonly Promise<T>[]): Promise<T[]> {
  const [only] = work;
  if (work.length === 1 && only !== undefined) return [await only];
  const results = Promise.all(work);
  await Promise.allSettled([results, ...work]);
  return await results;
}

/** The calls under way. Each has a deadline, and all end when the client does. */
export class Calls {
  readonly #running = new Set<Deadline>();
  readonly #idle = new Set<() => void>();
  readonly #failed = new Map<ErrorCode, number>();
  #ended = 0;
  #failure: PserverError | undefined;
  #closing = false;

  /** The error that ended the client; undefined while it can be used. */
  get failure(): PserverError | undefined {
    return this.#failure;
  }

  /** How many calls have ended, and how many of these have failed, by code. */
  get counts(): Pick<ClientStats, "calls" | "failed"> {
    return { calls: this.#ended, failed: Object.fromEntries(this.#failed) };
  }

  /**
   * Runs a call under its deadline.
   * @throws CLOSED after {@link close}, or the error that ended the client.
   */
  async run<T>(
    what: string,
    options: CallOptions | undefined,
    call: (deadline: Deadline) => Promise<T>,
    defaultMs?: number,
  ): Promise<T> {
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#closing) throw closed(what);
    const deadline = Deadline.start(what, options, defaultMs);
    this.#running.add(deadline);
    try {
      return await call(deadline);
    } catch (thrown) {
      const error = ensureError(thrown);
      this.#failed.set(error.code, (this.#failed.get(error.code) ?? 0) + 1);
      throw error;
    } finally {
      this.#ended += 1;
      deadline.dispose();
      this.#running.delete(deadline);
      if (this.#running.size === 0) for (const wake of this.#idle) wake();
    }
  }

  /** Ends every call with an error and refuses all later ones with it. */
  fail(error: PserverError): void {
    if (this.#failure !== undefined) return;
    this.#failure = error;
    for (const deadline of this.#running) deadline.end(error);
  }

  /** Refuses new calls, waits for those under way until the deadline, then ends them. */
  async close(deadline: Deadline): Promise<void> {
    this.#closing = true;
    if (this.#running.size > 0) {
      await new Promise<void>((resolve) => {
        this.#idle.add(resolve);
        deadline.onEnd(() => resolve());
      });
    }
    this.fail(closed("the client"));
  }
}

function closed(what: string): PserverError {
  return new PserverError("CLOSED", `${what}: the client is closed`);
}

/** Options of a call that reads parameters. */
export interface ReadOptions extends CallOptions {
  /** Transfers float32 values in fewer bytes, rounded as the encoding defines. */
  readonly encoding?: Encoding;
}

/** A parameter's values, with its name. */
export interface NamedTensor extends Tensor {
  readonly name: string;
  /**
   * Number of changes of the parameter; initialization is the first and each update adds 1. For several
   * blocks, which are not read at one moment, the highest of theirs.
   */
  readonly version: number;
}

/** Arrays to read into, by parameter name. */
export type Into = Readonly<Record<string, TensorData>>;

/** Options of `Client.getParams`. */
export interface PullOptions extends ReadOptions {
  /** Arrays to read into, by parameter name. */
  readonly into?: Into;
  /**
   * Results of earlier calls, whose arrays nobody has changed: only blocks that have changed since are sent.
   * A parameter of which nothing has changed is returned as the same result. Of any other, the unchanged
   * blocks are copied from the known array, which stays as it is unless it is also in `into`. Results of
   * another encoding or initialization are not used, nor are copies of results.
   */
  readonly known?: readonly NamedTensor[];
}

/** When an update is done: folded by the shard's owner, or stored in the journal. */
export type Ack = "applied" | "stored";

/** Options of a call that changes parameters. */
export interface UpdateOptions extends CallOptions {
  /**
   * `applied` (default): the call is done when the shards' owners have applied every block update. `stored`:
   * the call is done when the journals hold every block update; a later rejection is not reported.
   */
  readonly ack?: Ack;
}

/** Options of an update whose elements can travel encoded. */
export interface PushOptions extends UpdateOptions {
  /**
   * Transfers float32 elements in fewer bytes, rounded to nearest as the encoding defines: `bfloat16` and `float16` in
   * half of them, `int8` in a quarter and `e3m0` in an eighth.
   */
  readonly encoding?: Encoding;
}

/** Options of `Client.sendGrads`. */
export interface GradOptions extends PushOptions {
  /** Overrides the learning rate of every parameter in the call. */
  readonly learningRate?: number;
  /**
   * Whether what rounding to `int8` or `e3m0` leaves out of a gradient is added to the next gradient of the same
   * elements that is encoded so; true by default. The client keeps it, a float32 for each element of the parameters
   * whose gradients are sent so, from the moment in which a gradient is given to the connection, even if it is
   * rejected or comes too late for its step; it forgets it after a fallback and when the parameter is initialized
   * again. The norm of a gradient that is clipped by it includes what calls before have left out by the time of the
   * call.
   */
  readonly errorFeedback?: boolean;
  /**
   * Whether this call is the last one of the trainer's step, in a job that is synchronized by steps; true by
   * default. If false, more calls follow, and then `Client.endStep`.
   */
  readonly endStep?: boolean;
}

/** Options of `Client.beginInit`. */
export interface BeginOptions extends CallOptions {
  /** Whether to wait while another trainer initializes; true by default. */
  readonly wait?: boolean;
}
