import { type Fallback, type PserverError } from "../../protocol/index.ts";
import type { NotedChecksum } from "../fold/journal-checksum.ts";
import type { Shard } from "../fold/shard.ts";
import { type Journal } from "../journal/journal.ts";
import { type JournalGap, type ObservedEnd } from "../journal/journal-check.ts";
import type { ReplicaDamage } from "../journal/replicas.ts";
import type { ManifestHeader } from "../journal/snapshotter.ts";
import type { WatermarkKeeper } from "../journal/watermark-keeper.ts";
import type { ShardSnapshots } from "./shard-snapshots.ts";
/** Dependencies of {@link OwnedJournal}. */
interface OwnedJournalDeps {
    readonly host: string;
    /** Token of this take-over. */
    readonly owner: string;
    readonly journal: Journal;
    readonly storage: "file" | "memory";
    readonly shard: Shard;
    readonly snapshots: ShardSnapshots;
    readonly journalEnd: ObservedEnd;
    /** Reads the watermark of former owners. */
    readonly watermarks: Pick<WatermarkKeeper, "read">;
    /** Called when the journal was replaced by one of the next generation. */
    readonly onReplaced: () => void;
    /** Called when the journal in memory is gone, and with it records that former owners have noted as folded. */
    readonly onFellBack: (manifest: ManifestHeader) => void;
    /** Called when a copy of the journal has another record than was folded, and another copy has that record. */
    readonly onReplicaDamaged: (damage: ReplicaDamage) => void;
    /** Called when a gap could not be skipped yet; it is retried. */
    readonly onGapRemains: (error: PserverError) => void;
}
/** Where a journal continues. */
export interface LocatedJournal {
    readonly stream: string;
    readonly generation: number;
    /** Checksums that were noted of it when it was folded before, ascending. */
    readonly noted: readonly NotedChecksum[];
}
/** The journal of a shard as its owner sees it: creates, checks and replaces it, and skips gaps. */
export declare class OwnedJournal {
    #private;
    constructor(deps: OwnedJournalDeps);
    /**
     * Checks the journal and returns where it continues. A journal in memory that is gone is replaced, and so is one
     * that is not the one that was folded: the brokers of a cluster make a stream again, empty and under its old
     * creation time, when the last of them that had it is started again. No file could give its records back.
     * @throws JOURNAL_LOST, JOURNAL_DAMAGED if a journal on file is not the one that was folded.
     */
    locate(): Promise<LocatedJournal>;
    /**
     * Replaces the journal by one of the next generation, from what is folded. `left`: the range of records that is
     * lost with the old journal; by default none that was folded.
     */
    replace(left?: Fallback): Promise<void>;
    /**
     * Skips records that were never stored, by a snapshot after the gap: whoever takes the shard over later starts
     * there. Retries until the broker can store the snapshot.
     * @throws JOURNAL_DAMAGED if the gap may be a loss, NOT_OWNER if another owner has taken over, and the errors that
     * {@link RetryLimit} does not retry.
     */
    skipGap(gap: JournalGap): Promise<void>;
    /** Ends the retries of {@link skipGap}. */
    close(): void;
}
export {};
//# sourceMappingURL=owned-journal.d.ts.map