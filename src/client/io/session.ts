import { randomUUID } from "node:crypto";
import { encodeMessage, type Fields } from "../../protocol/codec.ts";
import type { Synchronization } from "../../protocol/config/index.ts";
import { ensureError, PserverError } from "../../protocol/errors.ts";
import { type JoinReply, parseJoinReply } from "../../protocol/messages/lifecycle-messages.ts";
import { quoteName } from "../../protocol/names.ts";
import type { JobSubjects, LifecycleVerb } from "../../protocol/subjects.ts";
import { Deadline } from "../calls/calls.ts";
import {
  newSessionRequest,
  type SessionCommands,
  SessionCore,
  type SessionListener,
  type SessionRequest,
} from "../core/session-core.ts";
import type { Failure } from "../core/update-call.ts";
import type { Requests } from "../wire/wire.ts";
import { toError } from "./update-sender.ts";

/** Dependencies of Session. */
interface SessionShellDeps {
  readonly requests: Requests;
  readonly subjects: JobSubjects;
  readonly trainer: string;
  /** The session has ended; nothing may be sent until `joined`. */
  readonly onEnded: () => void;
  /** A session has begun, the first or a later one. */
  readonly onJoined: (reply: JoinReply) => void;
  /** A host of the job that was joined has given or renewed the lease. */
  readonly onHeld: () => void;
  /** The client can do nothing more. */
  readonly onLost: (error: PserverError) => void;
}

/** Requests by which hosts claim or renew the trainer's lease. */
const HOLDS_LEASE: readonly LifecycleVerb[] = ["join", "renew", "enter"];

/** A lifecycle request under way. */
interface PendingRequest {
  /** Sends the request under the current session. */
  readonly ask: () => void;
  readonly reject: (error: PserverError) => void;
  /** Whether the request waits for the next session; then it listens to the end of its call. */
  isWaiting: boolean;
  stopListening: () => void;
}

/**
 * Does the I/O of the session core: joins, renews the lease, and sends lifecycle requests again in the next
 * session. Also keeps the core's timer.
 */
export class Session implements SessionCommands, SessionListener {
  readonly #options: SessionShellDeps;
  readonly #core: SessionCore;
  readonly #pending = new Map<number, PendingRequest>();
  #requests = 0;
  /** When the last request that has claimed or renewed the lease was sent. */
  #heldAtMs = Number.NEGATIVE_INFINITY;
  #reply: JoinReply | undefined;
  #renewal: NodeJS.Timeout | undefined;
  #isRenewing = false;
  #background: Deadline | undefined;

  constructor(options: SessionShellDeps) {
    this.#options = options;
    this.#core = new SessionCore({ commands: this, listener: this });
  }

  /** The number of the session; 0 before the first. */
  get number(): number {
    return this.#reply?.session ?? 0;
  }

  /** Whether the lease may have run out: for its whole time no host has confirmed that it was renewed. */
  get mayBeOut(): boolean {
    return performance.now() - this.#heldAtMs >= (this.#reply?.leaseMs ?? 0);
  }

  /** Shards of the job. */
  get shards(): number {
    return this.#reply?.shards ?? 0;
  }

  /** How the trainers of the job keep step. */
  get synchronization(): Synchronization {
    return this.#reply?.synchronization ?? { mode: "async" };
  }

