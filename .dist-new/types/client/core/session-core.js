import { ERROR_CODES, endsSession, reactionTo } from "../../protocol/errors.js";
import { receivedSession } from "./update-call.js";
/** Time for one attempt to join again after the session has ended. */
const REJOIN_MS = 30_000;
/** How often one request may find its session ended before it fails. */
const REJOINS_MAX = 3;
/**
 * The sessions of one trainer process: joins, renews the lease every third of its time, joins again when a
 * host says REJOIN, and ends for good when a newer process of the same trainer has joined.
 *
 * At most one attempt to join again is under way. While it is, requests that found the session ended wait
 * for its result, and a SUPERSEDED does not count yet: it may be of the session being joined.
 */
export class SessionCore {
    #deps;
    #waiting = [];
    #session = 0;
    #leaseMs = 0;
    #isRejoining = false;
    /** Whether the client can go on only if the attempt to join again succeeds. */
    #isRejoinNeeded = false;
    /** A SUPERSEDED that came while joining again. */
    #superseded;
    #isStopped = false;
    constructor(deps) {
        this.#deps = deps;
    }
    /** The number of the session; 0 before the first. */
    get number() {
        return this.#session;
    }
    /** Whether {@link stop} was called. */
    get isStopped() {
        return this.#isStopped;
    }
    /** Notes that a session has begun, the first or a later one. */
    joined(session, leaseMs, nowMs) {
        this.#session = session;
        this.#leaseMs = leaseMs;
        this.#isRejoining = false;
        this.#isRejoinNeeded = false;
        this.#deps.listener.sessionBegan(session, nowMs);
        this.#scheduleRenewal(nowMs);
        for (const request of this.#waiting.splice(0))
            this.#resume(request);
        const superseded = this.#superseded;
        this.#superseded = undefined;
        if (superseded !== undefined)
            this.ended(superseded);
    }
    /** Takes the failure of an attempt to join again; repeats the attempt if that can help. */
    rejoinFailed(failure) {
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
        if (isLost)
            this.#deps.commands.loseClient(failure);
    }
    /** Raised at the time of `setRenewal`. */
    renewalDue() {
        if (!this.#isStopped)
            this.#deps.commands.renew(this.#leaseMs);
    }
    /** Notes that the lease has been renewed. */
    renewed(nowMs) {
        this.#scheduleRenewal(nowMs);
    }
    /** Notes that the lease could not be renewed. */
    renewFailed(failure, nowMs) {
        if (endsSession(failure.code)) {
            this.ended(failure);
        }
        else if (!this.#isStopped) {
            // No host or broker answers at the moment. The next renewal tries again, and calls report it
            // themselves.
            if (ERROR_CODES[failure.code].retryable)
                this.#scheduleRenewal(nowMs);
            else
                this.#deps.commands.loseClient(failure);
        }
    }
    /** Takes a host's word that a session is over: REJOIN begins another one, SUPERSEDED is final. */
    ended(failure) {
        if (this.#isStopped || this.#isOfEarlier(failure))
            return;
        if (reactionTo(failure.code) === "rejoin") {
            this.#isRejoinNeeded = true;
            this.#rejoin();
        }
        else if (this.#isRejoining) {
            this.#superseded ??= failure;
        }
        else {
            this.stop();
            this.#deps.commands.loseClient(failure);
        }
    }
    /** Takes an error in answer to a request, which is sent again in the next session, or fails. */
    requestFailed(request, failure) {
        const { commands } = this.#deps;
        request.rejoins += 1;
        const canGoOn = request.rejoins <= REJOINS_MAX && !this.#isStopped;
        if (!endsSession(failure.code) || !canGoOn) {
            commands.failRequest(request, failure);
        }
        else if (this.#isOfEarlier(failure)) {
            commands.repeatRequest(request);
        }
        else if (reactionTo(failure.code) === "rejoin") {
            this.#waiting.push(request);
            this.#rejoin();
        }
        else if (this.#isRejoining) {
            request.superseded = failure;
            this.#waiting.push(request);
        }
        else {
            this.ended(failure);
            commands.failRequest(request, failure);
        }
    }
    /** Notes that the call of a request has ended. */
    requestEnded(request) {
        const at = this.#waiting.indexOf(request);
        if (at >= 0)
            this.#waiting.splice(at, 1);
    }
    /** Stops renewing and joining. */
    stop() {
        this.#isStopped = true;
        this.#deps.commands.setRenewal(Number.POSITIVE_INFINITY);
    }
    /** Returns whether a failure is about an earlier session, which this client has already left. */
    #isOfEarlier(failure) {
        const received = receivedSession(failure);
        return received !== 0 && received !== this.#session;
    }
    /** Resumes a request that has waited for the new session. */
    #resume(request) {
        const { superseded } = request;
        request.superseded = undefined;
        if (superseded === undefined || this.#isOfEarlier(superseded)) {
            this.#deps.commands.repeatRequest(request);
        }
        else {
            this.ended(superseded);
            this.#deps.commands.failRequest(request, superseded);
        }
    }
    #rejoin() {
        if (this.#isRejoining)
            return;
        this.#isRejoining = true;
        this.#deps.commands.setRenewal(Number.POSITIVE_INFINITY);
        this.#deps.listener.sessionEnded();
        this.#deps.commands.rejoin(REJOIN_MS);
    }
    #scheduleRenewal(nowMs) {
        if (!this.#isStopped)
            this.#deps.commands.setRenewal(nowMs + this.#leaseMs / 3);
    }
}
/** Makes a request that has not been answered. */
export function newSessionRequest(id) {
    return { id, rejoins: 0, superseded: undefined };
}
//# sourceMappingURL=session-core.js.map