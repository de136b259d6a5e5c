import { ensureError, PserverError } from "../../protocol/index.js";
import { Shard } from "../fold/shard.js";
import { journalLost } from "../journal/journal-check.js";
import { loadSnapshot } from "../journal/snapshot-store.js";
/**
 * Takes a shard over: writes its newest manifest again under the next term, so that the broker refuses
 * the former owner's next write, and loads the snapshot that it names, or, if that one is damaged, an
 * older one: the journal reaches back to it.
 * @throws NOT_OWNER if somebody else takes it over at the same time; SNAPSHOT_DAMAGED if no snapshot
 * can be loaded, or none is left of a shard that has a journal; JOURNAL_LOST if neither is left of a
 * shard that was folded; NO_MEMORY, before allocating, if the host lacks the memory.
 */
export async function recoverShard(deps) {
    const { subjects, shard, host, owner, store } = deps;
    const last = (await store.lastManifest()) ?? (await checkIsNew(deps));
    if (last === undefined) {
        return { shard: Shard.create({ subjects, shard }), stored: new Map(), manifest: undefined };
    }
    const term = last.manifest.term + 1;
    const manifest = { ...last.manifest, term, host, owner };
    const seq = await store.commit(manifest, last.seq);
    // The copy under the older term names the same snapshot.
    await store.remove([last.seq]);
    try {
        return { ...(await loadSnapshot(deps, { manifest })), manifest: { seq, manifest } };
    }
    catch (error) {
        if (ensureError(error).code !== "SNAPSHOT_DAMAGED")
            throw error;
        return await loadOlder(deps, { seq, manifest }, error);
    }
}
/**
 * Checks that a shard without a manifest is new. A manifest is stored before anything else, so a journal or a
 * watermark without one belongs to a shard that has lost its snapshots.
 * @returns the manifest if another host has created the shard in between.
 * @throws SNAPSHOT_DAMAGED, JOURNAL_LOST
 */
async function checkIsNew(deps) {
    const { store, journal, watermarks } = deps;
    const watermark = await watermarks.read();
    // The first journal of a fork has a later generation.
    const generation = watermark?.generation ?? Math.max(1, await journal.newestGeneration());
    const hasJournal = (await journal.lastSeq(generation)) !== undefined;
    if (!hasJournal && watermark === undefined)
        return undefined;
    const last = await store.lastManifest();
    if (last !== undefined)
        return last;
    if (!hasJournal)
        throw journalLost(journal.shard, 1, watermark?.seq ?? 0, "and all snapshots are gone");
    const { shard } = journal;
    throw new PserverError("SNAPSHOT_DAMAGED", `shard ${shard}: no snapshot is left, though there is a journal of generation ${generation}`, { shard, generation });
}
/** Loads the newest older snapshot of the same journal that can be read, and commits it as the newest. */
async function loadOlder(deps, damaged, error) {
    const { store } = deps;
    const { term, host, owner, generation, created } = damaged.manifest;
    for (const older of (await store.manifests()).reverse()) {
        const usable = older.seq < damaged.seq && older.manifest.generation === generation;
        if (!usable || older.manifest.created !== created)
            continue;
        try {
            const manifest = { ...older.manifest, term, host, owner };
            const loaded = await loadSnapshot(deps, { manifest });
            const seq = await store.commit(manifest, damaged.seq);
            await store.remove([damaged.seq]);
            return { ...loaded, manifest: { seq, manifest } };
        }
        catch (cause) {
            if (ensureError(cause).code !== "SNAPSHOT_DAMAGED")
                throw cause;
        }
    }
    throw error;
}
/**
 * Whether an apparent loss follows from another owner's take-over: an owner that was paused misses records of
 * journals that its successor has purged or replaced.
 */
export async function isDeposed({ code }, store, owner) {
    if (code !== "JOURNAL_DAMAGED" && code !== "JOURNAL_LOST")
        return false;
    try {
        const last = await store.lastManifest();
        return last?.manifest.owner !== owner;
    }
    catch {
        // The broker does not say: the error stays until the shard is taken over again.
        return false;
    }
}
//# sourceMappingURL=recover-shard.js.map