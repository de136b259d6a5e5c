import { type Fields, type Position, PserverError } from "../../protocol/index.ts";
import type { Shard } from "../fold/shard.ts";
import type { Manifest } from "../journal/manifest.ts";
import { type ReplicaDamage } from "../journal/replicas.ts";
import type { SnapshotStore } from "../journal/snapshot-store.ts";
import type { WantedPosition } from "./pending-reads.ts";
import { type ServingOwner, type ShardContext } from "./serving-shard.ts";
/** Dependencies of {@link RecoveryWatch}. */
interface RecoveryWatchDeps {
    readonly store: Pick<SnapshotStore, "lastManifest">;
    /** Token of the owner that has failed. */
    readonly owner: string;
    readonly everyMs: number;
    /** Called once when the newest manifest is another owner's. */
    readonly onRecovered: (manifest: Manifest) => void;
}
/**
 * Polls for the recovery of a failed shard: `pserver recover` writes a manifest of its own, and does not notify the
 * host that has failed.
 */
export declare class RecoveryWatch {
    #private;
    constructor(deps: RecoveryWatchDeps);
    /** Stops polling. */
    stop(): void;
}
/**
 * Reports of askers that have seen a later record than the journal of a shard holds. Either the journal has lost
 * records unnoticed, or the asker names a record that never existed; so the operator is told, and the shard goes on.
 */
export declare class LossReports {
    #private;
    constructor(onReport: (error: PserverError) => void, now?: () => number);
    /** Adds a report. */
    add({ code, message, details }: PserverError, { asker, generation, seq }: WantedPosition): void;
    /** Makes the entry of `status`: the last report and the number of reports; none without a report. */
    entry(): Fields;
}
/** Owns one shard: takes it over, and serves it until it is closed, deposed or finds a loss. */
export declare class ShardOwner implements ServingOwner {
    #private;
    constructor(context: ShardContext);
    get token(): string;
    /** Takes the shard over and starts to fold; its listener is called when it has caught up. */
    start(): Promise<void>;
    /**
     * Goes on after the lease was claimed again, once the broker confirms that no other host has taken the shard over
     * in between; if one has, takes it over again. Nothing is answered before.
     */
    resume(): Promise<void>;
    /**
     * Whether it may answer. A failed shard may give its error as soon as the lease is held: if another host has
     * repaired the shard, that shows soon.
     */
    get mayAnswer(): boolean;
    /**
     * Whether the host has memory for the blocks that a shard has folded while catching up, which its snapshot does not
     * have. If not, drops the shard, which then waits like one whose snapshot does not fit.
     */
    fits(shard: Shard): boolean;
    caughtUp(): void;
    /**
     * Ends the fold of a shard whose journal may go with the broker: folds what the journal holds, and stores a
     * snapshot of that. Tries again after errors that can pass, until the owner is closed. Does nothing for a shard
     * that has failed or does not fit into the memory: nothing newer than its last snapshot can be stored.
     * @throws the error that no second attempt can change.
     */
    save(): Promise<void>;
    /** Checks the journal and reads on after the connection was lost. */
    reconnected(): Promise<void>;
    /** Whether it has caught up and answers. */
    get isServing(): boolean;
    /** Position of the fold; generation 0 before the shard is taken over. */
    position(): Position;
    /** Writes the last record that it has folded into the watermark. Failures are reported, not thrown. */
    writeWatermark(): Promise<void>;
    /** Makes the reply to `status`, which includes its error. */
    status(): Fields;
    /**
     * Stops folding and answering at once; the journal holds all records. Resolves when its last watermark is written,
     * or cannot be.
     */
    close(): Promise<void>;
    lossFound(error: PserverError, wanted: WantedPosition): void;
    get differingBrokers(): Iterable<string>;
    mark(): Promise<void>;
    replicaDamaged(damage: ReplicaDamage): void;
    fail(error: PserverError, copy?: ReplicaDamage): void;
}
export {};
//# sourceMappingURL=shard-owner.d.ts.map