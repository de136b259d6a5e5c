import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";
import { WorkerThread } from "../../actors/worker-thread.js";
import { ensureError, PserverError, } from "../../protocol/index.js";
/** A replayed shard of another thread. */
class RemoteReplayedShard {
    shard;
    #thread;
    #kept;
    constructor(thread, shard, kept) {
        this.shard = shard;
        this.#thread = thread;
        this.#kept = kept;
    }
    get position() {
        return this.#kept.position;
    }
    get blocks() {
        return this.#kept.blocks;
    }
    async advance(to) {
        const { generation, seq } = this.position;
        if (generation === to.generation && seq >= to.seq)
            return;
        this.#kept = await this.#thread.ask("advance", { replay: this.#kept.replay, to });
    }
    known() {
        return this.#thread.ask("known", this.#kept.replay);
    }
    digest() {
        return this.#thread.ask("digest", this.#kept.replay);
    }
    stateDigest() {
        return this.#thread.ask("stateDigest", this.#kept.replay);
    }
    blockDigest(parameter, index) {
        return this.#thread.ask("blockDigest", { replay: this.#kept.replay, parameter, index });
    }
    slot(parameter, index, slot) {
        return this.#thread.ask("slot", { replay: this.#kept.replay, parameter, index, slot });
    }
    async free() {
        await this.#thread.ask("free", this.#kept.replay);
    }
}
/**
 * Rebuilds shards on worker threads, one shard at a time on each. A thread opens the history by itself and keeps the
 * shards that it has rebuilt; their blocks are then requested one by one.
 */
export class ThreadPool {
    threads;
    #threads;
    #idle;
    #waiting = [];
    #removeListener;
    constructor(threads, removeListener) {
        this.threads = threads.length;
        this.#threads = threads;
        this.#idle = [...threads];
        this.#removeListener = removeListener;
    }
    /**
     * Starts threads for so many shards, at most one for each processor. An abort of the signal ends all of
     * them. The caller closes the pool.
     */
    static start(place, shards, signal) {
        signal.throwIfAborted();
        const workerData = { place };
        const threads = Array.from({ length: Math.max(1, Math.min(shards, availableParallelism())) }, () => {
            const worker = new Worker(new URL("./replay-worker.js", import.meta.url), { workerData });
            return new WorkerThread(worker, "the replay thread");
        });
        const abort = () => {
            for (const thread of threads)
                void thread.stop(ensureError(signal.reason));
        };
        signal.addEventListener("abort", abort, { once: true });
        return new ThreadPool(threads, () => signal.removeEventListener("abort", abort));
    }
    replay(shard, to, onProgress) {
        return this.#work(async (thread) => {
            const kept = await thread.ask("replay", { shard, to }, progressOf(shard, onProgress));
            return new RemoteReplayedShard(thread, shard, kept);
        });
    }
    verify(shard, from, onProgress) {
        return this.#work(async (thread) => {
            const progress = progressOf(shard, onProgress);
            const { verification, kept } = await thread.ask("verify", { shard, from }, progress);
            return { verification, replayed: kept && new RemoteReplayedShard(thread, shard, kept) };
        });
    }
    foldWhatIf(shard, to, whatIf, onProgress) {
        return this.#work(async (thread) => {
            const task = { shard, to, whatIf };
            const progress = progressOf(shard, onProgress);
            const { kept, counts } = await thread.ask("foldWhatIf", task, progress);
            return { replayed: new RemoteReplayedShard(thread, shard, kept), counts };
        });
    }
    async close() {
        this.#removeListener();
        const closed = new PserverError("CLOSED", "the replay has been closed");
        await Promise.all(this.#threads.map((thread) => thread.stop(closed)));
    }
    /** Runs long work on a thread that is idle. */
    async #work(run) {
        const thread = await this.#take();
        try {
            return await run(thread);
        }
        finally {
            this.#giveBack(thread);
        }
    }
    #take() {
        const thread = this.#idle.shift();
        if (thread !== undefined)
            return Promise.resolve(thread);
        return new Promise((resolve) => this.#waiting.push(resolve));
    }
    #giveBack(thread) {
        const next = this.#waiting.shift();
        if (next === undefined)
            this.#idle.push(thread);
        else
            next(thread);
    }
}
function progressOf(shard, onProgress) {
    return (done = 0, total = 0) => onProgress?.(shard, done, total);
}
//# sourceMappingURL=thread-pool.js.map