  /** Joins the job. @throws NO_HOST if no host of the job answers in time. */
  async join(deadline: Deadline): Promise<void> {
    const token = randomUUID();
    const body = (): Fields => ({ token, ...this.#joined() });
    const reply = parseJoinReply(await this.#ask("join", body, deadline));
    this.#reply = reply;
    this.#core.joined(reply.session, reply.leaseMs, performance.now());
    this.#options.onHeld();
  }

  /**
   * Renews the lease now, unless that is under way: the broker may hold another job by now. Nothing before the first
   * join, which will tell.
   */
  confirm(): void {
    if (this.#reply !== undefined) this.#core.renewalDue();
  }

  /**
   * Sends a lifecycle request and returns the reply. Joins again if the session has ended.
   * @throws the error in the reply; NO_HOST if nobody answers in time.
   */
  request(verb: LifecycleVerb, entries: Fields, deadline: Deadline): Promise<Fields> {
    const request = newSessionRequest(++this.#requests);
    const body = (): Fields => ({ session: this.number, ...this.#joined(), ...entries });
    return new Promise((resolve, reject) => {
      const ask = (): void => {
        this.#ask(verb, body, deadline).then(
          (fields) => {
            this.#pending.delete(request.id);
            resolve(fields);
          },
          (error: unknown) => this.#onRequestFailed(request, ensureError(error), deadline),
        );
      };
      this.#pending.set(request.id, { ask, reject, isWaiting: false, stopListening: () => {} });
      ask();
    });
  }

  /** Takes a host's word that the session is over: REJOIN begins a new one, SUPERSEDED is final. */
  ended(error: PserverError): void {
    this.#core.ended(error);
  }

  /** Gives the lease back. */
  async leave(deadline: Deadline): Promise<void> {
    if (this.#reply === undefined || this.#core.isStopped) return;
    this.stop();
    await this.#ask("leave", () => ({ session: this.number, ...this.#joined() }), deadline);
  }

  /** Stops renewing and joining. */
  stop(): void {
    this.#core.stop();
    this.#background?.end(new PserverError("CLOSED", "the client is closed"));
  }

  rejoin(timeoutMs: number): void {
    this.#inBackground("rejoin", timeoutMs, (deadline) => this.join(deadline)).catch(
      (error: unknown) => this.#core.rejoinFailed(ensureError(error)),
    );
  }

  renew(timeoutMs: number): void {
    if (this.#isRenewing) return;
    this.#isRenewing = true;
    const body = (): Fields => ({ session: this.number, ...this.#joined() });
    const renewing = this.#inBackground("renew", timeoutMs, (deadline) =>
      this.#ask("renew", body, deadline),
    ).finally(() => {
      this.#isRenewing = false;
    });
    renewing.then(
      () => {
        this.#core.renewed(performance.now());
        this.#options.onHeld();
      },
      (error: unknown) => this.#core.renewFailed(ensureError(error), performance.now()),
    );
  }

  setRenewal(atMs: number): void {
    clearTimeout(this.#renewal);
    if (!Number.isFinite(atMs)) return;
    this.#renewal = setTimeout(() => this.#core.renewalDue(), atMs - performance.now());
    this.#renewal.unref();
  }

  repeatRequest(request: SessionRequest): void {
    const pending = this.#pending.get(request.id);
    if (pending === undefined) return;
    stopWaiting(pending);
    pending.ask();
  }

  failRequest(request: SessionRequest, failure: Failure): void {
    const pending = this.#pending.get(request.id);
    if (pending === undefined) return;
    this.#pending.delete(request.id);
    stopWaiting(pending);
    pending.reject(toError(failure));
  }

  loseClient(failure: Failure): void {
    const error = toError(failure);
    this.#options.onLost(error.code === "SUPERSEDED" ? this.#superseded(error) : error);
  }

  sessionEnded(): void {
    this.#options.onEnded();
  }

  sessionBegan(): void {
    if (this.#reply !== undefined) this.#options.onJoined(this.#reply);
  }

  /**
   * Hands an error to the core. If the core lets the request wait for another session, it waits at most until
   * its call ends.
   */
  #onRequestFailed(request: SessionRequest, error: PserverError, deadline: Deadline): void {
    const pending = this.#pending.get(request.id);
    if (pending === undefined) return;
    pending.isWaiting = true;
    this.#core.requestFailed(request, error);
    if (!pending.isWaiting) return;
    pending.stopListening = deadline.onEnd((end) => {
      this.#core.requestEnded(request);
      this.failRequest(request, end);
    });
  }

  /** Names the job that this trainer has joined, so that no host takes another one for it. */
  #joined(): Fields {
    return this.#reply === undefined ? {} : { made: this.#reply.made };
  }

  async #ask(verb: LifecycleVerb, body: () => Fields, deadline: Deadline): Promise<Fields> {
    const { requests, subjects, trainer } = this.#options;
    const askedAtMs = performance.now();
    try {
      const fields = await requests.ask({
        subject: subjects.lifecycle(trainer, verb),
        body: () => encodeMessage(body()),
        read: ({ fields }) => fields,
        deadline,
        nobody: () => this.#noHost(),
      });
      if (HOLDS_LEASE.includes(verb)) this.#heldAtMs = Math.max(this.#heldAtMs, askedAtMs);
      return fields;
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

  #superseded(cause: PserverError): PserverError {
    const { trainer } = this.#options;
    return new PserverError(
      "SUPERSEDED",
      `trainer ${quoteName(trainer)}: a newer session has joined under this id, so this client can do nothing more; give every process an id of its own`,
      { trainer, session: this.number },
      { cause },
    );
  }

  async #inBackground<T>(
    what: string,
    timeoutMs: number,
    work: (deadline: Deadline) => Promise<T>,
  ): Promise<T> {
    const deadline = Deadline.start(what, { timeoutMs });
    this.#background = deadline;
    try {
      return await work(deadline);
    } finally {
      deadline.dispose();
    }
  }
}

function stopWaiting(pending: PendingRequest): void {
  pending.isWaiting = false;
  pending.stopListening();
  pending.stopListening = () => {};
}
