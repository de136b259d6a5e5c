import type { NatsConnection } from "@nats-io/transport-node";
import { PserverError } from "../../protocol/index.ts";
import { type Clock } from "../concurrent.ts";
import type { KvBucket } from "../journal/kv-bucket.ts";
/** Value of a lease. Only the holder, known by `owner`, renews or releases it. */
export interface LeaseValue {
    /** Unique to one run of one holder: a process that starts again takes another. */
    readonly owner: string;
    readonly [entry: string]: unknown;
}
/**
 * Leases, which show who is alive. A lease ends by itself when it is not renewed for the lease time.
 * Nobody is notified of that; a process that waits for it must poll. A lease is no lock: its holder may
 * be paused and wake up later, so what must exclude others is fenced by an epoch of its own.
 *
 * The methods throw as those of `KvBucket` do, and may then have done their work.
 */
export interface Leases {
    /** Takes a lease that nobody holds; true too if `value.owner` holds it already. */
    claim(key: string, value: LeaseValue): Promise<boolean>;
    /** Extends one's own lease by another lease time; false if it is no longer held. */
    renew(key: string, value: LeaseValue): Promise<boolean>;
    /** Ends one's own lease; nothing happens if somebody else holds it. */
    release(key: string, value: LeaseValue): Promise<void>;
    /** The value of a lease; undefined if nobody holds it. */
    read(key: string): Promise<LeaseValue | undefined>;
    /** The held leases whose keys begin with `prefix`, which ends in a dot. */
    list(prefix: string): Promise<Map<string, LeaseValue>>;
    /** The keys of {@link Leases.list}, for the cost of one request. */
    keys(prefix: string): Promise<ReadonlySet<string>>;
}
/**
 * Repeats `attempt` while it returns undefined: somebody else wrote in between.
 * @throws BUSY after 8 attempts.
 */
export declare function settleLease(key: string, attempt: () => Promise<boolean | undefined>): Promise<boolean>;
/** Reads the value of a stored lease. @throws BAD_MESSAGE if it is none. */
export declare function parseLease(key: string, stored: unknown): LeaseValue;
/**
 * The time until which each shard's lease is held, and the number of its tenure: how often it was claimed after a
 * time in which another host may have held it. Both are shared between the main thread, which renews, and the
 * workers, which must stop answering by themselves when renewals stop. Times are of the process's monotonic clock,
 * which all threads share.
 */
export declare class LeaseClock {
    #private;
    readonly buffer: SharedArrayBuffer;
    /** `buffer`: that of the clock on another thread; without it a new one for `shards` shards is made. */
    constructor(shards: number, buffer?: SharedArrayBuffer);
    /** Notes that the lease of a shard was claimed; {@link extend} follows. */
    claimed(shard: number): void;
    /** Notes that the lease of a shard is held for `remainingMs` from now. */
    extend(shard: number, remainingMs: number): void;
    /** Notes that the lease of a shard is not held. */
    end(shard: number): void;
    /** Number of the present tenure of a shard; undefined while its lease is not held. */
    tenure(shard: number): bigint | undefined;
}
/** Leases in a bucket whose entries expire: see `ttlMs` of `openBucket`. */
export declare class KvLeases implements Leases {
    #private;
    constructor(bucket: KvBucket);
    claim(key: string, value: LeaseValue): Promise<boolean>;
    renew(key: string, value: LeaseValue): Promise<boolean>;
    release(key: string, value: LeaseValue): Promise<void>;
    read(key: string): Promise<LeaseValue | undefined>;
    list(prefix: string): Promise<Map<string, LeaseValue>>;
    keys(prefix: string): Promise<ReadonlySet<string>>;
}
/** Dependencies of {@link LeaseKeeper}. */
export interface LeaseKeeperDeps {
    readonly leases: Leases;
    readonly key: string;
    readonly value: LeaseValue;
    readonly leaseMs: number;
    /** Called once, when the lease is lost or may be; the keeper has then stopped. */
    readonly onLost: (reason: PserverError) => void;
    /**
     * Called whenever the lease was claimed or renewed: it is held for `remainingMs` from now. Before a claim, another
     * process may have held it.
     */
    readonly onHeld?: (remainingMs: number, how: "claimed" | "renewed") => void;
    readonly clock?: Clock;
}
/**
 * Holds one lease and renews it three times in a lease time. The time is measured from before each
 * renewal is sent, on a monotonic clock, so the lease ends here before it ends where it is stored.
 */
export declare class LeaseKeeper {
    #private;
    constructor(deps: LeaseKeeperDeps);
    /**
     * Whether the lease is held at this moment. Check before every answer that only the holder may
     * give: `onLost` depends on a timer, which may be late.
     */
    get held(): boolean;
    /** Claims the lease and, if it was free, keeps it from then on; false if another holds it. */
    start(): Promise<boolean>;
    /**
     * Stops renewing, waits for a renewal under way and releases the lease. It throws if the lease cannot be
     * released: it then ends by itself.
     */
    stop(): Promise<void>;
}
/** Dependencies of {@link LeaseView}. */
export interface LeaseViewDeps {
    readonly leases: Leases;
    /** Prefix of the watched leases' keys; ends in a dot. */
    readonly prefix: string;
    readonly leaseMs: number;
    /** Time between polls; a third of the lease time by default. */
    readonly pollMs?: number;
    /** Told of each poll that failed; the view continues. */
    readonly onError?: (error: PserverError) => void;
    /** Called when a poll has found other leases than the one before. */
    readonly onChange?: () => void;
    readonly clock?: Clock;
}
/**
 * Tells which leases are lost: those that were absent for a whole lease time in which every poll was answered. So
 * every holder has a lease time to come back after an outage.
 */
export declare class LeaseView {
    #private;
    constructor(deps: LeaseViewDeps);
    /** Whether every poll of the past lease time was answered. */
    get settled(): boolean;
    /** The keys that the last answered poll found. */
    get present(): ReadonlySet<string>;
    /**
     * The leases that are held, and those that were held before an outage, until their holders have had a lease time to
     * come back: all leases end when none can be renewed.
     */
    get presumed(): ReadonlySet<string>;
    /** Whether the lease has been absent for a whole lease time while this process polled. */
    isLost(key: string): boolean;
    /** Polls until {@link LeaseView.stop}; settles after the first poll, answered or not. */
    start(): Promise<void>;
    /** Stops polling and waits for a poll under way. */
    stop(): Promise<void>;
    /** Discards the absences observed so far. Call it when the connection was lost. */
    disconnected(): void;
}
/** Checks that a broker answers. */
export declare class BrokerProbe {
    #private;
    constructor(connection: Pick<NatsConnection, "flush">, timeoutMs: number);
    /** Settles when the broker answers; calls at the same time share one request. @throws NO_BROKER */
    reach(): Promise<void>;
}
//# sourceMappingURL=leases.d.ts.map