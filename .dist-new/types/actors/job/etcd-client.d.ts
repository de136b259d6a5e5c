import { PserverError } from "../../protocol/index.ts";
/** A key and its value. */
export interface EtcdEntry {
    readonly key: string;
    readonly value: string;
    /** Changes with every write to the key. */
    readonly revision: string;
    /** Id of the lease that the key is attached to; "0" for none. */
    readonly lease: string;
}
/** A condition of a {@link EtcdClient.swap}: the key has this revision, or is absent. */
export interface EtcdGuard {
    readonly key: string;
    readonly revision: string | undefined;
}
/** A change by a {@link EtcdClient.swap}. */
export type EtcdWrite = {
    readonly kind: "put";
    readonly key: string;
    readonly value: string;
    readonly lease?: string;
} | {
    readonly kind: "remove";
    readonly key: string;
};
/** How to reach etcd. */
export interface EtcdClientOptions {
    /** As `parseEtcdEndpoints` gives them. */
    readonly endpoints: readonly string[];
    /** How long one call may take, for all addresses together. */
    readonly timeoutMs: number;
}
/**
 * A small part of etcd's interface, with typed errors and bounded calls: each address is tried once,
 * beginning with the one that answered last. Reads see every write that was answered before they began.
 *
 * Every method throws NO_ETCD if no address answers in time, and DENIED. A write that ended in
 * NO_ETCD may have happened or may yet happen.
 */
export declare class EtcdClient {
    #private;
    readonly endpoints: readonly string[];
    private constructor();
    /** Loads the etcd package and makes a client; nothing is connected before the first call. */
    static open(options: EtcdClientOptions): Promise<EtcdClient>;
    /** Calls `onTurn` with an error when no address answers any more, and with undefined when one does again. */
    watch(onTurn: (lost: PserverError | undefined) => void): void;
    /** Sets how long a call may take, for all addresses together. */
    limit(timeoutMs: number): void;
    /** The entry of a key; undefined if there is none. */
    read(key: string): Promise<EtcdEntry | undefined>;
    /** Every key that begins with `prefix`, which is not empty, in order. */
    list(prefix: string): Promise<EtcdEntry[]>;
    /** Lists the keys as {@link EtcdClient.list} does, without their values. */
    keys(prefix: string): Promise<string[]>;
    /**
     * Makes all writes atomically if all guards hold, and returns true. Makes none and returns false if a guard does
     * not hold or a lease has ended.
     */
    swap(guards: readonly EtcdGuard[], writes: readonly EtcdWrite[]): Promise<boolean>;
    /** Makes a lease, which lasts for `leaseMs` rounded up to seconds unless it is kept alive; returns its id. */
    grant(leaseMs: number): Promise<string>;
    /** Extends a lease by its time from now on; false if it has ended. */
    keepAlive(lease: string): Promise<boolean>;
    /** Ends a lease and removes all keys attached to it; does nothing if it has ended. */
    revoke(lease: string): Promise<void>;
    /** Closes all connections; calls under way fail. */
    close(): void;
}
//# sourceMappingURL=etcd-client.d.ts.map