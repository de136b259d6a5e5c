/** Monotonic time and timers; tests replace it. */
export interface Clock {
    /** Milliseconds since an arbitrary start; never decreases. */
    now(): number;
    /** Calls `run` once, `delayMs` from now; the returned function cancels it. */
    after(delayMs: number, run: () => void): () => void;
}
/** The clock of the process. Its timers do not keep the process alive. */
export declare const systemClock: Clock;
/** How many small requests may be under way at one time. */
export declare const REQUESTS_AT_ONCE = 64;
/**
 * Calls `run` for every item, up to `atOnce` calls at a time; returns the results in the order of the items. After
 * the first failure it begins no further item, waits for the calls under way, and throws that failure.
 */
export declare function mapConcurrently<Item, Result>(items: readonly Item[], run: (item: Item) => Promise<Result>, atOnce?: number): Promise<Result[]>;
/** Repeats work, one round at a time, with a pause after each, until stopped for good. */
export declare class Repeater {
    #private;
    /** `work` does one round and returns how many milliseconds to pause after it; it must not throw. */
    constructor(work: () => Promise<number>, clock?: Clock);
    /** Begins with a round at once and waits for it, or begins after a pause of `afterMs` and does not wait. */
    start(afterMs?: number): Promise<void>;
    /** Ends the pause: a round begins as soon as none is under way. Does nothing before the start. */
    soon(): Promise<void>;
    /** Begins no further round, and waits for one under way. */
    stop(): Promise<void>;
}
//# sourceMappingURL=concurrent.d.ts.map