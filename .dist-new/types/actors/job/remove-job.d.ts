import type { NatsConnection } from "@nats-io/transport-node";
import type { EtcdSpace } from "./etcd-space.ts";
/** Options of {@link JobRemoval}. */
export interface JobRemovalOptions {
    readonly connection: NatsConnection;
    readonly job: string;
    /** The etcd that holds the job's leases, if one does. */
    readonly etcd: EtcdSpace | undefined;
    /** How long one request to the broker may take. */
    readonly timeoutMs: number;
    /** Whether these settings are those of the job that is meant; if not, nothing is removed. By default any are. */
    readonly isOwn?: (settings: unknown) => boolean;
}
/**
 * Removes a job for good. First its settings get a flag, so that no host joins the job or makes it again from what is
 * left; then its streams are listed, and the bucket that holds the settings is removed last. An interrupted removal is
 * completed by another one. One that goes on late leaves alone what was made under the job's name meanwhile.
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
     * @throws as {@link JobRemoval.plan}, before anything is removed; BUSY if somebody else changes the job's settings,
     * or if the name has been used again since the plan or during the removal: what was made then stays.
     */
    run(onRemoved: (name: string) => void): Promise<void>;
}
//# sourceMappingURL=remove-job.d.ts.map