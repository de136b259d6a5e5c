import { integerField, listField, textField } from "../../protocol/index.js";
import { checksumField } from "../fold/journal-checksum.js";
import { ENTRY_FORMAT, readEntry } from "./kv-bucket.js";
/** Limit of the earlier checksums in a watermark. */
const EARLIER_MAX = 16;
/** Returns the key of a shard's watermark in the job's bucket. */
export function watermarkKey(shard) {
    return `head.${shard}`;
}
/** Returns the watermark for this progress, after a former watermark. */
export function nextWatermark(progress, former) {
    if (former?.generation !== progress.generation)
        return { ...progress, earlier: [] };
    const { seq, checksum } = former;
    return { ...progress, earlier: thinned([...former.earlier, { seq, checksum }]) };
}
/**
 * Returns the checksums that a watermark has noted of a generation's journal, ascending; none if it is of another
 * generation.
 */
export function notedChecksums(watermark, generation) {
    return watermark?.generation === generation ? [...watermark.earlier, watermark] : [];
}
/** Returns the entry of a watermark, as JSON. */
export function toWatermarkEntry({ watermark, bucket }) {
    const { term, generation, seq, recordCrc } = watermark;
    const earlier = watermark.earlier.map((each) => [each.seq, ...each.checksum]);
    const { checksum } = watermark;
    const fields = { term, generation, seq, recordCrc, checksum, earlier, bucket };
    return { format: ENTRY_FORMAT, ...fields };
}
/**
 * Parses the entry of a watermark.
 * @throws BAD_VERSION for an entry of another format, JOB_DAMAGED for a damaged one.
 */
export function parseWatermark(value, key) {
    return readEntry(value, key, (fields) => ({
        watermark: {
            term: integerField(fields, "term", 1),
            generation: integerField(fields, "generation", 1),
            seq: integerField(fields, "seq", 1),
            recordCrc: integerField(fields, "recordCrc"),
            checksum: checksumField(fields, "checksum"),
            earlier: listField(fields, "earlier", EARLIER_MAX).map(toNoted),
        },
        bucket: textField(fields, "bucket"),
    }));
}
/**
 * Drops one checksum if there is one too many: the one whose removal leaves the shortest stretch of records for its
 * age.
 */
function thinned(noted) {
    const seqs = noted.map(({ seq }) => seq);
    const lastSeq = seqs.at(-1) ?? 0;
    const growth = seqs.map((seq, i) => {
        const records = (seqs[i + 1] ?? Number.POSITIVE_INFINITY) - (seqs[i - 1] ?? 0);
        return records / (lastSeq - seq);
    });
    const least = noted.length > EARLIER_MAX ? growth.indexOf(Math.min(...growth)) : undefined;
    return noted.filter((_, i) => i !== least);
}
function toNoted(value) {
    const [seq, ...checksum] = listField({ noted: value }, "noted", 4);
    return {
        seq: integerField({ seq }, "seq", 1),
        checksum: checksumField({ checksum }, "checksum"),
    };
}
/** Whether `watermark` is later than `other`; any watermark is later than none. */
export function isLater(watermark, other) {
    if (other === undefined || watermark.generation > other.generation)
        return true;
    return watermark.generation === other.generation && watermark.seq > other.seq;
}
//# sourceMappingURL=watermark.js.map