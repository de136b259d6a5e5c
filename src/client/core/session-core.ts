import { ERROR_CODES, endsSession, reactionTo } from "../../protocol/errors.ts";
import { type Failure, receivedSession } from "./update-call.ts";

/** Commands of the session to its I/O layer. All return before their result is known. */
export interface SessionCommands {
  /** Joins within this time, under a new token: raises `joined` or `rejoinFailed`. */
  rejoin(timeoutMs: number): void;
  /** Renews the lease within this time: raises `renewed` or `renewFailed`. */
  renew(timeoutMs: number): void;
  /** Raises `renewalDue` at this time instead of one set before; never if it is Infinity. */
  setRenewal(atMs: number): void;
  /** Sends a request again under the current session. */
  repeatRequest(request: SessionRequest): void;
  /** Reports that a request has failed for good. */
  failRequest(request: SessionRequest, failure: Failure): void;
  /** Ends the client, which can do nothing more: a newer session has joined, or joining is refused. */
  loseClient(failure: Failure): void;
}

/** What the session tells the rest of the core. */
export interface SessionListener {
  /** Called when the session has ended: nothing may be published under it. */
  sessionEnded(): void;
  /** Called when a session has begun, the first or a later one. */
  sessionBegan(session: number, nowMs: number): void;
}

/** Time for one attempt to join again after the session has ended. */
const REJOIN_MS = 30_000;
/** How often one request may find its session ended before it fails. */
const REJOINS_MAX = 3;

/** Dependencies of SessionCore. */
interface SessionDeps {
  readonly commands: SessionCommands;
  readonly listener: SessionListener;
}

/**
 * The sessions of one trainer process: joins, renews the lease every third of its time, joins again when a
 * host says REJOIN, and ends for good when a newer process of the same trainer has joined.
 *
 * At most one attempt to join again is under way. While it is, requests that found the session ended wait
 * for its result, and a SUPERSEDED does not count yet: it may be of the session being joined.
 */
export class SessionCore {
  readonly #deps: SessionDeps;
  readonly #waiting: SessionRequest[] = [];
  #session = 0;
  #leaseMs = 0;
  #isRejoining = false;
  /** Whether the client can go on only if the attempt to join again succeeds. */
  #isRejoinNeeded = false;
  /** A SUPERSEDED that came while joining again. */
  #superseded: Failure | undefined;
  #isStopped = false;

  constructor(deps: SessionDeps) {
    this.#deps = deps;
  }

  /** The number of the session; 0 before the first. */
  get number(): number {
    return this.#session;
  }

  /** Whether {@link stop} was called. */
  get isStopped(): boolean {
    return this.#isStopped;
  }

