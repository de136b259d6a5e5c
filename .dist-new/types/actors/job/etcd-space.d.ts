import { EtcdClient } from "./etcd-client.ts";
/** Addresses of etcd, prefix of its keys, and addresses of the broker that are published there. */
export interface EtcdSettings {
    /** `http://host:port` or `https://host:port`, tried in turn; all of one etcd. */
    readonly endpoints: readonly string[];
    /** Prefix of every key, so that several jobs can share one etcd; "" by default. */
    readonly prefix?: string;
    /** The broker's addresses as trainers reach them; by default as the host does. */
    readonly advertise?: readonly string[];
}
/** The keys in etcd, the same for every client: see "Discovery through etcd" in docs/reference/protocol.md. */
export declare class EtcdKeys {
    /** Number of hosts that are published, in decimal. */
    readonly desired: string;
    /** Prefix of the keys of published hosts and of `job`. */
    readonly servers: string;
    /** The job that the hosts serve. */
    readonly job: string;
    /** Held with the lease of the trainer that is selected to initialize. */
    readonly lock: string;
    /** "1" once the job is initialized. */
    readonly done: string;
    /** Tells this etcd and prefix from any other. */
    readonly id: string;
    /** Prefix of the keys of all leases of the job. */
    readonly leases: string;
    /** @throws BAD_VALUE for an invalid prefix, BAD_NAME for an invalid job. */
    constructor(job: string, prefix?: string);
    /** The index in the key of a published host; undefined for another key. */
    serverIndex(key: string): number | undefined;
}
/**
 * Parses the addresses of one etcd, from a list or from text with commas; returns each as `http://host:port`.
 * @throws BAD_VALUE unless each is `http://` or `https://`, host and port only, all alike.
 */
export declare function parseEtcdEndpoints(given: string | readonly string[]): string[];
/** Checks a prefix and returns it. @throws BAD_VALUE unless it is empty or like `/a` or `/a/b`. */
export declare function checkPrefix(prefix: string): string;
/**
 * Returns the broker's addresses for publication: with scheme and port, without credentials.
 * @throws BAD_VALUE for an invalid address.
 */
export declare function toAdvertised(given: string | readonly string[]): string[];
/** Checks the identity in the entry of {@link EtcdKeys.id}, and returns it. @throws BAD_VALUE if it cannot be one. */
export declare function checkSpaceId(id: string, key: string): string;
/** The keys of a job in one etcd, all under one prefix. */
export interface EtcdSpace {
    readonly client: EtcdClient;
    readonly keys: EtcdKeys;
    /** Identity of this etcd and prefix: unique, and the same for all who use them. */
    readonly id: string;
}
/**
 * Connects to etcd and reads its identity, which the first to connect writes. An address identifies
 * nothing: `127.0.0.1` is another etcd on every machine.
 * @throws BAD_VALUE for invalid settings, NO_ETCD if no address answers in time, DENIED,
 * JOB_EXISTS if hosts of another job are published there.
 */
export declare function openEtcdSpace(settings: EtcdSettings, job: string, timeoutMs: number): Promise<EtcdSpace>;
/** Checks that `published` is this job, or absent. @throws JOB_EXISTS if it is another. */
export declare function checkPublishedJob(published: string | undefined, job: string, { job: key }: EtcdKeys): void;
//# sourceMappingURL=etcd-space.d.ts.map