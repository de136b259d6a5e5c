import { readable, readRecordMessage } from "../actors/fold/journal-record.js";
import { journalDamaged } from "../actors/journal/journal-check.js";
import { notedChecksums } from "../actors/journal/watermark.js";
import { comparePositions, ensureError, JobSubjects, PserverError, parseRecordHeader, } from "../protocol/index.js";
import { showPosition } from "../protocol/messages/position.js";
/** A sequence that no journal reaches. */
export const END_SEQ = Number.MAX_SAFE_INTEGER;
/** Summarizes a record of a job; undefined if its subject is not that of a record. */
export function summarizeRecord(job, { subject, payload }) {
    const parsed = readable(() => new JobSubjects(job).parseLog(subject));
    if (parsed === undefined)
        return undefined;
    if (parsed.by === "host")
        return { verb: parsed.verb, sender: undefined };
    const message = readRecordMessage(payload);
    const head = message && readable(() => parseRecordHeader(message.fields));
    const { trainer } = parsed;
    const sender = head && { trainer, session: head.session, n: head.n };
    return { verb: parsed.by === "trainer" ? parsed.verb : parsed.by, sender };
}
/** Checks the number of a shard. @throws BAD_VALUE for a shard that the job does not have. */
export function checkShard({ job, shards }, shard) {
    if (Number.isSafeInteger(shard) && shard >= 0 && shard < shards)
        return;
    throw new PserverError("BAD_VALUE", `shard: job ${job} has shards 0 to ${shards - 1}; received ${shard}`, { expected: shards - 1, received: shard });
}
/**
 * Makes the error for a position of a shard that the kept history does not reach back to. `oldest`: the first
 * position that it does reach, if any, which was stored at `oldestMs`, if that is known.
 */
export function historyLost(shard, wanted, oldest, oldestMs) {
    const time = oldestMs === undefined ? undefined : new Date(oldestMs).toISOString();
    const at = time === undefined ? "" : `, stored at ${time}`;
    const from = oldest === undefined
        ? "nothing of it is left"
        : `it begins at ${showPosition(shard, oldest)}${at}`;
    return new PserverError("HISTORY_LOST", `the kept history of shard ${shard} does not reach back to ${wanted}: ${from}`, { shard, received: wanted, ...(oldest && { expected: oldest }), ...(time && { time }) });
}
/** Makes the error for a record that is one of a shard's known {@link ShardHistory.gaps}. */
export function recordsNotKept(shard, { generation, firstSeq: from, lastSeq: to }) {
    const place = showPosition(shard, { generation, seq: from });
    const what = to >= END_SEQ ? `records from ${place} on` : `records ${place} to ${to}`;
    const text = `${what} are not kept: they were trimmed, or not archived yet`;
    return new PserverError("HISTORY_LOST", text, { shard, generation, from, to });
}
/**
 * Reads the record at a position; undefined if the source has none there, or has trimmed it.
 * @throws as `ShardHistory.read` does, but HISTORY_LOST.
 */
export async function recordAt(history, { generation, seq }, signal) {
    try {
        for await (const [record] of history.read({ generation, seq: seq - 1 }, seq, signal)) {
            if (record !== undefined)
                return record;
        }
    }
    catch (error) {
        if (ensureError(error).code !== "HISTORY_LOST")
            throw error;
    }
    return undefined;
}
/** Lists what a source holds of a shard. @throws TIMEOUT, DENIED and the like. */
export async function takeInventory(history) {
    const { shard } = history;
    // The spans are listed first: a snapshot that is listed later reaches back no less far.
    const spans = await history.spans();
    const gaps = (await history.gaps?.()) ?? [];
    return { shard, spans, gaps, snapshots: await history.snapshots() };
}
/**
 * Returns the last position up to a time; undefined if it is before all that is kept, or among records that are
 * missing.
 * @throws errors of the source.
 */
export async function positionAt(history, inventory, timeMs) {
    const generations = new Set(inventory.spans.map(({ generation }) => generation));
    for (const { manifest } of inventory.snapshots)
        generations.add(manifest.generation);
    for (const generation of [...generations].sort((a, b) => b - a)) {
        const all = inventory.snapshots.filter(({ manifest }) => manifest.generation === generation);
        const spans = inventory.spans.filter((span) => span.generation === generation);
        // A record that was trimmed was stored before the manifest that covers it.
        const seqs = all
            .filter((snapshot) => snapshot.timeMs <= timeMs)
            .map(({ manifest }) => manifest.seq);
        const recordSeq = await lastRecord(history, spans, timeMs);
        if (recordSeq !== undefined)
            seqs.push(recordSeq);
        const seq = Math.max(...seqs);
        const laterSeqs = [
            ...spans.map((span) => span.firstSeq),
            ...all.map(({ manifest }) => manifest.seq),
        ];
        const isFollowed = spans.some((span) => span.firstSeq <= seq + 1 && seq < span.lastSeq);
        // It is not known which of the missing records were stored before.
        if (seqs.length > 0 && !isFollowed && laterSeqs.some((later) => later > seq))
            return undefined;
        if (seqs.length > 0)
            return { generation, seq };
        if (spans[0] !== undefined && spans[0].firstSeq > 1)
            return undefined;
    }
    return undefined;
}
/** Returns the last record of one generation up to a time; undefined if all are later. */
async function lastRecord(history, spans, timeMs) {
    for (const span of [...spans].reverse()) {
        const seq = await history.lastUpTo(span, timeMs);
        if (seq >= span.firstSeq)
            return seq;
    }
    return undefined;
}
/** Returns all places from which a shard can be rebuilt, by generation and sequence, ascending. */
export function basesOf({ spans, snapshots }) {
    const bases = snapshots.map((snapshot) => {
        const { generation, seq } = snapshot.manifest;
        return { generation, seq, snapshot };
    });
    const isWhole = spans.some(({ generation, firstSeq }) => generation === 1 && firstSeq === 1);
    if (isWhole)
        bases.unshift({ generation: 1, seq: 0, snapshot: undefined });
    return bases.sort(comparePositions);
}
/**
 * Returns the checksums of a generation that were noted when it was folded before, ascending: by its snapshots, and
 * by the watermark of its owners.
 */
