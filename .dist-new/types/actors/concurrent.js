/** The clock of the process. Its timers do not keep the process alive. */
export const systemClock = {
    now: () => performance.now(),
    after(delayMs, run) {
        const timer = setTimeout(run, delayMs);
        timer.unref();
        return () => clearTimeout(timer);
    },
};
/** How many small requests may be under way at one time. */
export const REQUESTS_AT_ONCE = 64;
/**
 * Calls `run` for every item, up to `atOnce` calls at a time; returns the results in the order of the items. After
 * the first failure it begins no further item, waits for the calls under way, and throws that failure.
 */
export async function mapConcurrently(items, run, atOnce = REQUESTS_AT_ONCE) {
    const results = new Array(items.length);
    let next = 0;
    let failed = false;
    const work = async () => {
        while (!failed && next < items.length) {
            const at = next++;
            try {
                results[at] = await run(items[at]);
            }
            catch (error) {
                failed = true;
                throw error;
            }
        }
    };
    const workers = Array.from({ length: Math.min(atOnce, items.length) }, work);
    const ended = await Promise.allSettled(workers);
    for (const end of ended)
        if (end.status === "rejected")
            throw end.reason;
    return results;
}
/** Repeats work, one round at a time, with a pause after each, until stopped for good. */
export class Repeater {
    #work;
    #clock;
    #isStarted = false;
    #isStopped = false;
    #isQueued = false;
    #round = Promise.resolve();
    #cancelPause = () => undefined;
    /** `work` does one round and returns how many milliseconds to pause after it; it must not throw. */
    constructor(work, clock = systemClock) {
        this.#work = work;
        this.#clock = clock;
    }
    /** Begins with a round at once and waits for it, or begins after a pause of `afterMs` and does not wait. */
    async start(afterMs = 0) {
        if (this.#isStarted)
            return await this.#round;
        this.#isStarted = true;
        if (afterMs > 0)
            this.#pause(afterMs);
        else
            await this.soon();
    }
    /** Ends the pause: a round begins as soon as none is under way. Does nothing before the start. */
    soon() {
        if (this.#isStarted && !this.#isQueued) {
            this.#isQueued = true;
            this.#cancelPause();
            this.#round = this.#round.then(() => this.#run());
        }
        return this.#round;
    }
    /** Begins no further round, and waits for one under way. */
    async stop() {
        this.#isStopped = true;
        this.#cancelPause();
        await this.#round;
    }
    async #run() {
        this.#isQueued = false;
        if (this.#isStopped)
            return;
        const pauseMs = await this.#work();
        if (!this.#isQueued)
            this.#pause(pauseMs);
    }
    #pause(pauseMs) {
        if (this.#isStopped)
            return;
        this.#cancelPause = this.#clock.after(pauseMs, () => void this.soon());
    }
}
//# sourceMappingURL=concurrent.js.map