  /** Notes that a session has begun, the first or a later one. */
  joined(session: number, leaseMs: number, nowMs: number): void {
    this.#session = session;
    this.#leaseMs = leaseMs;
    this.#isRejoining = false;
    this.#isRejoinNeeded = false;
    this.#deps.listener.sessionBegan(session, nowMs);
    this.#scheduleRenewal(nowMs);
    for (const request of this.#waiting.splice(0)) this.#resume(request);
    const superseded = this.#superseded;
    this.#superseded = undefined;
    if (superseded !== undefined) this.ended(superseded);
  }

  /** Takes the failure of an attempt to join again; repeats the attempt if that can help. */
  rejoinFailed(failure: Failure): void {
    if (ERROR_CODES[failure.code].retryable && !this.#isStopped) {
      this.#deps.commands.rejoin(REJOIN_MS);
      return;
    }
    const isLost = this.#isRejoinNeeded || reactionTo(failure.code) === "end";
    this.#isRejoining = false;
    this.#isRejoinNeeded = false;
    this.#superseded = undefined;
    for (const request of this.#waiting.splice(0)) {
      this.#deps.commands.failRequest(request, failure);
    }
    if (isLost) this.#deps.commands.loseClient(failure);
  }

  /** Raised at the time of `setRenewal`. */
  renewalDue(): void {
    if (!this.#isStopped) this.#deps.commands.renew(this.#leaseMs);
  }

  /** Notes that the lease has been renewed. */
  renewed(nowMs: number): void {
    this.#scheduleRenewal(nowMs);
  }

  /** Notes that the lease could not be renewed. */
  renewFailed(failure: Failure, nowMs: number): void {
    if (endsSession(failure.code)) {
      this.ended(failure);
    } else if (!this.#isStopped) {
      // No host or broker answers at the moment. The next renewal tries again, and calls report it
      // themselves.
      if (ERROR_CODES[failure.code].retryable) this.#scheduleRenewal(nowMs);
      else this.#deps.commands.loseClient(failure);
    }
  }

  /** Takes a host's word that a session is over: REJOIN begins another one, SUPERSEDED is final. */
  ended(failure: Failure): void {
    if (this.#isStopped || this.#isOfEarlier(failure)) return;
    if (reactionTo(failure.code) === "rejoin") {
      this.#isRejoinNeeded = true;
      this.#rejoin();
    } else if (this.#isRejoining) {
      this.#superseded ??= failure;
    } else {
      this.stop();
      this.#deps.commands.loseClient(failure);
    }
  }

  /** Takes an error in answer to a request, which is sent again in the next session, or fails. */
  requestFailed(request: SessionRequest, failure: Failure): void {
    const { commands } = this.#deps;
    request.rejoins += 1;
    const canGoOn = request.rejoins <= REJOINS_MAX && !this.#isStopped;
    if (!endsSession(failure.code) || !canGoOn) {
      commands.failRequest(request, failure);
    } else if (this.#isOfEarlier(failure)) {
      commands.repeatRequest(request);
    } else if (reactionTo(failure.code) === "rejoin") {
      this.#waiting.push(request);
      this.#rejoin();
    } else if (this.#isRejoining) {
      request.superseded = failure;
      this.#waiting.push(request);
    } else {
      this.ended(failure);
      commands.failRequest(request, failure);
    }
  }

  /** Notes that the call of a request has ended. */
  requestEnded(request: SessionRequest): void {
    const at = this.#waiting.indexOf(request);
    if (at >= 0) this.#waiting.splice(at, 1);
  }

  /** Stops renewing and joining. */
  stop(): void {
    this.#isStopped = true;
    this.#deps.commands.setRenewal(Number.POSITIVE_INFINITY);
  }

  /** Returns whether a failure is about an earlier session, which this client has already left. */
  #isOfEarlier(failure: Failure): boolean {
    const received = receivedSession(failure);
    return received !== 0 && received !== this.#session;
  }

  /** Resumes a request that has waited for the new session. */
  #resume(request: SessionRequest): void {
    const { superseded } = request;
    request.superseded = undefined;
    if (superseded === undefined || this.#isOfEarlier(superseded)) {
      this.#deps.commands.repeatRequest(request);
    } else {
      this.ended(superseded);
      this.#deps.commands.failRequest(request, superseded);
    }
  }

  #rejoin(): void {
    if (this.#isRejoining) return;
    this.#isRejoining = true;
    this.#deps.commands.setRenewal(Number.POSITIVE_INFINITY);
    this.#deps.listener.sessionEnded();
    this.#deps.commands.rejoin(REJOIN_MS);
  }

  #scheduleRenewal(nowMs: number): void {
    if (!this.#isStopped) this.#deps.commands.setRenewal(nowMs + this.#leaseMs / 3);
  }
}

/** A lifecycle request of this trainer. It is sent under the session that is current at the time. */
export interface SessionRequest {
  /** Chosen by the I/O layer. */
  readonly id: number;
  /** How often it has found its session ended. */
  rejoins: number;
  /** A SUPERSEDED of the request, which waits until it is known whether that is about an earlier session. */
  superseded: Failure | undefined;
}

/** Makes a request that has not been answered. */
export function newSessionRequest(id: number): SessionRequest {
  return { id, rejoins: 0, superseded: undefined };
}
