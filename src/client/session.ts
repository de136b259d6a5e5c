import { randomUUID } from "node:crypto";
import { encodeMessage, type Fields } from "../protocol/codec.ts";
import type { Synchronization } from "../protocol/config/index.ts";
import { endsSession, ensureError, PserverError, reactionTo } from "../protocol/errors.ts";
import { type JoinReply, parseJoinReply } from "../protocol/lifecycle-messages.ts";
import { quoteName } from "../protocol/names.ts";
import type { JobSubjects, LifecycleVerb } from "../protocol/subjects.ts";
import { Deadline } from "./deadline.ts";
import type { Requests } from "./requests.ts";

/** What a session belongs to. */
export interface SessionOptions {
  readonly requests: Requests;
  readonly subjects: JobSubjects;
  readonly trainer: string;
  /** The session has ended; nothing may be sent until `joined`. */
  readonly onEnded: () => void;
  /** A session has begun, the first or a later one. */
  readonly onJoined: (reply: JoinReply) => void;
  /** The client can do nothing more. */
  readonly onLost: (error: PserverError) => void;
}

/** Time for one attempt to come back after the session has ended. */
const REJOIN_MS = 30_000;
/** How often one request may find its session ended before its error counts. */
const REJOINS_MAX = 3;

/**
 * One life of a trainer: joins, renews the lease every third of its time, joins anew when a host
 * says so, and ends for good when a newer session of the same trainer has joined.
 */
export class Session {
  readonly #options: SessionOptions;
  #reply: JoinReply | undefined;
  #renewal: NodeJS.Timeout | undefined;
  #rejoining: Promise<void> | undefined;
  #background: Deadline | undefined;
  #stopped = false;

  constructor(options: SessionOptions) {
    this.#options = options;
  }

  /** The number of the session; 0 before the first. */
  get number(): number {
    return this.#reply?.session ?? 0;
  }

  /** Shards of the job. */
  get shards(): number {
    return this.#reply?.shards ?? 0;
  }

  /** How the trainers of the job keep step. */
  get synchronization(): Synchronization {
    return this.#reply?.synchronization ?? { mode: "async" };
  }

