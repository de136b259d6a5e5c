import { PserverError } from "../../protocol/errors.ts";
/**
 * The checksum of a journal up to a record: three sums, modulo 2^32, over the checksums of its records. The first
 * adds each checksum once, the second times its sequence, the third times the square of its sequence. So records that
 * changed, vanished or changed places give other sums; and if a single record has changed, the differences tell which
 * ({@link changedRecords}).
 */
export type JournalChecksum = readonly [plain: number, bySeq: number, bySquare: number];
/** The checksum of a journal up to record `seq`, as noted when that record was folded. */
export interface NotedChecksum {
    readonly seq: number;
    readonly checksum: JournalChecksum;
}
/** Consecutive records, at least one of which has changed; if `from` and `to` are equal, exactly that one. */
export interface ChangedRecords {
    readonly from: number;
    readonly to: number;
}
/** The checksum of a journal without records. */
export declare const NO_RECORDS: JournalChecksum;
/** Adds a record to the sums of a journal. `crc` is the result of {@link checksumOf}. */
export declare function addRecord(sums: Uint32Array, seq: number, crc: number): void;
/** Returns the checksum that these sums make. */
export declare function toChecksum([plain, bySeq, bySquare]: Uint32Array): JournalChecksum;
/**
 * Computes the checksum of everything that the fold sees of a record except its sequence. Does not read again what
 * the checksum in the message covers, if `isRead` says that it matches.
 * @param subjectCrc checksum of the subject's characters.
 */
export declare function checksumOf(subjectCrc: number, payload: Uint8Array, isRead: boolean): number;
/** Computes the checksum of the characters of a subject. */
export declare function subjectCrcOf(subject: string): number;
/** Whether two checksums are the same. */
export declare function isSameChecksum(a: JournalChecksum, b: JournalChecksum): boolean;
/** Reads the checksum in a field of a message or of a JSON entry. @throws BAD_MESSAGE if the field holds none. */
export declare function checksumField(fields: Readonly<Record<string, unknown>>, key: string): JournalChecksum;
/**
 * Finds the records of a range that have changed, given two checksums that differ: the only record whose change
 * explains the difference, else the whole range.
 */
export declare function changedRecords(noted: JournalChecksum, found: JournalChecksum, range: ChangedRecords): ChangedRecords;
/** Returns the error for records that differ from those that were folded. */
export declare function journalChanged(shard: number, { from, to }: ChangedRecords): PserverError;
/** Returns the records that an error of {@link journalChanged} names; undefined for any other error. */
export declare function changedRecordsOf({ code, details }: PserverError): ChangedRecords | undefined;
/** Compares a journal that is folded again with the checksums noted when it was folded before. */
export declare class ChecksumComparison {
    #private;
    constructor(shard: number);
    /** Whether nothing is left to compare. */
    get isDone(): boolean;
    /** Restarts after record `seq`, with nothing to compare. */
    restart(seq: number): void;
    /** Replaces the checksums to compare, ascending. `seq` is the last record folded. */
    expect(noted: readonly NotedChecksum[], seq: number): void;
    /**
     * Compares the sums of the journal with the checksum noted at this record, if there is one. Must be called after
     * each record.
     * @throws JOURNAL_DAMAGED {seq}, or {from, to} for several, if records are not those that were folded.
     */
    check(seq: number, sums: Uint32Array): void;
}
//# sourceMappingURL=journal-checksum.d.ts.map