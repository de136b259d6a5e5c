import type { NatsConnection } from "@nats-io/transport-node";
import { type Lifecycle } from "../actors/lifecycle/machine.ts";
import { type Parameter } from "../actors/lifecycle/parameter.ts";
import { type Fallback, type Position } from "../protocol/index.ts";
import { type Rebuild } from "./fork-job.ts";
/** A rewind under way, or one that was interrupted. */
export interface RewindPlan {
    /** Token of the rewind. */
    readonly id: string;
    /** When it was begun, in milliseconds since 1970. */
    readonly begunMs: number;
    /** Position of each shard to which it goes back. */
    readonly at: readonly Position[];
    /** Generation of each shard when it was begun; a shard of a later generation has been rewound. */
    readonly from: readonly number[];
}
/** Lifecycles of a job and its parameters, as their entries hold them. */
export interface LifecycleEntries {
    readonly job: Lifecycle;
    readonly parameters: readonly Parameter[];
}
/**
 * Returns the entries of a job whose shards go on from a cut. A parameter that was ready there is ready, under the
 * epoch that it had; any other is to be initialized again, under a higher epoch than it ever had. The job is
 * initialized if it was initialized at the cut.
 * @param found the parameters as the shards show them at the cut.
 */
export declare function rewoundEntries({ job, parameters: known }: LifecycleEntries, found: readonly Parameter[], cut: readonly Position[]): LifecycleEntries;
/** Completed stage of a rewind; before `begun`, the job is unchanged. */
type RewindStage = "rebuilt" | "begun" | `shard ${number}` | "parameters" | "complete";
/** Options of {@link rewindJob}. */
export interface RewindOptions {
    /** A connection like that of a host of the job. */
    readonly connection: NatsConnection;
    /** Id of the connection's inbox. */
    readonly host: string;
    readonly job: string;
    /** Position of each shard to which the job goes back. */
    readonly at: readonly Position[];
    /** Makes a shard as it was at a position. */
    readonly rebuild: Rebuild;
    readonly signal: AbortSignal;
    /** Called after each stage. */
    readonly onStage?: (stage: RewindStage) => void;
}
/** A shard that goes on from an earlier state. */
interface RewoundShard extends Position {
    readonly shard: number;
    /** Records that it gave up; none for a shard that an interrupted rewind had completed. */
    readonly fallbacks: readonly Fallback[];
    /** Whether a host serves it again. */
    readonly served: boolean;
}
/** A job that goes on from an earlier state. */
export interface RewoundJob {
    readonly job: string;
    /** Positions from which its shards go on. */
    readonly at: readonly Position[];
    /** Whether an interrupted rewind was completed instead of the one that was asked for. */
    readonly completed: boolean;
    readonly shards: readonly RewoundShard[];
    /** Names of parameters that are ready, and of those that are to be initialized again. */
    readonly ready: readonly string[];
    readonly gone: readonly string[];
}
/** Returns the interrupted rewind of a job; undefined if there is none. @throws BAD_NAME, TIMEOUT, …. */
export declare function interruptedRewind(connection: NatsConnection, job: string): Promise<RewindPlan | undefined>;
/**
 * Lets a job go on from an earlier state, in place, while hosts serve it. All shards are rebuilt in memory before
 * anything is written. Then the plan is noted in the job's bucket, and one shard after the other is put under
 * the next generation, by one write each. If that is interrupted, some shards have gone back and others have
 * not; the next rewind, whatever its point, completes this one.
 * @throws BAD_NAME if there is no such job; BUSY if another rewind has begun since; NOT_OWNER if an owner
 * made snapshots faster than the state could be stored; NO_SPACE; the errors of `rebuild`; ABORTED.
 */
export declare function rewindJob(options: RewindOptions): Promise<RewoundJob>;
export {};
//# sourceMappingURL=rewind-job.d.ts.map