export function notedIn({ snapshots }, watermark, generation) {
    const own = snapshots.filter(({ manifest }) => manifest.generation === generation);
    const noted = own.map(({ manifest: { seq, checksum } }) => ({ seq, checksum }));
    return [...noted, ...notedChecksums(watermark, generation)].sort((a, b) => a.seq - b.seq);
}
/** Returns the span that holds the record at a position; undefined if none does. */
export function spanWith(spans, { generation, seq }) {
    return spans.find((each) => each.generation === generation && each.firstSeq <= seq && seq <= each.lastSeq);
}
/** Returns the last record that follows a position without a gap; that of the position if none does. */
export function connectedUpTo({ spans }, { generation, seq }) {
    return spanWith(spans, { generation, seq: seq + 1 })?.lastSeq ?? seq;
}
/**
 * Whether a position is the end of the gap after a record: hosts skip records that were never written, and make a
 * snapshot right after them.
 */
export function isEndOfGap(spans, { generation, seq }, endSeq) {
    const next = spans.find((each) => each.generation === generation && each.firstSeq > endSeq + 1);
    return next !== undefined && next.firstSeq === seq + 1;
}
/** Returns the positions that can be rebuilt, by generation and sequence, ascending; the ranges do not overlap. */
export function rebuildableRanges(inventory) {
    const parts = [];
    for (const { generation, seq } of basesOf(inventory)) {
        const last = parts.at(-1);
        if (last?.generation === generation && seq <= last.lastSeq)
            continue;
        const lastSeq = connectedUpTo(inventory, { generation, seq });
        parts.push({ generation, firstSeq: seq, lastSeq });
    }
    return parts;
}
/**
 * Returns the places from which a position can be rebuilt, the nearest first.
 * @throws HISTORY_LOST if all are later, or a record between is known to be missing; JOURNAL_DAMAGED if one is missing
 * for another reason.
 */
export function basesBefore(inventory, to) {
    const { shard, spans, gaps } = inventory;
    const leadsTo = ({ generation, seq }) => {
        if (generation !== to.generation || seq > to.seq)
            return false;
        const holds = (span) => span.generation === generation && span.firstSeq <= seq + 1 && to.seq <= span.lastSeq;
        return seq === to.seq || spans.some(holds);
    };
    const [nearest, ...others] = basesOf(inventory).filter(leadsTo).reverse();
    if (nearest !== undefined)
        return [nearest, ...others];
    const gapSeq = gapBefore(inventory, to);
    if (gapSeq !== undefined) {
        const gap = spanWith(gaps, { generation: to.generation, seq: gapSeq });
        throw gap === undefined ? journalDamaged(shard, gapSeq, undefined) : recordsNotKept(shard, gap);
    }
    throw historyLost(shard, showPosition(shard, to), oldestOf(inventory));
}
/** Returns the first missing record between the places from which a shard can be rebuilt and a position. */
function gapBefore(inventory, to) {
    const before = rebuildableRanges(inventory).findLast(({ generation, firstSeq }) => generation === to.generation && firstSeq <= to.seq);
    return before && before.lastSeq + 1;
}
/** Returns the oldest position that can be rebuilt; undefined if none can. */
export function oldestOf(inventory) {
    const first = rebuildableRanges(inventory)[0];
    return first && { generation: first.generation, seq: first.firstSeq };
}
/** Returns the newest position that is kept, whether or not it can be rebuilt; undefined if nothing is kept. */
export function newestOf({ spans, snapshots }) {
    const ends = [
        ...spans.map(({ generation, lastSeq: seq }) => ({ generation, seq })),
        ...snapshots.map(({ manifest: { generation, seq } }) => ({ generation, seq })),
    ];
    return ends.sort((a, b) => b.generation - a.generation || b.seq - a.seq)[0];
}
/**
 * Returns the oldest position from which records lead to another one of its generation; that one itself if none do.
 */
export function startOf(inventory, to) {
    const part = rebuildableRanges(inventory).find(({ generation, firstSeq, lastSeq }) => generation === to.generation && firstSeq <= to.seq && to.seq <= lastSeq);
    return part === undefined ? to : { generation: to.generation, seq: part.firstSeq };
}
//# sourceMappingURL=source.js.map