import type { JobSettings } from "../job/job-settings.ts";
import type { Owners } from "../job/owners-client.ts";
import { type DeclaredLedger } from "./declared-ledger.ts";
import type { BucketDeps } from "./lock.ts";
import { type Lifecycle } from "./machine.ts";
import type { Parameter } from "./parameter.ts";
/** Dependencies of {@link ShardComparison}. */
interface ComparisonDeps extends BucketDeps {
    readonly job: Pick<JobSettings, "job" | "shards">;
    readonly owners: Pick<Owners, "known" | "append">;
    readonly ledger: Pick<DeclaredLedger, "catalog">;
}
/**
 * Compares the entries of a job's bucket with what its shards know, before a host decides anything by the entries:
 * each shard once, and again after the connection to the broker was lost. Tells the shards what the entries say and
 * they do not know.
 */
export declare class ShardComparison {
    #private;
    constructor(deps: ComparisonDeps);
    /** Has every shard compared again: another store may be behind the broker. */
    forget(): void;
    /**
     * Compares the shards that were not compared yet.
     * @throws JOB_DAMAGED naming the entries that contradict a shard; the error of an owner that does not answer, NO_OWNER
     * after 20 s without one.
     */
    requireAll(): Promise<void>;
    /**
     * Compares those of the shards not compared yet whose owners answer at once. Returns whether all are compared.
     * @throws JOB_DAMAGED naming the entries that contradict a shard.
     */
    require(): Promise<boolean>;
}
/** Tells the journals of the shards concerned that the job is initialized, or a parameter by itself. */
export declare function announceReady({ job: { shards }, owners }: Pick<ComparisonDeps, "job" | "owners">, ready: {
    readonly job: Lifecycle;
} | {
    readonly parameter: Parameter;
}): Promise<void>;
export {};
//# sourceMappingURL=shard-comparison.d.ts.map