import { type PserverError } from "../../protocol/index.ts";
import { type LeaseClock, type Leases, type LeaseValue } from "../job/leases.ts";
/** Dependencies of {@link DeclinedShards}. */
interface DeclinedShardsDeps {
    readonly host: string;
    readonly value: LeaseValue;
    readonly leases: Leases;
    readonly leaseMs: number;
}
/**
 * The shards that this host has declined because they do not fit into its memory. A lease for each shard tells the
 * other hosts, so that they place the shard elsewhere while the lease lasts.
 */
export declare class DeclinedShards {
    #private;
    constructor(deps: DeclinedShardsDeps);
    /** Whether this host has declined a shard. */
    has(shard: number): boolean;
    /** Declines a shard until `fits` returns true. */
    decline(shard: number, fits: () => boolean): void;
    /** Claims the leases of declined shards, and releases those of shards that fit again. */
    review(): Promise<void>;
    /** Releases all leases. */
    close(): Promise<void>;
}
/** Returns the hosts that have declined each shard, by the keys of their leases. */
export declare function declinedBy(keys: Iterable<string>): Map<number, Set<string>>;
/**
 * Returns the host that should own a shard: the one with the highest hash together with it (rendezvous hashing), so
 * that a host that joins or leaves moves the fewest shards. Undefined without hosts.
 */
export declare function placeShard(job: string, shard: number, hosts: Iterable<string>): string | undefined;
/** Prefix of the keys of all hosts' leases. */
export declare const HOST_LEASES = "host.";
/** Prefix of the keys of all shards' leases. */
export declare const SHARD_LEASES = "shard.";
/** Callbacks of {@link ShardClaims}. */
interface ClaimEvents {
    /**
     * The lease of a shard was claimed: own it. Called again when a lease that had run out is held again; another host
     * may have owned the shard in between.
     */
    readonly onClaimed: (shard: number) => void;
    /** Another host holds the lease, or is to hold it: stop owning the shard. */
    readonly onReleased: (shard: number) => void;
    readonly onError: (error: PserverError) => void;
}
/** Dependencies of {@link ShardClaims}. */
interface ShardClaimsDeps {
    readonly job: string;
    readonly shards: number;
    readonly host: string;
    /** Value of this host's leases; `owner` is unique to this run of the host. */
    readonly value: LeaseValue;
    readonly leases: Leases;
    readonly leaseMs: number;
    readonly clock: LeaseClock;
    readonly events: ClaimEvents;
}
/** Returns the key of a host's lease. */
export declare function hostKey(host: string): string;
/** Returns the host of a key that {@link hostKey} made. @throws BAD_NAME for any other key. */
export declare function hostOfKey(key: string): string;
/**
 * Claims the leases of the shards that placement gives this host, renews them, and releases those of shards that
 * belong to a host that has joined.
 */
export declare class ShardClaims {
    #private;
    /** Nothing is claimed before {@link start}. */
    constructor(deps: ShardClaimsDeps);
    /** Begins to claim; settles after the first round. */
    start(): Promise<void>;
    /** Returns the shards that placement gives this host, whether their leases are held yet or not. */
    get share(): number[];
    /** Leaves a shard to hosts that it fits into, until `fits` returns true for this one. */
    decline(shard: number, fits: () => boolean): void;
    /**
     * Stops claiming and releases all leases, so that other hosts need not wait for them to end. The lease of a shard
     * is held until `finish` is done with the shard, so that no other host takes it over before.
     */
    close(finish?: (shard: number) => Promise<void>): Promise<void>;
}
export {};
//# sourceMappingURL=shard-claims.d.ts.map