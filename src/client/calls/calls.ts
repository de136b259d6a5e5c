import { ensureError, PserverError } from "../../protocol/errors.ts";
import { type CallOptions, Deadline } from "../timing/deadline.ts";

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
