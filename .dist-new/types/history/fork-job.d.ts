import type { NatsConnection } from "@nats-io/transport-node";
import type { FoldState } from "../actors/fold/fold-state.ts";
import type { Shard } from "../actors/fold/shard.ts";
import { type StoredSettings } from "../actors/job/job-settings.ts";
import { type KvBucket } from "../actors/journal/kv-bucket.ts";
import { type Parameter } from "../actors/lifecycle/parameter.ts";
import { type Position } from "../protocol/index.ts";
import type { HistorySource, JobFacts } from "./source.ts";
/**
 * The parameters of a job as the states of its shards show them. The job's own entries say how it is now, not how it
 * was at a point; the states do. A parameter is ready if all of its blocks exist under the epoch that was granted
 * last. The initialization of any other has not been finished: the parameter keeps its epoch, so that the next
 * initialization has a higher one.
 */
export declare class FoundParameters {
    #private;
    /** Adds the parameters that one shard knows. To be called once for each shard. */
    add({ blocks, declared }: Pick<FoldState, "blocks" | "declared">): void;
    /** Returns the parameters as entries of a job whose shards have begun with these states, in no order. */
    parameters(): Parameter[];
}
/** Writes the entries of the parameters and of a job that is initialized, in place of any there are. */
export declare function writeEntries(bucket: KvBucket, parameters: readonly Parameter[]): Promise<void>;
/** Completed stage of a fork; before `complete`, no host joins the job. */
type ForkStage = "begun" | `shard ${number}` | "parameters" | "complete";
/** Options of {@link forkJob}. */
export interface ForkOptions {
    /** Connection to the broker that is to hold the new job, with the inbox of a host of that job. */
    readonly connection: NatsConnection;
    /** Id of the connection's inbox. */
    readonly host: string;
    /** Name of the new job. */
    readonly job: string;
    /** The job from which it is made. */
    readonly of: JobFacts;
    /** Settings of that job, from `knownSettings`; defaults hold for those that are not known. */
    readonly known: KnownSettings;
    /** Position of each shard with which the new job begins. */
    readonly at: readonly Position[];
    /** Makes a shard as it was at its position; called for one shard after the other. */
    readonly rebuild: Rebuild;
    readonly signal: AbortSignal;
    /** Called after each stage. */
    readonly onStage?: (stage: ForkStage) => void;
}
/** A job made by a fork. */
export interface ForkedJob {
    readonly job: string;
    /** Number of ready parameters. */
    readonly parameters: number;
    /** Bytes of all values and optimizer slots. */
    readonly bytes: number;
    /** Names of parameters whose initialization had not been finished, ascending. */
    readonly unfinished: readonly string[];
    /** Number of blocks with gradients of a step that had not closed, which are discarded. */
    readonly openBlocks: number;
}
/**
 * Makes a job that begins with the state of another one. No host joins it before it is complete. If it fails,
 * what there is of the job is removed. If the process ends, or the broker cannot be reached, repeating the fork
 * completes the job, and removing the job removes what there is.
 * @throws JOB_EXISTS if there is a job of this name, unless it is an incomplete fork of the same job; EMPTY if
 * there is no parameter at that point; BUSY, NOT_OWNER if the same fork runs elsewhere; NO_SPACE; the errors of
 * `rebuild`; ABORTED.
 */
export declare function forkJob(options: ForkOptions): Promise<ForkedJob>;
/** Settings of the other job that a fork takes over, if they are known. */
export type KnownSettings = Partial<Omit<StoredSettings, "format" | "rules" | "leases" | "shards" | "synchronization">>;
/** Reads the settings of a job that the broker holds; none if it holds no such job. @throws DENIED, TIMEOUT, …. */
export declare function knownSettings(connection: NatsConnection, job: string): Promise<KnownSettings>;
/** Makes a shard as it was at a position of its history. @throws the errors of `replayShard`. */
export type Rebuild = (shard: number, at: Position) => Promise<Shard>;
/**
 * Returns a function that rebuilds the shards of a source. `onProgress` is called now and then with a shard, and with
 * the number of records folded of those to fold.
 */
export declare function rebuildFrom(source: HistorySource, signal: AbortSignal, onProgress?: (shard: number, doneRecords: number, totalRecords: number) => void): Rebuild;
export {};
//# sourceMappingURL=fork-job.d.ts.map