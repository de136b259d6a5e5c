import type { BucketDeps, BucketEntry } from "./lock.ts";
/** Dependencies of {@link Counter}. */
interface CounterDeps extends BucketDeps {
    /** The entry of the last number that was given; 0 before the first. */
    readonly entry: BucketEntry<number>;
    /** Returns a number up to which numbers are known to have been given, whatever the entry says. */
    readonly floor?: () => number;
    /** Checks the last number before it is given. */
    readonly check?: (last: number) => void;
}
/**
 * Hands out consecutive numbers of a job: each is given once, and later ones are higher. Requests that come while a
 * write is under way share the next write, so that many may ask at once. The host limits how many wait by limiting the
 * requests that it works on.
 */
export declare class Counter {
    #private;
    constructor(deps: CounterDeps);
    /** Takes `count` new numbers and returns the first. @throws as {@link BucketEntry.change} and the check do. */
    take(count: number): Promise<number>;
    /** Returns the last number given; 0 before the first. */
    last(): Promise<number>;
}
export {};
//# sourceMappingURL=counter.d.ts.map