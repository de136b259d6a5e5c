import { mapConcurrently } from "../../actors/concurrent.js";
import { JobSubjects } from "../../protocol/index.js";
import { verifyShard } from "../verify.js";
import { foldWhatIf } from "../what-if.js";
import { replayShard } from "./replay-shard.js";
import { LocalReplayedShard, ReplayedModel } from "./replayed-model.js";
/** Rebuilds shards in this thread. */
export class LocalReplayer {
    threads = 1;
    #source;
    #signal;
    /** `source` stays the caller's. */
    constructor(source, signal) {
        this.#source = source;
        this.#signal = signal;
    }
    async replay(shard, to, onProgress) {
        const history = this.#source.shard(shard);
        const state = await replayShard(history, to, this.#options(shard, onProgress));
        return new LocalReplayedShard(state, to.generation, history, this.#signal);
    }
    async verify(shard, from, onProgress) {
        const history = this.#source.shard(shard);
        const { verification, end } = await verifyShard(history, {
            ...this.#options(shard, onProgress),
            from,
        });
        const replayed = end && new LocalReplayedShard(end.shard, end.generation, history, this.#signal);
        return { verification, replayed };
    }
    async foldWhatIf(shard, to, whatIf, onProgress) {
        const history = this.#source.shard(shard);
        const options = { ...this.#options(shard, onProgress), ...whatIf };
        const { shard: state, counts } = await foldWhatIf(history, to, options);
        const replayed = new LocalReplayedShard(state, to.generation, history, this.#signal);
        return { replayed, counts };
    }
    async close() {
        // Its shards go with the last reference to them.
    }
    #options(shard, onProgress) {
        return {
            subjects: new JobSubjects(this.#source.job),
            signal: this.#signal,
            ...(onProgress && {
                onProgress: (done, total) => onProgress(shard, done, total),
            }),
        };
    }
}
/** Adds up the progress of several shards. */
export class ProgressSum {
    #onProgress;
    #shards = new Map();
    constructor(onProgress) {
        this.#onProgress = onProgress;
    }
    /** Notes the progress of a shard, and reports the sum. */
    note = (shard, doneRecords, totalRecords) => {
        this.#shards.set(shard, [doneRecords, totalRecords]);
        let [allDone, allTotal] = [0, 0];
        for (const [done, total] of this.#shards.values()) {
            allDone += done;
            allTotal += total;
        }
        this.#onProgress(allDone, allTotal);
    };
}
/**
 * Rebuilds the model at a cut, as many shards at once as the replayer has threads. After a failure no
 * further shard is begun.
 * @throws as `replayShard`.
 */
export async function replayModel(replayer, cut, { shards, onProgress } = {}) {
    const numbers = shards ?? cut.map((_, shard) => shard);
    const sum = new ProgressSum((done, total) => onProgress?.(done, total));
    const replay = async (shard) => {
        const to = cut[shard];
        return to === undefined ? [] : [await replayer.replay(shard, to, sum.note)];
    };
    return new ReplayedModel((await mapConcurrently(numbers, replay, replayer.threads)).flat());
}
/**
 * Rebuilds the model as it would have been at the end of a span if its records had been others.
 * @throws as `foldWhatIf`.
 */
export async function modelWhatIf(replayer, { from, to }, changes, onProgress = () => undefined) {
    const sum = new ProgressSum(onProgress);
    const folded = await mapConcurrently([...to.entries()], ([shard, position]) => replayer.foldWhatIf(shard, position, { changes, from: from?.[shard] }, sum.note), replayer.threads);
    let [leftOut, changed] = [0, 0];
    for (const { counts } of folded) {
        leftOut += counts.leftOut;
        changed += counts.changed;
    }
    const model = new ReplayedModel(folded.map(({ replayed }) => replayed));
    return { model, counts: { leftOut, changed } };
}
//# sourceMappingURL=replayer.js.map