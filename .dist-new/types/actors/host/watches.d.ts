import type { JetStreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { type Fields, type JobSubjects, PserverError } from "../../protocol/index.ts";
import { type Clock, Repeater } from "../concurrent.ts";
import type { TakenBack } from "../lifecycle/initialization.ts";
import type { LifecycleService } from "../lifecycle/service.ts";
/** A check that a host repeats until it is stopped. */
declare abstract class Watch {
    protected readonly clock: Clock;
    protected readonly repeater: Repeater;
    constructor(clock?: Clock);
    /** Checks at once, and then until {@link Watch.stop}. */
    start(): void;
    /** Stops checking and waits for a check under way. */
    stop(): Promise<void>;
    /** Checks once; returns how many milliseconds to pause before the next check. Must not throw. */
    protected abstract check(): Promise<number>;
}
/** Dependencies of {@link MembersWatch}. */
interface MembersWatchDeps {
    readonly service: Pick<LifecycleService, "expelLost" | "tellMembers">;
    /** The last statuses of the host's shards. */
    readonly statuses: () => readonly Fields[];
    /** The watch checks three times in a lease time. */
    readonly leaseMs: number;
    /** Called after each check that failed; the next one comes in its time. */
    readonly onError: (error: PserverError) => void;
    readonly clock?: Clock;
}
/**
 * Removes members whose lease is lost, so that nobody waits for them in the job's steps, and writes the
 * newest members into the journals of this host's shards that lack them.
 */
export declare class MembersWatch extends Watch {
    #private;
    constructor(deps: MembersWatchDeps);
    /** Notes that a shard is served: if its journal lacks the newest members, they are written at once. */
    serving(shard: number): void;
    protected check(): Promise<number>;
}
/** Dependencies of {@link SessionsWatch}. */
interface SessionsWatchDeps {
    readonly service: Pick<LifecycleService, "endSessions" | "checkEntries">;
    /** The last statuses of the host's shards. */
    readonly statuses: () => readonly Fields[];
    /** Called after each check that failed; the next one comes in its time. */
    readonly onError: (error: PserverError) => void;
    readonly clock?: Clock;
}
/**
 * Keeps the tables of trainers of a host's shards from filling up with trainers that are gone: a shard with many
 * trainers is told which sessions have ended, and which were never given. Many sessions share one sweep, and shards
 * with few trainers cost nothing.
 */
export declare class SessionsWatch extends Watch {
    #private;
    constructor(deps: SessionsWatchDeps);
    protected check(): Promise<number>;
}
/** Dependencies of {@link LossesWatch}. */
interface LossesWatchDeps {
    readonly service: Pick<LifecycleService, "takeBackLost">;
    /** Lease time; a failed check is repeated after a third of it. */
    readonly leaseMs: number;
    /** Called with what a shard has lost, if anything. */
    readonly onTakenBack: (shard: number, taken: TakenBack) => void;
    /** Called after each check that failed. */
    readonly onError: (error: PserverError) => void;
    readonly clock?: Clock;
}
/**
 * Checks a shard with its journal in memory each time that it begins to be served: compares the job's entries with
 * the shard's blocks, and makes what is lost initializable again.
 */
export declare class LossesWatch extends Watch {
    #private;
    constructor(deps: LossesWatchDeps);
    /**
     * Stops checking. The result of a check under way, which may ask for a shard that has no owner any more, is
     * ignored.
     */
    stop(): Promise<void>;
    /** Notes that a shard is served from now on. */
    serving(shard: number): void;
    protected check(): Promise<number>;
}
/** Dependencies of {@link JobWatch}. */
interface JobWatchDeps {
    readonly connection: Pick<NatsConnection, "info">;
    readonly manager: {
        readonly streams: Pick<JetStreamManager["streams"], "info">;
    };
    readonly subjects: JobSubjects;
    /** When the job's bucket was made. */
    readonly created: string;
    readonly leaseMs: number;
    /** Called once, when it is certain that the broker does not hold the job any more. */
    readonly onGone: (error: PserverError) => void;
    readonly clock?: Clock;
}
/**
 * Finds out whether the broker still holds the job: it may have been started again on an empty store, or on that of
 * another job. Then the host's state of the job is of no use, and what the host writes could be taken for a part of a
 * new job of the same name. Checks once in a lease time, and after each reconnection.
 *
 * A job that has lost only its records, or only its snapshots, is not gone: its operator may put them back.
 */
export declare class JobWatch extends Watch {
    #private;
    constructor(deps: JobWatchDeps);
    /** Begins to check, first after a lease time. */
    start(): void;
    /** Checks soon: the connection to the broker is back. */
    reconnected(): void;
    protected check(): Promise<number>;
}
export {};
//# sourceMappingURL=watches.d.ts.map