import { type Fields } from "../../protocol/index.ts";
import { type Clock } from "../concurrent.ts";
import type { JobSettings } from "../job/job-settings.ts";
import type { Owners } from "../job/owners-client.ts";
import type { KvBucket } from "../journal/kv-bucket.ts";
import { type Lifecycle } from "./machine.ts";
import { type Parameter } from "./parameter.ts";
/** Called with a parameter whenever the catalog gets a newer entry of it. */
type OnParameter = (parameter: Parameter) => void;
/**
 * The parameters of a job as this host knows them: as it has written them, and as others had when it last read the
 * bucket. They may be stale. Decide on one only if a later compare-and-swap fails on stale data, or if it is one that
 * never changes.
 *
 * Memory: about 1 KB for each name that was ever declared. `Quotas.parametersMax` bounds their number.
 */
export declare class ParameterCatalog {
    #private;
    constructor(bucket: Pick<KvBucket, "changes">, onParameter: OnParameter);
    /** The parameter of this name; undefined if none is known. */
    get(name: string): Parameter | undefined;
    /** Every known parameter, in no order. */
    all(): Parameter[];
    /** Up to `limit` known parameters whose names follow `after`, in order of code units, and whether more follow. */
    page(after: string, limit: number): {
        parameters: Parameter[];
        more: boolean;
    };
    /** Keeps parameters that were just written or read, unless a newer entry is known. */
    note(parameters: readonly Parameter[]): void;
    /**
     * Refreshes only if the job was initialized or revised since the last call: nothing else changes a ready parameter.
     * Returns whether it has read.
     */
    follow({ context }: Lifecycle): Promise<boolean>;
    /**
     * Reads what others have written before this call. Calls that come while one is reading share the next reading.
     * @throws as `KvBucket` does; the next call then reads on.
     */
    refresh(): Promise<void>;
}
/** Dependencies of {@link DeclaredLedger}. */
interface DeclaredLedgerDeps {
    readonly bucket: KvBucket;
    readonly job: JobSettings;
    readonly clock: Clock;
}
/**
 * Counts the declarations of a job for its quotas: exactly those made through this host, and those made through
 * others as of at most a second ago. Names are never forgotten, so they always count. Bytes count from the
 * declaration on, and no longer if the initialization ends without a finish.
 */
export declare class DeclaredLedger {
    #private;
    /** The parameters that are counted. */
    readonly catalog: ParameterCatalog;
    constructor(deps: DeclaredLedgerDeps);
    /** Reads what others may have declared, unless that was done less than a second ago. */
    refresh(): Promise<void>;
    /**
     * Checks that a trainer may declare these parameters in addition to those that are declared.
     * @throws QUOTA naming the quota that would be exceeded.
     */
    require(trainer: string, adding: readonly Parameter[]): void;
    /** Returns what is declared, in all and by each trainer, and the quotas. */
    show(): Fields;
}
/** Dependencies of {@link announceGranted} and {@link dropOrphans}. */
interface GrantDeps {
    readonly job: JobSettings;
    readonly owners: Pick<Owners, "append">;
    readonly maxPayloadBytes: number;
}
/**
 * Tells the journals of the shards concerned that this trainer initializes these parameters, before the trainer
 * itself is told. Each shard gets one record, or as many as the largest message requires. A repeat is harmless, and
 * completes what a host that died has left undone.
 */
export declare function announceGranted(deps: GrantDeps, trainer: string, parameters: readonly Parameter[]): Promise<void>;
/**
 * Drops orphans: all blocks of a parameter that nobody initializes, and those blocks of a ready parameter that its
 * present layout does not have. A repeat is harmless.
 */
export declare function dropOrphans(deps: GrantDeps, parameters: readonly Parameter[], job: Lifecycle): Promise<void>;
/** Returns the shards of so many consecutive blocks, each once: block after block lies on the next shard. */
export declare function shardsOf(firstShard: number, blocks: number, shards: number): number[];
export {};
//# sourceMappingURL=declared-ledger.d.ts.map