import { ensureError, extendedTo, withFallbacks, } from "../../protocol/index.js";
import { BufferPool } from "../../transport/buffers.js";
import { parseFoldState } from "../fold/fold-state.js";
import { lastRecordSeq } from "./journal-check.js";
import { readSnapshotState } from "./snapshot-store.js";
import { SnapshotBudget, Snapshotter, } from "./snapshotter.js";
/**
 * Makes or completes the stream of the generation that the newest manifest announces, and commits its creation time:
 * steps 3 to 5 above. Removes abandoned journals if the broker has no storage for the stream.
 * @returns the state of the stream.
 * @throws NO_SPACE; NOT_OWNER.
 */
export async function openGeneration(writer) {
    const { journal, storage, shard, manifestHeader: header, commit } = writer;
    const { past, ...announced } = header();
    const { generation } = announced;
    const abandoned = announced.fallbacks.map((fallback) => fallback.generation);
    // A journal in memory always begins with its rules, so that one that was emptied does not look as if it was just
    // made.
    const isNeeded = shard.rules < journal.rules || storage === "memory";
    const rules = isNeeded ? Math.max(shard.rules, journal.rules) : undefined;
    const abandonedInfos = await journal.setAside(abandoned);
    let kept = past === undefined ? {} : { past };
    let info;
    try {
        info = await journal.open(generation, rules);
    }
    catch (error) {
        if (ensureError(error).code !== "NO_SPACE")
            throw error;
        await journal.remove(abandoned);
        kept = {};
        info = await journal.open(generation, rules);
    }
    const fallbacks = withEnds(announced.fallbacks, abandonedInfos);
    const { created } = info;
    // The manifest may have been written again under the next term since.
    await commit(() => ({ ...announced, ...kept, term: header().term, created, fallbacks }));
    return info;
}
/** Returns losses that reach to the ends of the abandoned journals. */
function withEnds(fallbacks, abandoned) {
    return [...abandoned].reduce((before, [generation, info]) => extendedTo(before, { generation, seq: lastRecordSeq(info) }), fallbacks);
}
/**
 * Returns the losses that a manifest names, as they are to be named by the manifest of a later generation. If what it
 * announces was interrupted before step 5, its abandoned journals hold records that it does not name, and may take
 * more: then they are set aside first. The later generation removes the older ones of them, and with them all knowledge
 * of where they ended.
 */
export async function finalFallbacks(journal, { created, fallbacks }) {
    if (created !== "")
        return fallbacks;
    return withEnds(fallbacks, await journal.setAside(fallbacks.map(({ generation }) => generation)));
}
/**
 * Lets a shard go on from a state under the next generation, as described above. Removes no snapshot: the owner that
 * takes the shard over removes those that are not needed any more.
 * @throws NOT_OWNER if somebody else has written a manifest since; nothing has changed then; NO_SPACE.
 */
export async function continueShard(deps, to) {
    const { journal, storage, onStage } = deps;
    const { shard, stored, host, owner, replaced, fallbacks } = to;
    const budget = new SnapshotBudget(new BufferPool());
    const snapshotter = new Snapshotter({ ...deps, budget, stored, onProgress: () => undefined });
    const firstHeader = {
        ...{ term: replaced.term + 1, host, owner, generation: to.generation + 1, created: "" },
        fallbacks: withFallbacks(fallbacks, []),
        ...(to.keepsPast && storage === "file" && { past: to.generation }),
        ...(to.rewind && { rewind: to.rewind }),
    };
    let newest = {
        seq: replaced.seq,
        manifest: firstHeader,
    };
    const header = () => newest.manifest;
    const commit = (made) => snapshotter.cut(shard, made, () => newest.seq, (committed) => {
        newest = committed;
    });
    shard.restartJournal();
    await commit(header);
    onStage?.("committed");
    try {
        await openGeneration({ journal, storage, shard, manifestHeader: header, commit });
        onStage?.("opened");
    }
    catch (error) {
        // A host may take the shard over as soon as the manifest is stored, and then makes the journal itself.
        if (ensureError(error).code !== "NOT_OWNER")
            throw error;
    }
    return { shard: deps.shard, generation: header().generation, fallbacks: header().fallbacks };
}
/**
 * Completes a continuation that was interrupted once its deciding manifest was stored: steps 3 to 5, for which the
 * state need not be in memory. Until then the abandoned journals take records, unless a host takes the shard over.
 * @returns the newest manifest; `newest` itself if the continuation is complete.
 * @throws NOT_OWNER if somebody else has written a manifest since; SNAPSHOT_DAMAGED; NO_SPACE.
 */
export async function completeContinuation(deps, newest, by) {
    const { seq, recordCrc, checksum, state, pieces, ...announced } = newest.manifest;
    if (announced.created !== "")
        return newest;
    const { journal, storage, store } = deps;
    const { rules } = parseFoldState((await readSnapshotState(store, newest.manifest)).fold);
    let completed = newest;
    await openGeneration({
        ...{ journal, storage, shard: { rules } },
        manifestHeader: () => ({ ...announced, ...by }),
        commit: async (header) => {
            const manifest = { ...header(), seq, recordCrc, checksum, state, pieces };
            completed = { seq: await store.commit(manifest, newest.seq), manifest };
        },
    });
    return completed;
}
/**
 * Computes the records lost with each journal, from the one of a state to the newest. `from` is the state's position,
 * `lastSeq` the last record known of the newest journal.
 */
export function journalLosses(from, newest, { generation, lastSeq }) {
    const losses = [];
    for (let each = from.generation; each <= generation; each++) {
        const fromSeq = each === from.generation ? from.seq + 1 : 1;
        const knownTo = newest?.fallbacks.findLast((fallback) => fallback.generation === each)?.to ?? 0;
        const to = each === generation ? lastSeq : knownTo;
        losses.push({ generation: each, from: fromSeq, to: Math.max(to, fromSeq - 1) });
    }
    return losses;
}
//# sourceMappingURL=next-generation.js.map