import { type JetStreamClient } from "@nats-io/jetstream";
import { type JobSubjects, PserverError } from "../../protocol/index.ts";
import type { Journal } from "../journal/journal.ts";
import type { Watermark } from "../journal/watermark.ts";
import { type Gap, type LackedBlock, type SeqRange, type ShardFindings, type Tally } from "./findings.ts";
import { type InitializedBlock, type RecoveryArchive } from "./inspect-snapshots.ts";
import { type RebuildDeps } from "./rebuild-from-broker.ts";
/**
 * Returns those of the lacked blocks that none of these batches initializes. The subjects of batches do not name
 * blocks, so batches are read one after the other, until no block is lacked. A batch that cannot be read initializes
 * nothing.
 * @throws TIMEOUT, JETSTREAM_UNAVAILABLE or DENIED if the broker does not answer.
 */
export declare function lackedAfterBatches(journal: Pick<Journal, "record">, generation: number, seqs: readonly number[], lacked: readonly LackedBlock[]): Promise<LackedBlock[]>;
/**
 * Collects the gaps of a journal while its records are scanned in order, and counts the records after each place that
 * a shard may go back to.
 */
export declare class JournalTally {
    #private;
    /**
     * `baseSeq`: the readable prefix starts after it; `places`: sequences that the shard may go back to, besides the
     * end of the prefix; `missing`: sequences without records according to the stream; `changed`: a range in which a
     * record is not the one that was folded, which ends the prefix, too; `failedSeq`: the first record that cannot be
     * folded, if there is one.
     */
    constructor(options: {
        readonly subjects: JobSubjects;
        readonly firstSeq: number;
        readonly baseSeq: number;
        readonly places: readonly number[];
        readonly missing: readonly number[];
        readonly changed?: SeqRange | undefined;
        readonly failedSeq?: number | undefined;
    });
    /** Counts the next record. */
    record(seq: number, subject: string): void;
    /** Ends the scan. `lastSeq`: the last record that should be there. */
    end(lastSeq: number): void;
    /** Gaps, ascending. */
    get gaps(): readonly Gap[];
    /** Last record before the first gap after the base, or before the first range that has changed. */
    get readableEnd(): number;
    /** Last record up to which the journal can be folded from the base. */
    get prefixEnd(): number;
    /** Batches of the prefix after the base, ascending: their subjects do not tell what they initialize. */
    get batches(): readonly number[];
    /** Returns the lacked blocks that no record of the prefix initializes, apart from batches; reads subjects only. */
    stillLacked(lacked: readonly LackedBlock[]): LackedBlock[];
    /** Counts the records after a place. */
    behind(afterSeq: number): Tally;
}
/** Dependencies of {@link inspectShard}. */
export interface InspectDeps extends Omit<RebuildDeps, "onStage"> {
    readonly client: JetStreamClient;
    readonly storage: "file" | "memory";
    /** The error of its owner; undefined if it has none. */
    readonly ownerError: PserverError | undefined;
    /** The blocks that the shard must have. */
    readonly initialized: readonly InitializedBlock[];
    /** Watermark of its owners. */
    readonly watermark: Watermark | undefined;
    /** Undefined if none was named. */
    readonly archive: RecoveryArchive | undefined;
}
/**
 * Finds out whether a shard can be served, what is lost, and from which states it can go on; changes
 * nothing.
 * @throws TIMEOUT, JETSTREAM_UNAVAILABLE, NO_JETSTREAM, DENIED if the broker does not answer.
 */
export declare function inspectShard(deps: InspectDeps): Promise<ShardFindings>;
//# sourceMappingURL=inspect-shard.d.ts.map