import type { Encoding } from "../../protocol/dtypes.ts";
import { ensureError, PserverError } from "../../protocol/errors.ts";
import type { Into, NamedTensor } from "../pull/puller.ts";
import type { Ack } from "../push/updates.ts";
import { type CallOptions, Deadline } from "./deadline.ts";

/** Tracks the calls under way: each has a deadline, and all end when the client does. */
export class Calls {
  readonly #running = new Set<Deadline>();
  readonly #idle = new Set<() => void>();
  #failure: PserverError | undefined;
  #closing = false;

  /** The error that ended the client; undefined while it can be used. */
  get failure(): PserverError | undefined {
    return this.#failure;
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
    } catch (error) {
      throw ensureError(error);
    } finally {
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
  /** Transfers float32 values in half the bytes, rounded as the encoding defines. */
  readonly encoding?: Encoding;
}

/** Options of `Client.getParams`. */
export interface PullOptions extends ReadOptions {
  /** Arrays to read into, by parameter name. */
  readonly into?: Into;
  /**
   * Results of earlier calls, whose arrays nobody has changed: only blocks that have changed since are sent. A
   * parameter of which nothing has changed is returned as the same result; otherwise its unchanged blocks are
   * copied from the known array, which stays as it is unless it is also in `into`. Results of another encoding
   * or initialization do not count, nor do copies of results.
   */
  readonly known?: readonly NamedTensor[];
}

/** Options of a call that changes parameters. */
export interface UpdateOptions extends CallOptions {
  /**
   * `applied` (default): the call is done when the shards' owners have applied every block update.
   * `stored`: when the journal holds every block update; a later rejection is not reported.
   */
  readonly ack?: Ack;
}

/** Options of an update whose elements can travel encoded. */
export interface PushOptions extends UpdateOptions {
  /** Transfers float32 elements in half the bytes, rounded to nearest as the encoding defines. */
  readonly encoding?: Encoding;
}

/** Options of `Client.sendGrads`. */
export interface GradOptions extends PushOptions {
  /** Overrides the learning rate of every parameter in the call. */
  readonly learningRate?: number;
  /**
   * Whether this call is the last one of the trainer's step, in a job that is synchronized by steps;
   * true by default. Otherwise more calls, and then `Client.endStep`, follow.
   */
  readonly endStep?: boolean;
}

/** Options of `Client.beginInit`. */
export interface BeginOptions extends CallOptions {
  /** Whether to wait while another trainer initializes; true by default. */
  readonly wait?: boolean;
}
