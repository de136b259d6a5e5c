import { Worker } from "node:worker_threads";
import { ensureError, errorFromWire, PserverError, } from "../../protocol/index.js";
import { WorkerThread } from "../worker-thread.js";
/** How long a worker may take to connect, and to close. */
const START_MS = 60_000;
const CLOSE_MS = 5_000;
/** How long a shard that is being saved may make no progress: longer than the broker may take for one message. */
const SAVE_STALL_MS = 12_000;
/**
 * Memory for a worker's short-lived objects. V8 would take up to 48 MB before it collects garbage; tensors are
 * elsewhere. With less than this, the objects of a batch of a thousand blocks outlive several collections, and a host
 * that folds such batches takes a third more CPU time.
 */
const YOUNG_MB_MAX = 16;
/** The worker threads of a host, which share its shards evenly. */
export class WorkerPool {
    #events;
    #threads = new Set();
    #shards = new Map();
    #statuses = new Map();
    #closing = false;
    constructor(events) {
        this.#events = events;
    }
    /** Starts `count` workers; @throws the error of the first that cannot start. */
    async start(count, setup) {
        await Promise.all(Array.from({ length: count }, (_, index) => this.#startThread({ ...setup, index })));
    }
    /** The last statuses of the shards, which workers send twice a second. */
    get statuses() {
        return [...this.#statuses.values()].flat();
    }
    /**
     * Gives a shard, whose lease must be held, to the worker that owned it, or else to the one with the fewest shards.
     */
    own(shard) {
        let thread = this.#shards.get(shard);
        if (thread === undefined) {
            const counts = new Map([...this.#threads].map((each) => [each, 0]));
            for (const each of this.#shards.values())
                counts.set(each, (counts.get(each) ?? 0) + 1);
            const [least] = [...counts].sort(([, a], [, b]) => a - b);
            if (least === undefined)
                throw new PserverError("CLOSED", "the host has no workers");
            thread = least[0];
            this.#shards.set(shard, thread);
        }
        send(thread, "own", shard);
    }
    /** Takes a shard from its worker, which stops answering for it. */
    disown(shard) {
        const thread = this.#shards.get(shard);
        this.#shards.delete(shard);
        if (thread !== undefined)
            send(thread, "disown", shard);
    }
    /**
     * Has the worker of a shard fold all that its journal holds, store a snapshot of that, and fold nothing more. The
     * shard's lease must stay held until then. `onProgress` is called now and then while there is progress.
     * @returns why the shard could not be saved; undefined if it was. TIMEOUT without progress for some seconds.
     */
    async save(shard, onProgress) {
        const thread = this.#shards.get(shard);
        if (thread === undefined)
            return undefined;
        return await new Promise((resolve) => {
            const text = `shard ${shard}: no progress for ${SAVE_STALL_MS} ms`;
            const stall = setTimeout(() => end(new PserverError("TIMEOUT", text)), SAVE_STALL_MS);
            const end = (failure) => {
                clearTimeout(stall);
                resolve(failure);
            };
            const progressed = () => {
                stall.refresh();
                onProgress();
            };
            thread.ask("save", shard, progressed).then(() => end(), (error) => end(ensureError(error)));
        });
    }
    /** Closes all workers; one that does not react is terminated. */
    async close() {
        this.#closing = true;
        await Promise.all([...this.#threads].map(closeThread));
    }
    async #startThread(setup) {
        const worker = new Worker(new URL("./host-worker.js", import.meta.url), {
            workerData: setup,
            resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB_MAX },
        });
        const thread = new WorkerThread(worker, `worker ${setup.index}`, (event) => this.#receive(thread, event));
        this.#threads.add(thread);
        void thread.ended.then((error) => {
            if (!this.#closing)
                this.#events.onCrash(error);
        });
        const text = `worker ${setup.index} did not start in ${START_MS} ms`;
        let timer;
        const late = new Promise((_resolve, reject) => {
            timer = setTimeout(() => reject(new PserverError("TIMEOUT", text)), START_MS);
        });
        await Promise.race([thread.ready, late]).finally(() => clearTimeout(timer));
    }
    #receive(thread, event) {
        switch (event.type) {
            case "serving":
                this.#events.onServing(event.shard);
                break;
            case "statuses":
                this.#statuses.set(thread, event.statuses);
                break;
            case "recovered":
                this.#events.onRecovered(event.continued);
                break;
            case "fell-back":
                this.#events.onFellBack(event.continued);
                break;
            default:
                this.#events.onTrouble(event.type, event.shard, errorFromWire(event.error));
        }
    }
}
/** Sends a thread a request whose end nobody waits for. It fails only if the thread ends, and the host with it. */
function send(thread, verb, shard) {
    thread.ask(verb, shard).catch(() => undefined);
}
async function closeThread(thread) {
    const closed = new PserverError("CLOSED", "the host is being closed");
    const timer = setTimeout(() => void thread.stop(closed), CLOSE_MS);
    // A thread that has ended need not be closed.
    await thread.ask("close", undefined).catch(() => undefined);
    clearTimeout(timer);
    await thread.stop(closed);
}
//# sourceMappingURL=worker-pool.js.map