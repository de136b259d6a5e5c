import { PserverError } from "../../protocol/index.js";
import { recordCrc } from "../fold/journal-record.js";
import { majorityInfo, majorityRecord } from "./journal.js";
/**
 * Returns the sequence of a journal's last record; 0 if there can be none. It may be below the last sequence, because
 * a full disk uses up sequences without storing records.
 */
export function lastRecordSeq({ lastSeq, missing, }) {
    let seq = lastSeq;
    for (let i = missing.length - 1; i >= 0 && missing[i] === seq; i--)
        seq -= 1;
    return seq;
}
/** Returns the error for a journal that lacks an expected record. `found` is the next record that it holds. */
export function journalDamaged(shard, expected, found) {
    return new PserverError("JOURNAL_DAMAGED", `shard ${shard}: expected record ${expected}; found ${found ?? "nothing"}`, { shard, expected, found: found ?? "nothing" });
}
/**
 * Checks that a journal is the one that was folded: created at the same time, not shorter, and with the same records
 * at the ends up to which this owner and, according to the watermark, former ones have folded. A replicated journal
 * has a record if one of its copies has it; `onReplicaDamaged` is told of a leader whose copy has another one.
 * @returns its state; undefined if there is no stream.
 * @throws JOURNAL_LOST {from, to} if its newest records are gone, JOURNAL_DAMAGED {expected, found} if records in it
 * are.
 */
export async function checkJournal(journal, expected, onReplicaDamaged) {
    const { generation, created } = expected;
    // A journal whose creation was not completed takes no records but its rules.
    const info = created === "" ? await journal.info(generation) : await majorityInfo(journal, generation);
    if (info === undefined)
        return undefined;
    for (const end of checkState(journal.shard, expected, info)) {
        const isSound = ({ payload }) => recordCrc(payload) === end.crc;
        const record = await majorityRecord(journal, generation, end.seq, {
            isSound,
            onReplicaDamaged,
        });
        checkRecordAt(end, journal.shard, info, record);
    }
    return info;
}
/**
 * Does the part of {@link checkJournal} that needs only the state of the stream.
 * @returns the ends whose records {@link checkRecordAt} must compare.
 */
export function checkState(shard, { generation, created, shard: { seq, lastCrc }, watermark }, info) {
    const own = { seq, crc: lastCrc };
    const isWatermarkLater = watermark?.generation === generation && watermark.seq > seq;
    const last = isWatermarkLater ? { seq: watermark.seq, crc: watermark.recordCrc } : own;
    if (created !== "" && info.created !== created) {
        const how = `was made at ${created} and again at ${info.created}`;
        throw journalLost(shard, 1, last.seq, how);
    }
    // After a skipped gap, the last sequence may have no record. A watermark names a record.
    const endSeq = isWatermarkLater || own.crc !== 0 ? lastRecordSeq(info) : info.lastSeq;
    if (endSeq < last.seq)
        throw journalLost(shard, endSeq + 1, last.seq, "ends too early");
    if (info.firstSeq > seq + 1)
        throw journalDamaged(shard, seq + 1, info.firstSeq);
    // Without a checksum there is nothing to compare.
    return [own, ...(isWatermarkLater ? [last] : [])].filter(({ crc }) => crc !== 0);
}
/** @throws JOURNAL_DAMAGED if the record at an end is missing or another one. */
export function checkRecordAt({ seq, crc: expected }, shard, info, record) {
    if (record === undefined) {
        throw journalDamaged(shard, seq, info.firstSeq > seq ? info.firstSeq : undefined);
    }
    const found = recordCrc(record.payload);
    if (found === expected)
        return;
    throw new PserverError("JOURNAL_DAMAGED", `shard ${shard}: record ${seq} has changed: expected checksum ${expected}; found ${found}`, { shard, seq, expected, found });
}
/** Returns the error for folded records that a journal no longer holds; for none, `to` is below `from`. */
export function journalLost(shard, from, to, how) {
    const what = to < from ? "nothing of it had been folded" : `records ${from} to ${to} are lost`;
    return new PserverError("JOURNAL_LOST", `shard ${shard}: the journal ${how}; ${what}`, {
        shard,
        from,
        to,
    });
}
/**
 * Returns the sequence of the last record that a fold at `foldedSeq` must reach; at least `foldedSeq`.
 * @throws JOURNAL_DAMAGED if the sequences after it have no records and the broker reports damage that does not name
 * them: it names records that a full disk kept it from storing, but not those that a crash has cut off.
 */
export function seqToReach(shard, foldedSeq, info) {
    const endSeq = lastRecordSeq(info);
    const lost = info.lost && new Set(info.lost);
    const isCutOff = info.missing.some((seq) => seq > endSeq && lost?.has(seq) === false);
    if (isCutOff)
        throw journalDamaged(shard, endSeq + 1, undefined);
    return Math.max(endSeq, foldedSeq);
}
/**
 * Holds the end of a journal as its owner has observed it.
 *
 * Two invariants depend on it. An owner serves only after it has folded all records that it found when it took over:
 * former owners may have answered them. And it skips a gap only above these records: only there is it certain that no
 * former owner has folded the missing records.
 */
export class ObservedEnd {
    #shard;
    /** The journal's end when this owner first read it in the present generation. */
    #takeOver;
    #seq = 0;
    constructor(shard) {
        this.#shard = shard;
    }
    /** Sequence of the record that the fold must reach to catch up. */
    get seq() {
        return this.#seq;
    }
    /** Whether the end of this generation's journal has been noted before. */
    knows(generation) {
        return this.#takeOver?.generation === generation;
    }
    /** Notes the end of the journal, as just read. */
    note(generation, seq) {
        this.#seq = seq;
        if (!this.knows(generation))
            this.#takeOver = { generation, seq };
    }
    /**
     * Passes if a gap may be skipped: it begins above the journal's end at take-over, and the stream reports that it
     * holds none of the records. A record that it counts but cannot read was stored, acknowledged, and damaged later.
     * @throws JOURNAL_DAMAGED {expected, found} if the gap may be a loss.
     */
    checkGap({ from, to }, generation, info) {
        const missing = info?.missing.filter((seq) => from <= seq && seq <= to).length;
        const isAbove = this.#takeOver?.generation === generation && from > this.#takeOver.seq;
        if (!isAbove || missing !== to - from + 1)
            throw journalDamaged(this.#shard, from, to + 1);
    }
}
//# sourceMappingURL=journal-check.js.map