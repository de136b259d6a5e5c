import { PserverError } from "../protocol/errors.js";
import { quoteName } from "../protocol/names.js";
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
export async function elasticAverage(ps, name, local, alpha, options = {}) {
    if (!(alpha >= 0 && alpha <= 1)) {
        throw new PserverError("BAD_VALUE", `elasticAverage: alpha: expected 0 to 1; received ${String(alpha)}`, { expected: "0 to 1", received: String(alpha) });
    }
    const center = await pullLike(ps, name, local, options);
    const diff = center;
    for (let i = 0; i < local.length; i++) {
        diff[i] = alpha * (local[i] - center[i]);
    }
    await ps.pushFull(name, diff, 1, 1, options);
    subtract(local, diff);
}
/**
 * Exchanges of asynchronous SGD by differences, as Platoon's `ASGD`: a trainer trains `local` on its
 * own; {@link AsyncDifference.exchange} adds what it has changed since the last exchange to the
 * parameter, the master, and takes over the master with what the others have added.
 */
export class AsyncDifference {
    /** The trainer's own values, to be trained in place. */
    local;
    #ps;
    #name;
    /** The master at the last exchange. */
    #old;
    constructor(ps, name, master) {
        this.#ps = ps;
        this.#name = name;
        this.local = master;
        this.#old = master.slice();
    }
    /** Begins with the master's values. @throws BAD_DTYPE unless they are floating point numbers. */
    static async begin(ps, name, options = {}) {
        const { data, dtype } = await ps.pullFull(name, options);
        if (isFloatData(data))
            return new AsyncDifference(ps, name, data);
        throw notFloat(name, dtype);
    }
    /**
     * Computes master += local − old; local = old = master. What a call has added is never added again, even if
     * reading the master fails afterwards. Only after OUTCOME_UNKNOWN it may have been added, and is added with
     * the next exchange.
     * @throws as `Client.pushFull` and `Client.pullFull` do; `local` is then unchanged.
     */
    async exchange(options = {}) {
        const diff = this.local.slice();
        subtract(diff, this.#old);
        await this.#ps.pushFull(this.#name, diff, 1, 1, options);
        this.#old.set(this.local);
        const master = await pullLike(this.#ps, this.#name, this.local, options);
        this.local.set(master);
        this.#old.set(master);
    }
}
async function pullLike(ps, name, local, options) {
    const into = local.slice();
    await ps.pullFull(name, { ...options, into });
    return into;
}
function subtract(values, difference) {
    for (let i = 0; i < values.length; i++) {
        values[i] = values[i] - difference[i];
    }
}
function isFloatData(data) {
    return data instanceof Float32Array || data instanceof Float64Array;
}
function notFloat(name, dtype) {
    return new PserverError("BAD_DTYPE", `${quoteName(name)}: expected float32 or float64 to average; received ${dtype}`, { parameter: name, expected: ["float32", "float64"], received: dtype });
}
//# sourceMappingURL=averaging.js.map