import type { CallOptions } from "./calls/calls.ts";
import type { Client } from "./client.ts";
/** Element types that can be averaged. */
export type FloatData = Float32Array | Float64Array;
/** The calls of a client that averaging needs. */
export type Averaged = Pick<Client, "pullFull" | "pushFull">;
/**
 * Makes one exchange of elastic averaging SGD (EASGD; Zhang, Choromanska and LeCun, 2015), as Platoon's
 * `EASGD`: with diff = alpha · (local − center), `local` loses diff, in place, and the parameter, the center,
 * gains it. Each difference is computed in float64 and rounded once to the element type.
 *
 * Between reading and adding, other trainers may add their own differences: none is lost. `local` is
 * changed only when the center has been.
 * @param alpha from 0 to 1; Platoon advises 1 / trainers.
 * @throws BAD_VALUE for another alpha; BAD_DTYPE or BAD_LENGTH if `local` is not as the parameter.
 */
export declare function elasticAverage(ps: Averaged, name: string, local: FloatData, alpha: number, options?: CallOptions): Promise<void>;
/**
 * Exchanges of asynchronous SGD by differences, as Platoon's `ASGD`: a trainer trains `local` on its
 * own; {@link AsyncDifference.exchange} adds what it has changed since the last exchange to the
 * parameter, the master, and takes over the master with what the others have added.
 */
export declare class AsyncDifference {
    #private;
    /** The trainer's own values, to be trained in place. */
    readonly local: FloatData;
    private constructor();
    /** Begins with the master's values. @throws BAD_DTYPE unless they are floating point numbers. */
    static begin(ps: Averaged, name: string, options?: CallOptions): Promise<AsyncDifference>;
    /**
     * Computes master += local − old; local = old = master. What a call has added is never added again, even if
     * reading the master fails afterwards. Only after OUTCOME_UNKNOWN it may have been added, and is added with
     * the next exchange.
     * @throws as `Client.pushFull` and `Client.pullFull` do; `local` is then unchanged.
     */
    exchange(options?: CallOptions): Promise<void>;
}
//# sourceMappingURL=averaging.d.ts.map