import { parentPort } from "node:worker_threads";
import { ensureError, errorFromWire, PserverError, } from "../protocol/index.js";
/** A worker thread that runs {@link serveThread}, seen from the thread that has started it. */
export class WorkerThread {
    /** Resolves when the thread answers calls; fails like {@link ask} if the thread ends before. */
    ready;
    /** Why the thread has ended; pending until then. */
    ended;
    #worker;
    #open = new Map();
    #end;
    #ids = 0;
    #failure;
    /** `name` names the thread in errors. `onEvent` is called with each event that the thread emits. */
    constructor(worker, name, onEvent = () => undefined) {
        this.#worker = worker;
        let end = () => undefined;
        this.ended = new Promise((resolve) => {
            end = resolve;
        });
        this.#end = end;
        this.ready = new Promise((resolve, reject) => {
            worker.on("message", (reply) => {
                if (reply.kind === "ready")
                    resolve();
                else if (reply.kind === "event")
                    onEvent(reply.event);
                else
                    this.#receive(reply);
            });
            void this.ended.then(reject);
        });
        // Nobody may wait for a thread that is never used: its failure is no unhandled rejection.
        this.ready.catch(() => undefined);
        worker.on("error", (error) => this.#fail(fromThread(error)));
        worker.on("exit", (code) => this.#fail(new PserverError("INTERNAL", `${name} ended with code ${code}`)));
    }
    /**
     * Sends a call to the thread and returns the answer; waits until the thread is ready. Throws the error of the work,
     * or the error that ended the thread.
     */
    ask(verb, argument, onProgress = () => undefined) {
        return new Promise((resolve, reject) => {
            if (this.#failure !== undefined)
                return reject(this.#failure);
            this.#ids += 1;
            const call = { id: this.#ids, verb, argument };
            this.#worker.postMessage(call);
            this.#open.set(call.id, { resolve, reject, onProgress });
        });
    }
    /** Ends the thread at once and frees its memory; open calls fail with `reason`. */
    async stop(reason) {
        this.#fail(reason);
        await this.#worker.terminate();
    }
    #receive(reply) {
        const call = this.#open.get(reply.id);
        if (reply.kind === "progress") {
            call?.onProgress(...reply.counts);
            return;
        }
        this.#open.delete(reply.id);
        if (reply.kind === "done")
            call?.resolve(reply.result);
        else
            call?.reject(errorFromWire(reply.error));
    }
    #fail(error) {
        this.#failure ??= error;
        this.#end(this.#failure);
        for (const { reject } of this.#open.values())
            reject(this.#failure);
        this.#open.clear();
    }
}
/**
 * Answers the calls to this worker thread with the handlers that `start` returns, until the thread is ended. `start`
 * may send events with `emit`. If it fails, the thread ends with that error.
 */
export async function serveThread(start, port = parentPort) {
    if (port === null)
        throw new PserverError("INTERNAL", "expected to run as a worker thread");
    const send = (reply, moved = []) => port.postMessage(reply, moved);
    const handlers = await start((event) => send({ kind: "event", event }));
    port.on("message", async ({ id, verb, argument }) => {
        const progress = (...counts) => send({ kind: "progress", id, counts });
        try {
            const handle = handlers[verb];
            const result = await handle(argument, progress);
            send({ kind: "done", id, result }, result instanceof Uint8Array ? [result.buffer] : []);
        }
        catch (error) {
            send({ kind: "failed", id, error: ensureError(error).toWire() });
        }
    });
    send({ kind: "ready" });
}
/** Restores an error that ended a thread: its class is lost between threads, its code is not. */
function fromThread(error) {
    const { code, details } = error;
    if (typeof code !== "string")
        return ensureError(error);
    return errorFromWire({ code, message: error.message, details: (details ?? {}) });
}
//# sourceMappingURL=worker-thread.js.map