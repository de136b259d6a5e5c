import { setTimeout as delay } from "node:timers/promises";
import { asMap, PserverError, textField } from "../../protocol/index.js";
import { describeTakeOver, readTakeOver, TakeOverWatch, } from "../owner/take-over.js";
/** How often take-overs are reported. */
const REPORT_MS = 5_000;
/** How often a starting host checks whether its shards are served. */
const POLL_MS = 20;
/** Shards that are named when a host cannot start. */
const SHOWN_MAX = 3;
/** Follows how far a host has come with taking shards over, reports that, and waits for it. */
export class TakeOvers {
    #deps;
    /** What was last known of each take-over, by shard. */
    #known = new Map();
    #timer;
    constructor(deps) {
        this.#deps = deps;
    }
    /** Begins to report. */
    start() {
        this.#timer = setInterval(() => this.#report(), REPORT_MS);
    }
    stop() {
        clearInterval(this.#timer);
    }
    /**
     * Settles when `isDone` returns true. How long that takes depends on snapshots and on the records after them, so it
     * has no deadline while any take-over progresses.
     * @throws TIMEOUT after `stallMs` without progress; what `isDone` throws.
     */
    async until(isDone, stallMs) {
        const watch = new TakeOverWatch();
        while (!isDone()) {
            watch.note(this.#progress());
            if (watch.stalledMs > stallMs)
                throw this.#stalled(stallMs);
            await delay(POLL_MS);
        }
    }
    #progress() {
        return this.#deps.statuses().flatMap((status) => readTakeOver(status) ?? []);
    }
    #report() {
        const progress = this.#progress();
        for (const each of progress) {
            const before = this.#known.get(each.shard);
            if (before !== undefined && before !== describeTakeOver(each))
                this.#deps.onProgress(each);
        }
        this.#known = new Map(progress.map((each) => [each.shard, describeTakeOver(each)]));
    }
    #stalled(stallMs) {
        const reached = this.#progress().map((each) => {
            return `; shard ${each.shard}: ${describeTakeOver(each)}`;
        });
        const errors = this.#deps.statuses().flatMap(({ shard, error }) => {
            if (error === undefined)
                return [];
            return `; shard ${shard}: ${textField(asMap(error, "error"), "message")}`;
        });
        const shown = [...reached.slice(0, SHOWN_MAX), ...errors.slice(0, SHOWN_MAX)].join("");
        const text = `host ${this.#deps.host}: its shards are not served, without progress for ${stallMs} ms${shown}`;
        return new PserverError("TIMEOUT", text);
    }
}
//# sourceMappingURL=take-overs.js.map