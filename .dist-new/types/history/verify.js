import { changedRecordsOf } from "../actors/fold/journal-checksum.js";
import { journalDamaged } from "../actors/journal/journal-check.js";
import { ensureError, PserverError, parsePosition, } from "../protocol/index.js";
import { foldRecords, replayShard, shardAt } from "./replay/replay-shard.js";
import { basesOf, connectedUpTo, isEndOfGap, notedIn, rebuildableRanges, recordsNotKept, spanWith, takeInventory, } from "./source.js";
/** Errors of a state that cannot be rebuilt. */
const UNKNOWN_BEFORE = [
    "HISTORY_LOST",
    "JOURNAL_DAMAGED",
    "SNAPSHOT_DAMAGED",
    "FOLD_FAILED",
];
/**
 * Compares the state that a generation began with, of which `shard` was loaded, with the state of the older
 * generation that it went on from. `first` if that cannot be rebuilt, or differs and need not be the same: after
 * an accepted loss the shard may have gone on from another state than its manifest tells.
 * @throws as `replayShard`, except for damage, which is reported where it is.
 */
async function compareBeginning(history, { spans }, manifest, shard, { subjects, signal }) {
    const from = predecessorOf(manifest);
    if (from === undefined)
        return "first";
    if (!spans.some(({ generation }) => generation === from.generation))
        return "first";
    try {
        const edit = withoutAside(manifest, from.generation);
        const before = await replayShard(history, from, { subjects, signal, edit });
        before.restartJournal();
        if (before.digest() === shard.digest())
            return "equal";
        return manifest.past === undefined ? "first" : "different";
    }
    catch (error) {
        if (!UNKNOWN_BEFORE.includes(ensureError(error).code))
            throw error;
        return "first";
    }
}
/** Returns the position from whose state a generation went on; undefined if its manifest does not tell. */
function predecessorOf({ fallbacks }) {
    // Generations after that one were left out as a whole.
    const base = fallbacks.findLast(({ generation, from }) => from > 1 || generation === 1);
    return base && { generation: base.generation, seq: base.from - 1 };
}
/** Leaves out records that were put aside: of several losses of one generation, all but the last. */
function withoutAside({ fallbacks }, generation) {
    const aside = fallbacks.filter((fallback) => fallback.generation === generation).slice(0, -1);
    return (record) => aside.some(({ from, to }) => from <= record.seq && record.seq <= to) ? undefined : record;
}
/** Errors at which the fold of a journal ends. */
const UNREADABLE = ["JOURNAL_DAMAGED", "HISTORY_LOST", "FOLD_FAILED"];
/**
 * Folds all that is kept of a shard, from its oldest snapshot on, and compares the fold with each later snapshot:
 * state, values and slots. After damage it goes on from the next snapshot.
 * @returns the findings, and the shard at the end of its newest journal; undefined if damage hides it.
 * @throws errors of the source if it cannot be read now; the reason of the signal.
 */
export async function verifyShard(history, options) {
    const inventory = await takeInventory(history);
    const state = {
        ...{ history, inventory, options, places: [], toldGaps: new Set() },
        ...{ folded: undefined, records: 0, watermark: await history.watermark?.() },
    };
    const totalRecords = recordsToFold(inventory);
    for (const base of basesFrom(inventory, options.from)) {
        await foldAbandonedJournal(state, base.generation);
        await foldTo(state, base);
        await compareWith(state, base);
        options.onProgress?.(state.records, Math.max(totalRecords, state.records));
    }
    const newest = inventory.spans.at(-1);
    if (newest !== undefined)
        await foldTo(state, { ...newest, seq: newest.lastSeq });
    const { records, places, folded } = state;
    return { verification: { shard: history.shard, records, places }, end: folded };
}
/** Returns the snapshots to compare with: all from the nearest at or before a position on. */
function basesFrom(inventory, from) {
    const bases = basesOf(inventory);
    if (from === undefined)
        return bases;
    const isAfter = ({ generation, seq }) => generation > from.generation || (generation === from.generation && seq > from.seq);
    const first = bases.findLastIndex((base) => !isAfter(base));
    return bases.slice(Math.max(0, first));
}
function recordsToFold(inventory) {
    return rebuildableRanges(inventory).reduce((sum, { firstSeq, lastSeq }) => sum + lastSeq - firstSeq, 0);
}
/** Ends the fold of an older generation at its last record, before one of `generation` begins. */
async function foldAbandonedJournal(state, generation) {
    const { folded, inventory } = state;
    if (folded === undefined || folded.generation === generation)
        return;
    const last = inventory.spans.findLast((span) => span.generation === folded.generation);
    await foldTo(state, { generation: folded.generation, seq: last?.lastSeq ?? folded.shard.seq });
    state.folded = undefined;
    const place = state.places.at(-1);
    if (place?.kind !== "unreadable" || !isGivenUp(inventory, place))
        return;
    state.places[state.places.length - 1] = { ...place, kind: "given-up" };
}
/**
 * Whether the records after a position were given up with a journal that was abandoned for its loss, not by a rewind.
 */
