import type { JournalRecord } from "../fold/journal-record.ts";
import type { DeliveredRecord } from "./journal-reader.ts";
/** A record, and the broker whose copy of a replicated journal it is from. */
export type RecordCopy = JournalRecord & Partial<Pick<DeliveredRecord, "broker">>;
/**
 * Records that did not match their checksums when they were delivered. A second delivery tells whether
 * a record was damaged in transit or is stored like that: the same bytes twice are what the journal holds. In a
 * replicated journal they have to come from two brokers: one copy may be damaged.
 */
export declare class MismatchedRecords {
    #private;
    /** Whether this delivery has the same bytes as the one before. */
    isConfirmedBy(record: RecordCopy): boolean;
    /** Returns the broker that last delivered this record otherwise; undefined if none did. */
    brokerOf(seq: number): string | undefined;
    /**
     * Remembers those of these records that do not match their checksums, and forgets all others;
     * false if one of them never comes twice with the same bytes.
     */
    remember(records: readonly RecordCopy[]): boolean;
}
//# sourceMappingURL=mismatched-records.d.ts.map