/** Entry point of a replay thread: it opens the history by itself and works until it is terminated. */
import { workerData } from "node:worker_threads";
import { serveThread } from "../../actors/worker-thread.js";
import { PserverError } from "../../protocol/index.js";
import { openHistory } from "../open-journal.js";
import { LocalReplayer } from "./replayer.js";
const replays = new Map();
let replayCount = 0;
function keep(replayed) {
    replayCount += 1;
    replays.set(replayCount, replayed);
    return describe(replayCount);
}
function describe(replay) {
    const { position, blocks } = find(replay);
    return { replay, position, blocks };
}
function find(replay) {
    const replayed = replays.get(replay);
    if (replayed === undefined)
        throw new PserverError("INTERNAL", `no replay ${replay}`);
    return replayed;
}
function shardProgress(progress) {
    return (_shard, doneRecords, totalRecords) => progress(doneRecords, totalRecords);
}
await serveThread(async () => {
    const { place } = workerData;
    const replayer = new LocalReplayer(await openHistory(place), new AbortController().signal);
    return {
        replay: async ({ shard, to }, progress) => keep(await replayer.replay(shard, to, shardProgress(progress))),
        verify: async ({ shard, from }, progress) => {
            const found = await replayer.verify(shard, from, shardProgress(progress));
            return { verification: found.verification, kept: found.replayed && keep(found.replayed) };
        },
        foldWhatIf: async ({ shard, to, whatIf }, progress) => {
            const found = await replayer.foldWhatIf(shard, to, whatIf, shardProgress(progress));
            return { kept: keep(found.replayed), counts: found.counts };
        },
        advance: async ({ replay, to }) => {
            await find(replay).advance(to);
            return describe(replay);
        },
        known: (replay) => find(replay).known(),
        digest: (replay) => find(replay).digest(),
        stateDigest: (replay) => find(replay).stateDigest(),
        blockDigest: ({ replay, parameter, index }) => find(replay).blockDigest(parameter, index),
        slot: ({ replay, parameter, index, slot }) => find(replay).slot(parameter, index, slot),
        free: (replay) => {
            replays.delete(replay);
        },
    };
});
//# sourceMappingURL=replay-worker.js.map