function isGivenUp({ snapshots }, { generation, seq }) {
    const manifests = snapshots.map(({ manifest }) => manifest);
    const lost = manifests.at(-1)?.fallbacks.find((fallback) => fallback.generation === generation);
    return (lost !== undefined && seq + 1 >= lost.from && manifests.every(({ past }) => past !== generation));
}
/** Folds up to a position of the same generation; ends before it where records are missing. */
async function foldTo(state, { generation, seq }) {
    const { folded, inventory } = state;
    if (folded === undefined || folded.generation !== generation)
        return;
    const endSeq = connectedUpTo(inventory, { generation, seq: folded.shard.seq });
    await foldOn(state, folded, Math.min(seq, endSeq));
    if (seq <= endSeq || state.folded === undefined)
        return;
    state.folded = undefined;
    // Records that were never written are skipped by a snapshot right after them.
    if (isEndOfGap(inventory.spans, { generation, seq }, endSeq))
        return;
    const { shard } = state.history;
    const gap = spanWith(inventory.gaps, { generation, seq: endSeq + 1 });
    if (gap === undefined) {
        const error = journalDamaged(shard, endSeq + 1, undefined).toWire();
        state.places.push({ generation, seq: endSeq, kind: "unreadable", error });
    }
    else if (!state.toldGaps.has(gap)) {
        // There may be snapshots of records in it: one place stands for all of it.
        state.toldGaps.add(gap);
        const error = recordsNotKept(shard, gap).toWire();
        state.places.push({ generation, seq: endSeq, kind: "not-kept", error });
    }
}
/** Folds records that are listed; ends at damage. */
async function foldOn(state, { shard, generation }, seq) {
    const from = shard.seq;
    try {
        await foldRecords(shard, state.history, { generation, seq }, state.options);
    }
    catch (thrown) {
        const found = ensureError(thrown);
        if (!UNREADABLE.includes(found.code))
            throw thrown;
        const changed = changedRecordsOf(found);
        const before = changed === undefined ? shard.seq : changed.from - 1;
        const kind = found.code === "HISTORY_LOST" ? "not-kept" : "unreadable";
        const error = found.toWire();
        state.places.push({ generation, seq: before, kind, error });
        state.folded = undefined;
    }
    finally {
        state.records += shard.seq - from;
    }
}
/** Compares the fold with a snapshot at its position; if nothing is folded yet, the fold begins with the snapshot. */
async function compareWith(state, base) {
    const { history, options, places, folded } = state;
    const { generation, seq } = base;
    try {
        const shard = await shardAt(history, base, options.subjects);
        if (folded === undefined) {
            state.folded = { shard, generation };
            shard.expect(notedIn(state.inventory, state.watermark, generation));
        }
        const kind = folded === undefined
            ? await compareFirstSnapshot(state, base, shard)
            : isSame(folded.shard, shard);
        places.push({ generation, seq, kind });
    }
    catch (error) {
        const found = ensureError(error);
        if (found.code !== "SNAPSHOT_DAMAGED")
            throw error;
        if (await isStillKept(history, base)) {
            places.push({ generation, seq, kind: "damaged", error: found.toWire() });
        }
    }
}
/** Whether a snapshot is kept, and not removed since it was listed. */
async function isStillKept(history, { generation, seq }) {
    const snapshots = await history.snapshots();
    return snapshots.some(({ manifest }) => manifest.generation === generation && manifest.seq === seq);
}
/** Compares a snapshot that no fold has led to with the generation before it, if that can be rebuilt. */
async function compareFirstSnapshot({ history, inventory, options, places }, { seq, snapshot }, shard) {
    if (places.length === 0 || seq > 0 || snapshot === undefined)
        return "first";
    return await compareBeginning(history, inventory, snapshot.manifest, shard, options);
}
function isSame(a, b) {
    return a.digest() === b.digest() ? "equal" : "different";
}
/** Kinds of places at which something is damaged or differs. */
const UNSOUND = ["different", "damaged", "unreadable"];
/** Whether nothing of a shard is damaged or different, apart from records that were given up. */
export function isSound({ places }) {
    return places.every(({ kind }) => !UNSOUND.includes(kind));
}
/** Errors after which it is not known what hosts hold: no host serves the shard, or an older version does. */
const UNKNOWN = [
    "NO_OWNER",
    "BAD_MESSAGE",
    "DENIED",
    "JOURNAL_REPLACED",
    "TIMEOUT",
];
/**
 * Compares the state and every block of a shard with what its owner holds, each at the position that the
 * owner has reached when it answers: the shard follows the journal up to there, so that trainers may train.
 * @throws JOURNAL_DAMAGED and the like if the journal cannot be followed; errors of the owner.
 */
export async function verifyServed(source, shard) {
    const what = [];
    let blocks = 0;
    try {
        if ((await ownersDigest(source, shard, {})) !== (await shard.stateDigest()))
            what.push("state");
        for (const { parameter, index } of shard.blocks) {
            const held = await ownersDigest(source, shard, { parameter, index });
            const own = await shard.blockDigest(parameter, index);
            if (held !== own)
                what.push(`${JSON.stringify(parameter)} block ${index}`);
            blocks += 1;
        }
    }
    catch (error) {
        const found = ensureError(error);
        if (!UNKNOWN.includes(found.code))
            throw error;
        return { kind: "unknown", error: found.toWire() };
    }
    const { position } = shard;
    return what.length === 0
        ? { kind: "equal", position, blocks }
        : { kind: "different", position, what };
}
/** Returns the owner's digest, after the shard has folded up to the position of the digest. */
async function ownersDigest(source, shard, block) {
    const { position } = shard;
    const message = await source.askOwner?.(shard.shard, "digest", { ...position, ...block });
    if (message === undefined)
        throw new PserverError("NO_OWNER", "no host can be reached from here");
    await shard.advance(parsePosition(message.fields));
    return message.fields["digest"] ?? undefined;
}
//# sourceMappingURL=verify.js.map