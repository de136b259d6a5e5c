import { PserverError } from "../../protocol/index.ts";
import type { KvBucket } from "../journal/kv-bucket.ts";
import type { EtcdClient } from "./etcd-client.ts";
import { type EtcdKeys, type EtcdSpace } from "./etcd-space.ts";
import type { BrokerProbe } from "./leases.ts";
/**
 * Shows the job's lifecycle in etcd: `/init_ps/lock` is attached to the lease of the selected trainer,
 * `/init_ps/done` is "1" once the job is initialized. Nothing is decided by these keys. A writer that knows an older
 * entry of the job cannot overwrite a newer one's keys: they are read before the job's entry, and swapped after.
 */
export declare class InitializationKeys {
    #private;
    constructor(space: EtcdSpace, bucket: KvBucket);
    /** Updates the keys from the job's entry. @throws NO_ETCD, BUSY, and as `KvBucket` does. */
    show(): Promise<void>;
}
/** Dependencies of {@link Publication}. */
export interface PublicationDeps {
    readonly client: EtcdClient;
    readonly keys: EtcdKeys;
    readonly job: string;
    /** The broker's addresses as trainers reach them. */
    readonly urls: readonly string[];
    readonly leaseMs: number;
    /** Probes that broker: a host without a connection to it publishes nothing. */
    readonly probe: BrokerProbe;
    /** Shows the state of the job's initialization again in each round. */
    readonly initialization: Pick<InitializationKeys, "show">;
    /** Called after each round that failed; the next one comes in its time. */
    readonly onError: (error: PserverError) => void;
}
/**
 * Keeps one host in etcd's list of servers: `/ps/<i>` with the broker's addresses, the job's name and
 * the number of hosts. All of these keys are attached to one lease, so that they expire with the host. A
 * shared key that expires with a dead host is written again by any other within a third of a lease time.
 */
export declare class Publication {
    #private;
    constructor(deps: PublicationDeps);
    /**
     * Publishes the host and keeps it published until {@link Publication.stop}.
     * @throws JOB_EXISTS if hosts of another job are published there, NO_ETCD, BUSY.
     */
    start(): Promise<void>;
    /** Shows the state of the job at once; a failure is reported, and the next round shows the state. */
    showJob(): Promise<void>;
    /** Ends the publication and revokes its lease. @throws NO_ETCD: the keys then expire by themselves. */
    stop(): Promise<void>;
}
//# sourceMappingURL=etcd-publication.d.ts.map