  /** @throws NO_HOST if no host of the job answers in time. */
  async join(deadline: Deadline): Promise<void> {
    const token = randomUUID();
    const reply = parseJoinReply(await this.#ask("join", () => ({ token }), deadline));
    this.#reply = reply;
    this.#options.onJoined(reply);
    this.#scheduleRenewal(reply.leaseMs);
  }

  /**
   * The reply to a lifecycle request of this session. Joins anew if the session has ended.
   * @throws the error in the reply; NO_HOST if nobody answers in time.
   */
  async request(verb: LifecycleVerb, entries: Fields, deadline: Deadline): Promise<Fields> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#ask(verb, () => ({ session: this.number, ...entries }), deadline);
      } catch (caught) {
        const error = ensureError(caught);
        if (!endsSession(error.code) || attempt > REJOINS_MAX) throw error;
        await deadline.race(this.#awaitNext(error));
      }
    }
  }

  /** A host says that the session is over: REJOIN begins a new one, SUPERSEDED is final. */
  ended(error: PserverError): void {
    if (this.#stopped || this.#isOfEarlier(error)) return;
    if (reactionTo(error.code) === "rejoin") {
      this.#rejoin().catch((failure: unknown) => this.#options.onLost(ensureError(failure)));
    } else if (this.#rejoining !== undefined) {
      // The newer session may be the one that is being joined; if that fails, the client is lost anyway.
      this.#rejoining.then(
        () => this.ended(error),
        () => {},
      );
    } else {
      this.stop();
      this.#options.onLost(
        new PserverError(
          "SUPERSEDED",
          `trainer ${quoteName(this.#options.trainer)}: a newer session has joined under this id, so this client can do nothing more; give every process an id of its own`,
          { trainer: this.#options.trainer, session: this.number },
          { cause: error },
        ),
      );
    }
  }

  /** Gives the lease back. */
  async leave(deadline: Deadline): Promise<void> {
    if (this.#reply === undefined || this.#stopped) return;
    this.stop();
    await this.#ask("leave", () => ({ session: this.number }), deadline);
  }

  /** Renews and joins no more. */
  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#renewal);
    this.#background?.end(new PserverError("CLOSED", "the client is closed"));
  }

  async #ask(verb: LifecycleVerb, body: () => Fields, deadline: Deadline): Promise<Fields> {
    const { requests, subjects, trainer } = this.#options;
    try {
      return await requests.ask({
        subject: subjects.lifecycle(trainer, verb),
        body: () => encodeMessage(body()),
        read: ({ fields }) => fields,
        deadline,
        nobody: () => this.#noHost(),
      });
    } catch (caught) {
      const error = ensureError(caught);
      if (error !== deadline.ended || error.code !== "TIMEOUT") throw error;
      const { code, message, details } = this.#noHost();
      throw new PserverError(code, `${error.message}; ${message}`, details, { cause: error });
    }
  }

  #noHost(): PserverError {
    const { job } = this.#options.subjects;
    return new PserverError(
      "NO_HOST",
      `no host of job ${quoteName(job)} answers: start one on this broker, or check the name of the job and the broker's address`,
      { job },
    );
  }

  /**
   * Whether an error says that a session is over which this client has left behind already: a host may
   * answer a request of it after the client has joined anew.
   */
  #isOfEarlier({ details }: PserverError): boolean {
    const { received } = details;
    return typeof received === "number" && received !== this.number;
  }

  /** Waits for a session after the one that an error says is over; @throws the error if there is none. */
  async #awaitNext(error: PserverError): Promise<void> {
    if (this.#isOfEarlier(error)) return;
    if (reactionTo(error.code) === "rejoin") {
      await this.#rejoin();
      return;
    }
    await this.#rejoining;
    if (this.#isOfEarlier(error)) return;
    this.ended(error);
    throw error;
  }

  #rejoin(): Promise<void> {
    this.#rejoining ??= this.#joinAgain().finally(() => {
      this.#rejoining = undefined;
    });
    return this.#rejoining;
  }

  async #joinAgain(): Promise<void> {
    clearTimeout(this.#renewal);
    this.#options.onEnded();
    while (true) {
      try {
        await this.#inBackground("rejoin", REJOIN_MS, (deadline) => this.join(deadline));
        return;
      } catch (caught) {
        const error = ensureError(caught);
        if (!error.retryable || this.#stopped) throw error;
      }
    }
  }

  #scheduleRenewal(leaseMs: number): void {
    clearTimeout(this.#renewal);
    if (this.#stopped) return;
    this.#renewal = setTimeout(() => {
      this.#renew(leaseMs).catch((error: unknown) => this.#options.onLost(ensureError(error)));
    }, leaseMs / 3);
    this.#renewal.unref();
  }

  async #renew(leaseMs: number): Promise<void> {
    try {
      await this.#inBackground("renew", leaseMs, (deadline) =>
        this.#ask("renew", () => ({ session: this.number }), deadline),
      );
    } catch (caught) {
      const error = ensureError(caught);
      if (endsSession(error.code)) {
        this.ended(error);
        return;
      }
      if (this.#stopped) return;
      // No host or broker at the moment: the next renewal tries again, and calls say so themselves.
      if (!error.retryable) throw error;
    }
    this.#scheduleRenewal(leaseMs);
  }

  async #inBackground<T>(
    what: string,
    timeoutMs: number,
    work: (deadline: Deadline) => Promise<T>,
  ): Promise<T> {
    const deadline = new Deadline(what, { timeoutMs });
    this.#background = deadline;
    try {
      return await work(deadline);
    } finally {
      deadline.dispose();
    }
  }
}
