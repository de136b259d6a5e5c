import { ensureError, extendedTo, withFallbacks, } from "../../protocol/index.js";
import { BufferPool } from "../../transport/buffers.js";
import { lastRecordSeq } from "./journal-check.js";
import { SnapshotBudget, Snapshotter } from "./snapshotter.js";
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
    const fallbacks = [...abandonedInfos].reduce((before, [each, state]) => extendedTo(before, { generation: each, seq: lastRecordSeq(state) }), announced.fallbacks);
    const { created } = info;
    // The manifest may have been written again under the next term since.
    await commit(() => ({ ...announced, ...kept, term: header().term, created, fallbacks }));
    return info;
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