import { type Fields } from "../../protocol/codec.ts";
import type { Synchronization } from "../../protocol/config/index.ts";
import { PserverError } from "../../protocol/errors.ts";
import { type JoinReply } from "../../protocol/messages/lifecycle-messages.ts";
import type { JobSubjects, LifecycleVerb } from "../../protocol/subjects.ts";
import { Deadline } from "../calls/calls.ts";
import { type SessionCommands, type SessionListener, type SessionRequest } from "../core/session-core.ts";
import type { Failure } from "../core/update-call.ts";
import type { Requests } from "../wire/wire.ts";
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
    /** No host is there, so that none has made another job. */
    readonly onNobody: () => void;
    /** The client can do nothing more. */
    readonly onLost: (error: PserverError) => void;
}
/**
 * Does the I/O of the session core: joins, renews the lease, and sends lifecycle requests again in the next
 * session. Also keeps the core's timer.
 */
export declare class Session implements SessionCommands, SessionListener {
    #private;
    constructor(options: SessionShellDeps);
    /** The number of the session; 0 before the first. */
    get number(): number;
    /** Whether the lease may have run out: for its whole time no host has confirmed that it was renewed. */
    get mayBeOut(): boolean;
    /** Shards of the job. */
    get shards(): number;
    /** How the trainers of the job keep step. */
    get synchronization(): Synchronization;
    /** Joins the job. @throws NO_HOST if no host of the job answers in time. */
    join(deadline: Deadline): Promise<void>;
    /**
     * Renews the lease now, unless that is under way: the broker may hold another job by now. Nothing before the first
     * join, which will tell.
     */
    confirm(): void;
    /**
     * Sends a lifecycle request and returns the reply. Joins again if the session has ended.
     * @throws the error in the reply; NO_HOST if nobody answers in time.
     */
    request(verb: LifecycleVerb, entries: Fields, deadline: Deadline): Promise<Fields>;
    /** Takes a host's word that the session is over: REJOIN begins a new one, SUPERSEDED is final. */
    ended(error: PserverError): void;
    /** Gives the lease back. */
    leave(deadline: Deadline): Promise<void>;
    /** Stops renewing and joining. */
    stop(): void;
    rejoin(timeoutMs: number): void;
    renew(timeoutMs: number): void;
    setRenewal(atMs: number): void;
    repeatRequest(request: SessionRequest): void;
    failRequest(request: SessionRequest, failure: Failure): void;
    loseClient(failure: Failure): void;
    sessionEnded(): void;
    sessionBegan(): void;
}
export {};
//# sourceMappingURL=session.d.ts.map