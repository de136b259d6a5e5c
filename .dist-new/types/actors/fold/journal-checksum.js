import { checksum } from "../../protocol/checksum/checksum.js";
import { isSealed, readCrc } from "../../protocol/codec.js";
import { PserverError } from "../../protocol/errors.js";
import { integerField, listField } from "../../protocol/fields.js";
/** The checksum of a journal without records. */
export const NO_RECORDS = [0, 0, 0];
const SUM_MAX = 0xffffffff;
/** Odd factors without a pattern in their bits, from the hash functions xxHash and MurmurHash. */
const SUBJECT_FACTOR = 0x9e3779b1;
const LENGTH_FACTOR = 0x85ebca77;
const MIX_FACTORS = [0x85ebca6b, 0xc2b2ae35];
/** Adds a record to the sums of a journal. `crc` is the result of {@link checksumOf}. */
export function addRecord(sums, seq, crc) {
    // Changes the sums in place: an array for each record would cost more than the sums.
    sums[0] = sums[0] + crc;
    sums[1] = sums[1] + Math.imul(seq, crc);
    sums[2] = sums[2] + Math.imul(Math.imul(seq, seq), crc);
}
/** Returns the checksum that these sums make. */
export function toChecksum([plain = 0, bySeq = 0, bySquare = 0]) {
    return [plain, bySeq, bySquare];
}
/**
 * Computes the checksum of everything that the fold sees of a record except its sequence. Does not read again what
 * the checksum in the message covers, if `isRead` says that it matches.
 * @param subjectCrc checksum of the subject's characters.
 */
export function checksumOf(subjectCrc, payload, isRead) {
    // The checksum in a payload that does not match it says nothing about the other bytes.
    const isCovered = isRead || isSealed(payload);
    const payloadCrc = isCovered ? readCrc(payload) : checksum(payload);
    let crc = Math.imul(subjectCrc, SUBJECT_FACTOR) ^ payloadCrc;
    crc ^= Math.imul(payload.length, LENGTH_FACTOR);
    // Each step can be undone, so no difference is lost. Without these steps, sums of related records could be equal.
    crc = Math.imul(crc ^ (crc >>> 16), MIX_FACTORS[0]);
    crc = Math.imul(crc ^ (crc >>> 13), MIX_FACTORS[1]);
    return (crc ^ (crc >>> 16)) >>> 0;
}
/** Computes the checksum of the characters of a subject. */
export function subjectCrcOf(subject) {
    return checksum(Buffer.from(subject));
}
/** Whether two checksums are the same. */
export function isSameChecksum(a, b) {
    return a.every((sum, i) => sum === b[i]);
}
/** Reads the checksum in a field of a message or of a JSON entry. @throws BAD_MESSAGE if the field holds none. */
export function checksumField(fields, key) {
    const sums = listField(fields, key, NO_RECORDS.length);
    const sum = (i) => integerField({ [key]: sums[i] }, key, 0, SUM_MAX);
    return [sum(0), sum(1), sum(2)];
}
/**
 * Finds the records of a range that have changed, given two checksums that differ: the only record whose change
 * explains the difference, else the whole range.
 */
export function changedRecords(noted, found, range) {
    const [plain, bySeq, bySquare] = noted.map((sum, i) => ((found[i] ?? 0) - sum) | 0);
    const explains = (seq) => Math.imul(seq, plain ?? 0) === bySeq && Math.imul(Math.imul(seq, seq), plain ?? 0) === bySquare;
    let only;
    for (let seq = range.from; seq <= range.to && plain !== 0; seq++) {
        if (!explains(seq))
            continue;
        if (only !== undefined)
            return range;
        only = seq;
    }
    return only === undefined ? range : { from: only, to: only };
}
/** Returns the error for records that differ from those that were folded. */
export function journalChanged(shard, { from, to }) {
    const [what, details] = from === to
        ? [`record ${from} is another than the one that was folded`, { shard, seq: from }]
        : [`records ${from} to ${to} are not all those that were folded`, { shard, from, to }];
    return new PserverError("JOURNAL_DAMAGED", `shard ${shard}: ${what}`, details);
}
/** Returns the records that an error of {@link journalChanged} names; undefined for any other error. */
export function changedRecordsOf({ code, details }) {
    const { seq, from = seq, to = seq } = details;
    if (code !== "JOURNAL_DAMAGED" || typeof from !== "number" || typeof to !== "number")
        return undefined;
    return { from, to };
}
/** Compares a journal that is folded again with the checksums noted when it was folded before. */
export class ChecksumComparison {
    #shard;
    /** Up to this record the journal is known to be the same, or was not folded before. */
    #sameSeq = 0;
    /** Checksums still to be compared, ascending. */
    #noted = [];
    constructor(shard) {
        this.#shard = shard;
    }
    /** Whether nothing is left to compare. */
    get isDone() {
        return this.#noted.length === 0;
    }
    /** Restarts after record `seq`, with nothing to compare. */
    restart(seq) {
        this.#sameSeq = seq;
        this.#noted = [];
    }
    /** Replaces the checksums to compare, ascending. `seq` is the last record folded. */
    expect(noted, seq) {
        this.#noted = noted.filter((each) => each.seq > seq);
    }
    /**
     * Compares the sums of the journal with the checksum noted at this record, if there is one. Must be called after
     * each record.
     * @throws JOURNAL_DAMAGED {seq}, or {from, to} for several, if records are not those that were folded.
     */
    check(seq, sums) {
        for (let next = this.#noted[0]; next !== undefined && next.seq <= seq; next = this.#noted[0]) {
            const computed = toChecksum(sums);
            if (!isSameChecksum(next.checksum, computed)) {
                const range = { from: this.#sameSeq + 1, to: seq };
                throw journalChanged(this.#shard, changedRecords(next.checksum, computed, range));
            }
            this.#sameSeq = seq;
            this.#noted = this.#noted.slice(1);
        }
    }
}
//# sourceMappingURL=journal-checksum.js.map