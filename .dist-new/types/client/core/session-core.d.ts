import { type Failure } from "./update-call.ts";
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
export declare class SessionCore {
    #private;
    constructor(deps: SessionDeps);
    /** The number of the session; 0 before the first. */
    get number(): number;
    /** Whether {@link stop} was called. */
    get isStopped(): boolean;
    /** Notes that a session has begun, the first or a later one. */
    joined(session: number, leaseMs: number, nowMs: number): void;
    /** Takes the failure of an attempt to join again; repeats the attempt if that can help. */
    rejoinFailed(failure: Failure): void;
    /** Raised at the time of `setRenewal`. */
    renewalDue(): void;
    /** Notes that the lease has been renewed. */
    renewed(nowMs: number): void;
    /** Notes that the lease could not be renewed. */
    renewFailed(failure: Failure, nowMs: number): void;
    /** Takes a host's word that a session is over: REJOIN begins another one, SUPERSEDED is final. */
    ended(failure: Failure): void;
    /** Takes an error in answer to a request, which is sent again in the next session, or fails. */
    requestFailed(request: SessionRequest, failure: Failure): void;
    /** Notes that the call of a request has ended. */
    requestEnded(request: SessionRequest): void;
    /** Stops renewing and joining. */
    stop(): void;
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
export declare function newSessionRequest(id: number): SessionRequest;
export {};
//# sourceMappingURL=session-core.d.ts.map