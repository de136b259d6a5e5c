import { blockPlaces, ensureError } from "../../protocol/index.js";
import { mapConcurrently } from "../concurrent.js";
import { blockKey, readSnapshotState } from "../journal/snapshot-store.js";
import { effectiveState } from "../lifecycle/parameter.js";
import { readSound } from "./inspect-entries.js";
/** Pieces read from the broker at one time. */
const READS_AT_ONCE = 4;
/** Returns those of the wanted blocks that are not present under the epoch of their initialization. */
export function lackedBlocks(wanted, present) {
    const epochs = new Map();
    for (const { parameter, index, epoch } of present)
        epochs.set(blockKey(parameter, index), epoch);
    return wanted
        .filter(({ parameter, index, epoch }) => epochs.get(blockKey(parameter, index)) !== epoch)
        .map(({ parameter, index, number }) => ({ parameter, index, number }));
}
/** Reads all pieces of every snapshot that a manifest names, the newest first. */
export async function inspectSnapshots(store, entries, wanted) {
    // Snapshots share the pieces that did not change between them.
    const readable = new Set();
    const found = [];
    for (const { seq, manifest } of [...entries].reverse()) {
        if (manifest === undefined) {
            const problem = "the manifest cannot be read";
            const nothing = { generation: 0, seq: 0, recordCrc: 0, host: "", lacks: [] };
            found.push({ manifestSeq: seq, ...nothing, problem });
            continue;
        }
        const { generation, recordCrc, host } = manifest;
        const read = await readWhole(store, manifest, readable, wanted);
        found.push({ manifestSeq: seq, generation, seq: manifest.seq, recordCrc, host, ...read });
    }
    return found;
}
/** Reads a snapshot as a whole; returns why it cannot be used, or the blocks that it lacks. */
async function readWhole(store, manifest, readable, wanted) {
    const read = async (piece) => {
        const key = `${piece.seq} ${piece.crc}`;
        if (readable.has(key))
            return;
        await store.read(piece);
        readable.add(key);
    };
    try {
        const { pieces } = await readSnapshotState(store, manifest);
        const all = pieces.flatMap(({ slots }) => slots);
        await mapConcurrently(all, read, READS_AT_ONCE);
        return { lacks: lackedBlocks(wanted, pieces) };
    }
    catch (error) {
        const { code, message } = ensureError(error);
        if (code !== "SNAPSHOT_DAMAGED")
            throw error;
        return { problem: message, lacks: [] };
    }
}
/**
 * Finds out which state of a shard an archive gives. Throws errors that say nothing about the archive, such as
 * ABORTED.
 */
export async function inspectArchive(archive, shard, initialized) {
    const { name } = archive;
    try {
        const { at, archivedSeq, replacedFrom, shard: state } = await archive.newest(shard);
        const lacks = lackedBlocks(initialized, state.blocks());
        const replaced = replacedFrom === undefined ? {} : { replacedFrom };
        return { ...{ name, archivedSeq, lacks }, ...at, ...replaced };
    }
    catch (error) {
        const { code, message } = ensureError(error);
        if (code !== "BAD_ARCHIVE" && code !== "HISTORY_LOST")
            throw error;
        return { name, generation: 0, seq: 0, archivedSeq: 0, lacks: [], problem: message };
    }
}
/**
 * Returns the blocks of initialized parameters that lie on a shard, as far as the entries of the job's bucket can be
 * read: those that are damaged are written again once all shards are served, from what these have.
 */
export async function initializedBlocks(bucket, shard) {
    const { sound } = await readSound(bucket);
    return [...sound.parameters.values()]
        .filter((parameter) => effectiveState(parameter, sound.job) === "ready")
        .flatMap(({ declaration, layout, firstNumber, lifecycle }) => blockPlaces(layout)
        .filter((place) => place.shard === shard)
        .map(({ index }) => ({
        parameter: declaration.name,
        index,
        number: firstNumber + index,
        epoch: lifecycle.context.epoch,
    })));
}
//# sourceMappingURL=inspect-snapshots.js.map