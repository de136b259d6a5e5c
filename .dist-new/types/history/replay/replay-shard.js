import { Shard } from "../../actors/fold/shard.js";
import { loadSnapshot } from "../../actors/journal/snapshot-store.js";
import { ensureError } from "../../protocol/index.js";
import { basesBefore, notedIn, recordAt, takeInventory, } from "../source.js";
/** Time for which records are folded in one turn of the event loop; then an abort or a message is noticed. */
const TURN_MS = 20;
/**
 * Folds the records of a shard's history after its own up to `to` into it, as a host would.
 * @throws JOURNAL_DAMAGED, HISTORY_LOST if a record is missing; UNKNOWN_RULES, TOO_LARGE as the fold; what
 * the source throws; the reason of the signal.
 */
export async function foldRecords(shard, history, to, options) {
    const { signal, visitor, edit, onFolded } = options;
    const { generation, seq: toSeq } = to;
    if (shard.seq >= toSeq)
        return;
    let turnEndsAtMs = performance.now() + TURN_MS;
    for await (const batch of history.read({ generation, seq: shard.seq }, toSeq, signal)) {
        for (const stored of batch) {
            const record = edit === undefined ? stored : edit(stored);
            if (record === undefined) {
                shard.skipTo(stored.seq);
                continue;
            }
            visitor?.before?.(record, shard);
            const fold = (read) => shard.apply(read);
            const folded = foldUnlessDamaged(record, fold);
            const settled = folded ? folded.result : fold(await readAgain(history, to, record, signal));
            visitor?.after?.(record, shard, settled);
            if (performance.now() < turnEndsAtMs)
                continue;
            onFolded?.(shard.seq);
            await nextTurn();
            signal.throwIfAborted();
            turnEndsAtMs = performance.now() + TURN_MS;
        }
    }
    onFolded?.(shard.seq);
}
/**
 * Returns the result of `fold` for a record; undefined, with the shard unchanged, if the record's bytes do not match
 * their checksum.
 */
export function foldUnlessDamaged(record, fold) {
    const { seq, subject, payload, timeMs } = record;
    try {
        return { result: fold({ seq, subject, payload, timeMs, reread: false }) };
    }
    catch (error) {
        if (ensureError(error).code !== "BAD_CHECKSUM")
            throw error;
        return undefined;
    }
}
/** Reads a record a second time: if it was not damaged in transit, every host folds it as unreadable. */
export async function readAgain(history, { generation }, record, signal) {
    return (await recordAt(history, { generation, seq: record.seq }, signal)) ?? record;
}
/** Lets other work of the event loop run. */
export async function nextTurn() {
    await new Promise((resolve) => setImmediate(resolve));
}
/** How often snapshots are listed: a list is outdated once a host has made room for a newer snapshot. */
const LISTS_MAX = 3;
/**
 * Rebuilds a shard as it was right after a record: loads the newest snapshot before it, or an older one if
 * that is damaged, and folds the records after the snapshot by the code that hosts fold with.
 * @throws HISTORY_LOST if the position lies before what is kept, SNAPSHOT_DAMAGED if no snapshot before it
 * can be loaded, JOURNAL_DAMAGED if a record is missing or has changed; UNKNOWN_RULES, TOO_LARGE as the fold; what the
 * source throws; the reason of the signal.
 */
export async function replayShard(history, to, options) {
    const { onProgress } = options;
    const shard = await loadBase(history, to, options);
    const fromSeq = shard.seq;
    const onFolded = (seq) => onProgress?.(seq - fromSeq, to.seq - fromSeq);
    await foldRecords(shard, history, to, { ...options, onFolded });
    return shard;
}
/**
 * Rebuilds a shard as the nearest readable snapshot at or before a position has it.
 * @throws as {@link replayShard}.
 */
export async function loadBase(history, to, { subjects, signal }) {
    for (let lists = 1;; lists++) {
        let failure;
        const inventory = await takeInventory(history);
        const noted = notedIn(inventory, await history.watermark?.(), to.generation);
        for (const base of basesBefore(inventory, to)) {
            signal.throwIfAborted();
            try {
                const shard = await shardAt(history, base, subjects);
                shard.expect(noted);
                return shard;
            }
            catch (error) {
                if (ensureError(error).code !== "SNAPSHOT_DAMAGED")
                    throw error;
                failure ??= error;
            }
        }
        if (lists === LISTS_MAX)
            throw failure;
    }
}
/** Loads the shard at a place from which it can be rebuilt. @throws SNAPSHOT_DAMAGED, UNKNOWN_RULES. */
export async function shardAt(history, { snapshot }, subjects) {
    const { shard: number } = history;
    if (snapshot === undefined)
        return Shard.create({ subjects, shard: number });
    const store = { read: (ref) => history.piece(ref) };
    const { shard } = await loadSnapshot({ subjects, shard: number, store }, snapshot);
    return shard;
}
//# sourceMappingURL=replay-shard.js.map