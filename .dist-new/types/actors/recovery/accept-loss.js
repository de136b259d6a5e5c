import { randomUUID } from "node:crypto";
import { extendedTo, PserverError, quoteName, withFallbacks, } from "../../protocol/index.js";
import { continueShard, finalFallbacks, journalLosses, } from "../journal/next-generation.js";
import { lackedBlocks } from "./inspect-snapshots.js";
import { rebuildFromBroker } from "./rebuild-from-broker.js";
/**
 * Continues a shard from the chosen state, under a new generation, so that positions stay unambiguous.
 * If an owner or another recovery has written a manifest since the inspection, nothing changes. If it is interrupted
 * once its manifest is stored, a host completes the rest.
 * @throws NOT_OWNER if somebody else has written a manifest since the inspection; SNAPSHOT_DAMAGED,
 * JOURNAL_DAMAGED if the chosen state can no longer be read; INCOMPLETE if blocks of initialized
 * parameters would be missing; NO_SPACE.
 */
export async function acceptLoss(deps, findings, choice) {
    const entries = await deps.store.manifestEntries();
    const base = entries.find(({ seq }) => seq === choice.manifestSeq)?.manifest;
    const found = entries.findLast(({ manifest }) => manifest !== undefined)?.manifest;
    const { shard, stored } = await rebuild(deps, choice, base);
    const newest = found && { ...found, fallbacks: await finalFallbacks(deps.journal, found) };
    // Without any manifest or watermark, only the archive knows the generation.
    const generation = Math.max(findings.generation, choice.generation);
    const isPresent = choice.generation === generation;
    // Records stored in the place of lost ones count as lost, too.
    const seq = isPresent && choice.from !== "rest" ? choice.lost.from - 1 : shard.seq;
    const lastSeq = isPresent ? choice.lost.to : findings.lastKnownSeq;
    const from = { generation: choice.generation, seq };
    const aside = choice.without?.map((each) => ({ generation, from: each, to: each })) ?? [];
    const left = [...aside, ...journalLosses(from, newest, { generation, lastSeq })];
    return await continueShard(deps, {
        ...{ shard, stored, host: deps.host, owner: randomUUID(), generation, keepsPast: false },
        replaced: { seq: findings.manifestSeq, term: newest?.term ?? 0 },
        fallbacks: withFallbacks(fallbacksBefore(choice, base, newest), left),
        rewind: rewindOf(choice.generation, entries),
    });
}
/** Returns the losses with journals that were replaced before the chosen state. */
function fallbacksBefore({ from, generation }, base, newest) {
    // The newest manifest knows best where the journals ended.
    const known = newest?.fallbacks ?? [];
    const ends = known.map((fallback) => ({ generation: fallback.generation, seq: fallback.to }));
    if (from !== "archive")
        return ends.reduce(extendedTo, base?.fallbacks ?? []);
    return known.filter((fallback) => fallback.generation < generation);
}
/**
 * Returns the last rewind that the states of a generation have gone through: all have gone through the same. Undefined
 * if no manifest of it is left; a rewind that is completed then takes the shard back once more.
 */
function rewindOf(generation, entries) {
    return entries.find(({ manifest }) => manifest?.generation === generation)?.manifest?.rewind;
}
/** Rebuilds the chosen state; returns it with the pieces of it that are stored. */
async function rebuild(deps, choice, base) {
    const rebuilt = choice.from === "archive"
        ? await rebuildFromArchive(deps, choice)
        : await rebuildFromBroker({ ...deps, watermark: await deps.watermarks.read() }, choice, chosenManifest(deps.shard, choice, base));
    const lacked = lackedBlocks(deps.initialized, rebuilt.shard.blocks());
    if (lacked.length > 0)
        throw incomplete(deps.shard, lacked);
    deps.onStage?.("folded");
    return rebuilt;
}
/** Rebuilds the state that the archive gives, of which the broker has no piece. */
async function rebuildFromArchive({ archive, shard: number, onStage }, { generation, seq }) {
    if (archive === undefined) {
        throw new PserverError("INTERNAL", `shard ${number}: no archive to go on from`, {
            shard: number,
        });
    }
    const shard = await archive.rebuild(number, { generation, seq });
    onStage?.("loaded");
    return { shard, stored: new Map() };
}
function incomplete(shard, lacked) {
    const [first] = lacked;
    return new PserverError("INCOMPLETE", `shard ${shard}: ${lacked.length} blocks of initialized parameters would be missing, the first is block ${first?.index} of ${quoteName(first?.parameter ?? "")}`, { shard, missing: lacked.length });
}
/** Returns the manifest that a choice begins with. @throws SNAPSHOT_DAMAGED if it is gone. */
function chosenManifest(shard, { manifestSeq }, base) {
    if (manifestSeq === undefined)
        return undefined;
    if (base !== undefined)
        return { seq: manifestSeq, manifest: base };
    const text = `shard ${shard}: the manifest ${manifestSeq} that was chosen is gone`;
    throw new PserverError("SNAPSHOT_DAMAGED", text, { shard, seq: manifestSeq });
}
//# sourceMappingURL=accept-loss.js.map