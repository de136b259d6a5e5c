import type { JetStreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { type ForkOrigin, type StoredSettings } from "../../actors/job/job-settings.ts";
import { JobSpace } from "../../actors/job/storage-plan.ts";
import { type KvBucket } from "../../actors/journal/kv-bucket.ts";
import { type Parameter } from "../../actors/lifecycle/parameter.ts";
import { type JobSubjects } from "../../protocol/index.ts";
import type { JobFacts } from "../source.ts";
/** Settings of the other job that a fork takes over, if they are known. */
export type KnownSettings = Partial<Omit<StoredSettings, "format" | "rules" | "leases" | "shards" | "synchronization">>;
/** Reads the settings of a job that the broker holds; none if it holds no such job. @throws DENIED, TIMEOUT, …. */
export declare function knownSettings(connection: NatsConnection, job: string): Promise<KnownSettings>;
/** Dependencies of {@link NewJob.begin}. */
interface NewJobDeps {
    readonly connection: NatsConnection;
    readonly manager: JetStreamManager;
    readonly subjects: JobSubjects;
}
/** What identifies the entries of a job that is being made, and the run that makes it. */
export interface NewJobParts {
    readonly job: string;
    readonly settings: StoredSettings;
    readonly bucket: KvBucket;
    /** The origin, with the token of the run. */
    readonly origin: ForkOrigin;
    /** Reserves the broker's space for the job's state. */
    readonly space: Pick<JobSpace, "reserve">;
}
/**
 * A job that is being made. From the first write to the last its settings say so, so that no host joins it before it
 * is complete. They hold a token of the run that makes it; a later run takes the job over with a token of its own.
 * Whatever the earlier run still writes into the bucket is refused from then on.
 */
export declare class NewJob {
    #private;
    readonly settings: StoredSettings;
    /** Reserves the broker's space for the job's state, before that is written. */
    readonly space: Pick<JobSpace, "reserve">;
    constructor({ job, settings, bucket, origin, space }: NewJobParts);
    /** Token of this run. */
    get token(): string;
    /**
     * Begins to make the job, or takes it over from a run that was interrupted.
     * @throws JOB_EXISTS if there is a job of this name, unless it is an incomplete fork of the same job;
     * NO_SPACE if the broker has no space for its journals; BUSY if another run begins at the same time.
     */
    static begin(deps: NewJobDeps, of: JobFacts, at: Pick<ForkOrigin, "at" | "madeMs">, known: KnownSettings): Promise<NewJob>;
    /** Checks that no other run has taken the job over. @throws BUSY */
    check(): Promise<void>;
    /**
     * Writes the entries of the parameters and of a job that is initialized, in place of any there are, and at last lets
     * hosts join the job. Each write is made directly after the one before. `onParameters` is called before the last.
     * @throws BUSY if another run has taken the job over: then nothing that this one may still write is stored.
     */
    complete(parameters: readonly Parameter[], onParameters?: () => void): Promise<void>;
    /**
     * Removes what there is of the job.
     * @throws BUSY, before anything is removed, if another run has taken the job over, or it is complete; the errors of
     * {@link JobRemoval.run}.
     */
    remove(connection: NatsConnection): Promise<void>;
}
export {};
//# sourceMappingURL=new-job.d.ts.map