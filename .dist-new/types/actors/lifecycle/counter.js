/**
 * Hands out consecutive numbers of a job: each is given once, and later ones are higher. Requests that come while a
 * write is under way share the next write, so that many may ask at once. The host limits how many wait by limiting the
 * requests that it works on.
 */
export class Counter {
    #deps;
    #waiting = [];
    #isCounting = false;
    constructor(deps) {
        this.#deps = deps;
    }
    /** Takes `count` new numbers and returns the first. @throws as {@link BucketEntry.change} and the check do. */
    take(count) {
        return new Promise((resolve, reject) => {
            this.#waiting.push({ count, resolve, reject });
            if (!this.#isCounting)
                void this.#count();
        });
    }
    /** Returns the last number given; 0 before the first. */
    async last() {
        return await this.#deps.entry.read(this.#deps);
    }
    async #count() {
        this.#isCounting = true;
        while (this.#waiting.length > 0) {
            const waiting = this.#waiting;
            this.#waiting = [];
            const total = waiting.reduce((sum, { count }) => sum + count, 0);
            try {
                let first = (await this.#add(total)).result - total + 1;
                for (const { count, resolve } of waiting) {
                    resolve(first);
                    first += count;
                }
            }
            catch (error) {
                for (const { reject } of waiting)
                    reject(error);
            }
        }
        this.#isCounting = false;
    }
    /** Takes `count` new numbers; returns the last. Numbers whose write got no answer are skipped. */
    #add(count) {
        const { entry, floor, check } = this.#deps;
        return entry.change(this.#deps, (given) => {
            const last = Math.max(given, floor?.() ?? 0) + count;
            check?.(last);
            return last;
        });
    }
}
//# sourceMappingURL=counter.js.map