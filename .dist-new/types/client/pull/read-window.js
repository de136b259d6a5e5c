import { orObstacle } from "../calls/calls.js";
/**
 * Share of the window that must be free before waiting requests are admitted: then many are, and go to the
 * broker in one write.
 */
const FREE_SHARE = 0.25;
/**
 * Bounds the bytes under way: requests that do not fit wait in order. A request that its shard refuses for the time
 * being has none under way. It makes place for requests to other shards, and those to its own wait for it.
 */
export class ReadWindow {
    #bytesMax;
    #waiters = new Set();
    /** How many requests each shard refuses at present; absent for 0. */
    #refused = new Map();
    #bytes = 0;
    /** Makes an empty window of so many bytes; how many is asked each time. */
    constructor(bytesMax) {
        this.#bytesMax = bytesMax;
    }
    /** Bytes under way. */
    get bytes() {
        return this.#bytes;
    }
    /**
     * Waits until the bytes of a request fit; more bytes than the window has are admitted alone. {@link ReadPlace.leave}
     * must be called when the request is over.
     * @throws what ends the call: at its timeout, what keeps another request of the call from being answered.
     */
    async enter(shard, bytes, deadline) {
        const mayPass = deadline.ended === undefined && this.#waiters.size === 0;
        if (!mayPass || !this.#admits(shard, bytes)) {
            await new Promise((resolve, reject) => {
                const admit = () => {
                    stopListening();
                    resolve();
                };
                const waiter = { shard, bytes, deadline, admit };
                this.#waiters.add(waiter);
                const stopListening = deadline.onEnd((error) => {
                    this.#waiters.delete(waiter);
                    reject(orObstacle(error, deadline.obstacle()));
                    this.#admit();
                });
                this.#admit();
            });
        }
        else {
            this.#bytes += bytes;
        }
        return new ReadPlace({
            refused: () => {
                this.#bytes -= bytes;
                this.#refused.set(shard, this.#refusedBy(shard) + 1);
                this.#admit();
            },
            left: (isRefused) => {
                if (isRefused)
                    this.#settle(shard);
                else
                    this.#bytes -= bytes;
                for (const waiter of this.#waiters)
                    waiter.deadline.progressed();
                if (this.#bytes <= this.#bytesMax() * (1 - FREE_SHARE))
                    this.#admit();
            },
        });
    }
    #refusedBy(shard) {
        return this.#refused.get(shard) ?? 0;
    }
    #settle(shard) {
        const left = this.#refusedBy(shard) - 1;
        if (left === 0)
            this.#refused.delete(shard);
        else
            this.#refused.set(shard, left);
    }
    #admits(shard, bytes) {
        return !this.#refused.has(shard) && this.#fits(bytes);
    }
    #fits(bytes) {
        return this.#bytes === 0 || this.#bytes + bytes <= this.#bytesMax();
    }
    #admit() {
        for (const waiter of this.#waiters) {
            const { shard, bytes, admit } = waiter;
            if (this.#refused.has(shard))
                continue;
            if (!this.#fits(bytes))
                return;
            this.#waiters.delete(waiter);
            this.#bytes += bytes;
            admit();
        }
    }
}
/** The place of one request in a {@link ReadWindow}. */
export class ReadPlace {
    #events;
    #isRefused = false;
    /** `events` are called at most once each. */
    constructor(events) {
        this.#events = events;
    }
    /** Notes that the request was refused and is sent again later; until it is over it has no bytes under way. */
    refused() {
        if (this.#isRefused)
            return;
        this.#isRefused = true;
        this.#events.refused();
    }
    /** Gives the place back. For those that wait that is progress. */
    leave() {
        this.#events.left(this.#isRefused);
    }
}
//# sourceMappingURL=read-window.js.map