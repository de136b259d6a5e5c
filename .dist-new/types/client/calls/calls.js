import { ensureError, PserverError } from "../../protocol/errors.js";
/** How long a call without `timeoutMs` may make no progress. */
const CALL_TIMEOUT_MS = 30_000;
/** The longest delay a timer of Node.js can have. */
const TIMEOUT_MS_MAX = 2 ** 31 - 1;
/**
 * The end of a call: by its timeout, by its caller, or with the client. Everything that a call waits for
 * listens to it, so that no part of a call outlives the call.
 */
export class Deadline {
    /** Name of the call, for messages. */
    what;
    #timeoutMs;
    /** Whether progress gives the call the whole timeout again. */
    #followsProgress;
    #endsAtMs;
    #listeners = new Set();
    #signal;
    #timer;
    #ended;
    /** Returns why the call's request is not answered yet: the last error after which it is sent again. */
    obstacle = () => undefined;
    constructor(what, timeoutMs, options) {
        this.what = what;
        this.#timeoutMs = timeoutMs;
        this.#followsProgress = options.timeoutMs === undefined;
        this.#endsAtMs = performance.now() + timeoutMs;
        this.#signal = options.signal;
        this.#arm();
        options.signal?.addEventListener("abort", this.#onAbort);
    }
    /**
     * Begins a call; {@link dispose} must be called when it is over.
     * @throws BAD_VALUE if `timeoutMs` is out of range, ABORTED if the signal is aborted already.
     */
    static start(what, options = {}, defaultMs = CALL_TIMEOUT_MS) {
        const { timeoutMs = defaultMs, signal } = options;
        if (!(timeoutMs > 0 && timeoutMs <= TIMEOUT_MS_MAX)) {
            throw new PserverError("BAD_VALUE", `${what}: timeoutMs: expected more than 0 and at most ${TIMEOUT_MS_MAX}; received ${String(timeoutMs)}`, { expected: `0..${TIMEOUT_MS_MAX}`, received: String(timeoutMs) });
        }
        if (signal?.aborted)
            throw aborted(what, signal);
        return new Deadline(what, timeoutMs, options);
    }
    /** Why the call has ended; undefined while it may go on. */
    get ended() {
        return this.#ended;
    }
    /** The time left, never below 0. */
    get remainingMs() {
        return this.#ended === undefined ? Math.max(0, this.#endsAtMs - performance.now()) : 0;
    }
    /** Notes that the call has made progress, after which it has its whole time again unless its caller has set one. */
    progressed() {
        if (this.#followsProgress)
            this.#endsAtMs = performance.now() + this.#timeoutMs;
    }
    /**
     * Returns whether the call can sleep for this delay. Also true if it has ended by anything but its timeout:
     * sleeping then fails with that error, which says more than the error that the caller would report.
     */
    allows(delayMs) {
        return this.#ended === undefined ? this.remainingMs > delayMs : this.#ended.code !== "TIMEOUT";
    }
    /** Ends the call with an error; only the first end counts. */
    end(error) {
        if (this.#ended !== undefined)
            return;
        this.#ended = error;
        this.#clear();
        for (const listener of [...this.#listeners])
            listener(error);
        this.#listeners.clear();
    }
    /** Calls `listener` when the call ends, at once if it has. Returns what stops listening. */
    onEnd(listener) {
        if (this.#ended !== undefined) {
            listener(this.#ended);
            return () => { };
        }
        this.#listeners.add(listener);
        return () => {
            this.#listeners.delete(listener);
        };
    }
    /** Waits for a time; @throws what ended the call, if it ends first. */
    sleep(ms) {
        return new Promise((resolve, reject) => {
            const timer = setTimeout(() => {
                stopListening();
                resolve();
            }, ms);
            const stopListening = this.onEnd((error) => {
                clearTimeout(timer);
                reject(error);
            });
        });
    }
    /**
     * Returns the result of `work`. `other` is the deadline of the request that it waits for, if several calls share
     * that. @throws what ended the call, if it ends first: at its timeout, the request's obstacle.
     */
    race(work, other) {
        return new Promise((resolve, reject) => {
            const stopListening = this.onEnd((end) => reject(orObstacle(end, other?.()?.obstacle())));
            work.finally(stopListening).then(resolve, reject);
        });
    }
    /** Releases the timer and the signal when the call is over. */
    dispose() {
        this.#clear();
        this.#listeners.clear();
    }
    #arm() {
        this.#timer = setTimeout(() => {
            if (this.#followsProgress && this.remainingMs > 0)
                this.#arm();
            else
                this.end(this.#timedOut());
        }, this.remainingMs);
    }
    #timedOut() {
        const timeoutMs = this.#timeoutMs;
        const text = this.#followsProgress ? "no progress within" : "not finished within";
        return new PserverError("TIMEOUT", `${this.what}: ${text} ${timeoutMs} ms`, { timeoutMs });
    }
    #onAbort = () => {
        if (this.#signal !== undefined)
            this.end(aborted(this.what, this.#signal));
    };
    #clear() {
        clearTimeout(this.#timer);
        this.#signal?.removeEventListener("abort", this.#onAbort);
    }
}
/** Returns the error of what a call waited for, at the call's end: at its timeout, the last obstacle. */
export function orObstacle(end, last) {
    if (end.code !== "TIMEOUT" || last === undefined)
        return end;
    const { code, message, details } = last;
    return new PserverError(code, `${end.message}; last: ${message}`, details, { cause: end });
}
function aborted(what, signal) {
    return new PserverError("ABORTED", `${what}: aborted by the caller`, {}, { cause: signal.reason });
}
const FIRST_MS = 50;
const MAX_MS = 500;
/**
 * Growing delays between attempts: from 50 ms, doubled up to 500 ms, each shortened at random by up to a
 * quarter so that trainers that failed together do not retry together.
 */
export class Backoff {
    #nextMs = FIRST_MS;
    /** Returns the delay before the next attempt. */
    nextMs() {
        const baseMs = this.#nextMs;
        this.#nextMs = Math.min(baseMs * 2, MAX_MS);
        return baseMs * (0.75 + Math.random() * 0.25);
    }
}
const UNITS_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };
/**
 * Parses a duration as the `nats` command takes it, such as `5s`, `500ms` or `1m30s`; returns milliseconds.
 * @throws BAD_VALUE for any other text.
 */
export function parseDuration(text, what) {
    if (/^(?:\d+(?:\.\d+)?(?:ms|s|m|h))+$/.test(text)) {
        let totalMs = 0;
        for (const [, count = "", unit = ""] of text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h)/g)) {
            totalMs += Number(count) * (UNITS_MS[unit] ?? 0);
        }
        if (totalMs > 0)
            return totalMs;
    }
    throw new PserverError("BAD_VALUE", `${what}: expected a duration such as 5s or 500ms; received ${JSON.stringify(text)}`, { expected: "a duration", received: text });
}
/** Waits for all promises, so that none outlives the call. @throws the first error. */
export async function allOrFirstError(work) {
    const [only] = work;
    if (work.length === 1 && only !== undefined)
        return [await only];
    const results = Promise.all(work);
    await Promise.allSettled([results, ...work]);
    return await results;
}
/** The calls under way. Each has a deadline, and all end when the client does. */
export class Calls {
    #running = new Set();
    #idle = new Set();
    #failure;
    #closing = false;
    /** The error that ended the client; undefined while it can be used. */
    get failure() {
        return this.#failure;
    }
    /**
     * Runs a call under its deadline.
     * @throws CLOSED after {@link close}, or the error that ended the client.
     */
    async run(what, options, call, defaultMs) {
        if (this.#failure !== undefined)
            throw this.#failure;
        if (this.#closing)
            throw closed(what);
        const deadline = Deadline.start(what, options, defaultMs);
        this.#running.add(deadline);
        try {
            return await call(deadline);
        }
        catch (error) {
            throw ensureError(error);
        }
        finally {
            deadline.dispose();
            this.#running.delete(deadline);
            if (this.#running.size === 0)
                for (const wake of this.#idle)
                    wake();
        }
    }
    /** Ends every call with an error and refuses all later ones with it. */
    fail(error) {
        if (this.#failure !== undefined)
            return;
        this.#failure = error;
        for (const deadline of this.#running)
            deadline.end(error);
    }
    /** Refuses new calls, waits for those under way until the deadline, then ends them. */
    async close(deadline) {
        this.#closing = true;
        if (this.#running.size > 0) {
            await new Promise((resolve) => {
                this.#idle.add(resolve);
                deadline.onEnd(() => resolve());
            });
        }
        this.fail(closed("the client"));
    }
}
function closed(what) {
    return new PserverError("CLOSED", `${what}: the client is closed`);
}
//# sourceMappingURL=calls.js.map