import { type Fields, type LifecycleVerb, type Message, type PserverError, type StatusReply, type StatusRequest } from "../../protocol/index.ts";
import { type Clock } from "../concurrent.ts";
import { type DeclareDeps } from "./declare.ts";
import { type TakenBack } from "./initialization.ts";
import { type Members } from "./members.ts";
import { type EndedSessions } from "./sessions.ts";
/** Options of {@link createLifecycle}. */
interface LifecycleOptions extends Pick<DeclareDeps, "job" | "bucket" | "leases" | "owners" | "hostId" | "maxPayloadBytes" | "madeNow">, Partial<Pick<DeclareDeps, "pause">> {
    /** Called after each request that may have changed the job's lifecycle; it must not throw. */
    readonly onJobChanged?: () => Promise<void>;
    /** Called with errors outside of requests, which no reply carries. */
    readonly onError?: (error: PserverError) => void;
    readonly clock?: Clock;
}
/**
 * Answers the lifecycle requests of trainers. It keeps no state that decides anything: any number
 * of hosts may answer, and a host may continue what another has begun. No request is held open:
 * a trainer that waits for another one asks again.
 */
export declare class LifecycleService {
    #private;
    constructor(deps: DeclareDeps, onJobChanged: () => Promise<void>);
    /** Begins to watch the trainers' leases. Before that, no lost lease is noticed. */
    start(): Promise<void>;
    /** Stops watching. */
    close(): Promise<void>;
    /**
     * To be called when the broker was lost: trainers get a lease time to come back, and the job's entries are compared
     * with its shards again.
     */
    disconnected(): void;
    /** The trainers that keep step; none in a job without steps. */
    members(): Promise<Members>;
    /** Removes members that count as dead, and returns those that are left. */
    expelLost(): Promise<Members>;
    /** The job's state and parameters, as a trainer's `status` request gets them. */
    status(request: StatusRequest): Promise<StatusReply>;
    /** What the job and its trainers have declared, and their quotas. */
    declared(): Promise<Fields>;
    /**
     * Compares the job's entries with each other and with what its shards know. Returns whether all shards have answered.
     * @throws JOB_DAMAGED
     */
    checkEntries(): Promise<boolean>;
    /** Makes these shards forget trainers whose sessions have ended; see {@link endSessions}. */
    endSessions(shards: readonly number[]): Promise<EndedSessions>;
    /**
     * Makes what a shard with its journal in memory has lost initializable again; see {@link takeBackLost}. Journals
     * on file lose nothing.
     */
    takeBackLost(shard: number): Promise<TakenBack>;
    /** Writes the present members into these shards' journals. */
    tellMembers(shards: readonly number[]): Promise<void>;
    /**
     * Returns the entries of the reply to a request; `trainer` is from its subject. A refused request has
     * changed nothing; one that failed in another way can be sent again.
     * @throws the error that the reply is to carry.
     */
    handle(trainer: string, verb: LifecycleVerb, message: Message): Promise<Fields>;
}
/** Composes the service of one host. Nothing is watched before {@link LifecycleService.start}. */
export declare function createLifecycle(options: LifecycleOptions): LifecycleService;
export {};
//# sourceMappingURL=service.d.ts.map