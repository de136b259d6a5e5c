import type { NatsConnection } from "@nats-io/transport-node";
import { type LifecycleState } from "../../protocol/index.ts";
import type { EtcdSpace } from "./etcd-space.ts";
import { type JobStreams } from "./open-job.ts";
/** A job as its streams and entries describe it, whether hosts serve it or not. */
export interface JobDescription {
    readonly job: string;
    /**
     * State of its lifecycle; `removing` if its removal was begun; `incomplete` if it has no settings, because its
     * creation or its removal was interrupted, or if it is a fork that is not complete.
     */
    readonly state: LifecycleState | "removing" | "incomplete";
    readonly shards: number;
    readonly journal: "file" | "memory" | undefined;
    /** Hosts that are alive; undefined if their leases are in etcd. */
    readonly hosts: readonly string[] | undefined;
    /** `kv`, or the identity of the etcd that holds the leases. */
    readonly leases: string;
    /** Bytes of all its streams, in the broker's memory and files. */
    readonly bytes: number;
    readonly streams: number;
}
/** Describes a job; @throws TIMEOUT, DENIED, … if the broker does not answer. */
export declare function describeJob(connection: NatsConnection, { job, streams }: JobStreams): Promise<JobDescription>;
/** Options of {@link JobRemoval}. */
export interface JobRemovalOptions {
    readonly connection: NatsConnection;
    readonly job: string;
    /** The etcd that holds the job's leases, if one does. */
    readonly etcd: EtcdSpace | undefined;
    /** How long one request to the broker may take. */
    readonly timeoutMs: number;
    /**
     * Revision of the settings. If they have another one, nothing is removed: somebody else may have taken the job
     * over.
     */
    readonly revision?: number;
}
/**
 * Removes a job for good. First its settings get a flag, so that no host joins the job or makes it again from what is
 * left; the bucket that holds them is removed last. An interrupted removal is completed by another one.
 */
export declare class JobRemoval {
    #private;
    constructor(options: JobRemovalOptions);
    /**
     * Lists the streams that would be removed, the bucket of settings last; none if there is no such job.
     * @throws JOB_EXISTS while a host of the job is alive, BAD_VALUE if its leases are in an etcd that was not given;
     * DENIED for a user who may not list streams.
     */
    plan(): Promise<string[]>;
    /**
     * Removes the job; `onRemoved` is called for each stream and key.
     * @throws as {@link JobRemoval.plan}, before anything is removed.
     */
    run(onRemoved: (name: string) => void): Promise<void>;
}
//# sourceMappingURL=remove-job.d.ts.map