import { PserverError } from "../../protocol/index.ts";
import { type JournalRecord } from "../fold/journal-record.ts";
import type { Shard } from "../fold/shard.ts";
import { type Journal, type JournalInfo } from "./journal.ts";
import type { ReplicaDamage } from "./replicas.ts";
import type { Watermark } from "./watermark.ts";
/** The first and last of consecutive records that a journal lacks, between two records that it holds. */
export interface JournalGap {
    readonly from: number;
    readonly to: number;
}
/**
 * Returns the sequence of a journal's last record; 0 if there can be none. It may be below the last sequence, because
 * a full disk uses up sequences without storing records.
 */
export declare function lastRecordSeq({ lastSeq, missing, }: Pick<JournalInfo, "lastSeq" | "missing">): number;
/** Returns the error for a journal that lacks an expected record. `found` is the next record that it holds. */
export declare function journalDamaged(shard: number, expected: number, found: number | undefined): PserverError;
/** The last record that an owner has folded. */
export interface FoldedEnd {
    readonly seq: number;
    /** Checksum of the record; 0 if there is none at this sequence, or an unreadable one. */
    readonly crc: number;
}
/** What is known of a journal that was folded before. */
export interface ExpectedJournal {
    readonly generation: number;
    /** Creation time of its stream; "" if unknown. */
    readonly created: string;
    readonly shard: Pick<Shard, "seq" | "lastCrc">;
    /** Watermark of former owners, read before the journal's state; ignored if of another generation. */
    readonly watermark: Watermark | undefined;
}
/**
 * Checks that a journal is the one that was folded: created at the same time, not shorter, and with the same records
 * at the ends up to which this owner and, according to the watermark, former ones have folded. A replicated journal
 * has a record if one of its copies has it; `onReplicaDamaged` is told of a leader whose copy has another one.
 * @returns its state; undefined if there is no stream.
 * @throws JOURNAL_LOST {from, to} if its newest records are gone, JOURNAL_DAMAGED {expected, found} if records in it
 * are.
 */
export declare function checkJournal(journal: Pick<Journal, "shard" | "isReplicated" | "info" | "record" | "append" | "soundCopy" | "leader">, expected: ExpectedJournal, onReplicaDamaged?: (damage: ReplicaDamage) => void): Promise<JournalInfo | undefined>;
/**
 * Does the part of {@link checkJournal} that needs only the state of the stream.
 * @returns the ends whose records {@link checkRecordAt} must compare.
 */
export declare function checkState(shard: number, { generation, created, shard: { seq, lastCrc }, watermark }: ExpectedJournal, info: JournalInfo): readonly FoldedEnd[];
/** @throws JOURNAL_DAMAGED if the record at an end is missing or another one. */
export declare function checkRecordAt({ seq, crc: expected }: FoldedEnd, shard: number, info: Pick<JournalInfo, "firstSeq">, record: Pick<JournalRecord, "payload"> | undefined): void;
/** Returns the error for folded records that a journal no longer holds; for none, `to` is below `from`. */
export declare function journalLost(shard: number, from: number, to: number, how: string): PserverError;
/** The part of a journal stream's state that says where its records end. */
type JournalEndInfo = Pick<JournalInfo, "lastSeq" | "missing" | "lost">;
/**
 * Returns the sequence of the last record that a fold at `foldedSeq` must reach; at least `foldedSeq`.
 * @throws JOURNAL_DAMAGED if the sequences after it have no records and the broker reports damage that does not name
 * them: it names records that a full disk kept it from storing, but not those that a crash has cut off.
 */
export declare function seqToReach(shard: number, foldedSeq: number, info: JournalEndInfo): number;
/**
 * Holds the end of a journal as its owner has observed it.
 *
 * Two invariants depend on it. An owner serves only after it has folded all records that it found when it took over:
 * former owners may have answered them. And it skips a gap only above these records: only there is it certain that no
 * former owner has folded the missing records.
 */
export declare class ObservedEnd {
    #private;
    constructor(shard: number);
    /** Sequence of the record that the fold must reach to catch up. */
    get seq(): number;
    /** Whether the end of this generation's journal has been noted before. */
    knows(generation: number): boolean;
    /** Notes the end of the journal, as just read. */
    note(generation: number, seq: number): void;
    /**
     * Passes if a gap may be skipped: it begins above the journal's end at take-over, and the stream reports that it
     * holds none of the records. A record that it counts but cannot read was stored, acknowledged, and damaged later.
     * @throws JOURNAL_DAMAGED {expected, found} if the gap may be a loss.
     */
    checkGap({ from, to }: JournalGap, generation: number, info: Pick<JournalInfo, "missing"> | undefined): void;
}
export {};
//# sourceMappingURL=journal-check.d.ts.map