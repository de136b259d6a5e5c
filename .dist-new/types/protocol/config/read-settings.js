import { PserverError } from "../errors.js";
import { suggest } from "./suggest.js";
export const FINITE = { expected: "a finite number", holds: Number.isFinite };
export const NOT_NEGATIVE = {
    expected: "a finite number from 0 on",
    holds: (value) => Number.isFinite(value) && value >= 0,
};
export const POSITIVE = {
    expected: "a finite number above 0",
    holds: (value) => Number.isFinite(value) && value > 0,
};
/** Decay rates: 1 would keep the whole past and learn nothing. */
export const DECAY = {
    expected: "a number from 0 to below 1",
    holds: (value) => value >= 0 && value < 1,
};
export const UNIT = {
    expected: "a number from 0 to 1",
    holds: (value) => value >= 0 && value <= 1,
};
/** Smaller numbers are denormal in float32, with which an optimizer would divide by zero. */
export const EPSILON = {
    expected: "a finite number from 2^-126 on",
    holds: (value) => Number.isFinite(value) && value >= 2 ** -126,
};
/** Counts of updates, steps or trainers. */
export const COUNT = wholeRange(1);
/** Makes the range of whole numbers from `min` to `max`, both included. */
export function wholeRange(min, max = Number.MAX_SAFE_INTEGER) {
    const upTo = max === Number.MAX_SAFE_INTEGER ? "on" : `to ${max}`;
    return {
        expected: `a whole number from ${min} ${upTo}`,
        holds: (value) => Number.isSafeInteger(value) && value >= min && value <= max,
    };
}
/**
 * Reads a map of settings entry by entry. Null and undefined mean absent. −0 becomes 0, as messages
 * cannot carry it.
 */
export class Settings {
    #what;
    #entries;
    /** @throws BAD_CONFIG unless `value` is a plain map with no entries besides the `known` ones. */
    constructor(value, what, known) {
        if (!isPlainMap(value))
            throw badConfig(what, "a map of settings", value);
        const entries = Object.entries(value).filter(([, entry]) => entry != null);
        const unknown = entries.find(([key]) => !known.includes(key));
        if (unknown !== undefined) {
            throw badConfig(what, `no entries but ${known.join(", ") || "none"}`, unknown[0], suggest(unknown[0], known));
        }
        this.#what = what;
        this.#entries = new Map(entries);
    }
    /** Returns the entry as it was given; undefined if absent. */
    get(key) {
        return this.#entries.get(key);
    }
    /** @throws BAD_CONFIG if the number is not in its range, or absent without a `fallback`. */
    number(key, range, fallback) {
        const value = this.#entries.get(key) ?? fallback;
        if (typeof value === "number" && range.holds(value))
            return value + 0;
        throw this.refusal(key, range.expected, value);
    }
    /** Reads all these numbers, each as {@link number} does. */
    numbers(entries) {
        const read = Object.entries(entries).map(([key, { range, fallback }]) => [
            key,
            this.number(key, range, fallback),
        ]);
        return Object.fromEntries(read);
    }
    /** Reads a number as {@link number} does; undefined if absent. */
    optionalNumber(key, range) {
        return this.#entries.has(key) ? this.number(key, range) : undefined;
    }
    /** Reads a boolean; false if absent. @throws BAD_CONFIG unless it is true or false. */
    flag(key) {
        const value = this.#entries.get(key) ?? false;
        if (typeof value === "boolean")
            return value;
        throw this.refusal(key, "true or false", value);
    }
    /** @throws BAD_CONFIG unless it is one of `words`. */
    word(key, words, fallback) {
        const value = this.#entries.get(key) ?? fallback;
        const word = words.find((known) => known === value);
        if (word !== undefined)
            return word;
        throw this.refusal(key, words.join(", "), value);
    }
    /** Makes the error for an invalid entry. */
    refusal(key, expected, received) {
        return badConfig(`${this.#what}.${key}`, expected, received);
    }
}
/** Makes a BAD_CONFIG that names expected and received, and asks whether what was received means `suggestion`. */
export function badConfig(what, expected, received, suggestion) {
    const shown = show(received);
    const question = suggestion === undefined ? "" : `: did you mean ${suggestion}?`;
    return new PserverError("BAD_CONFIG", `${what}: expected ${expected}; received ${shown}${question}`, { expected, received: shown });
}
/** Whether a value is an object of entries, as JSON and MessagePack have them. */
export function isPlainMap(value) {
    if (typeof value !== "object" || value === null)
        return false;
    const prototype = Object.getPrototypeOf(value);
    return prototype === null || Object.getPrototypeOf(prototype) === null;
}
function show(value) {
    if (value === undefined)
        return "nothing";
    if (typeof value === "string")
        return JSON.stringify(value.slice(0, 200));
    if (typeof value !== "object" || value === null)
        return String(value).slice(0, 200);
    if (value instanceof Uint8Array)
        return `${value.length} bytes`;
    return Array.isArray(value) ? `a list of ${value.length}` : "a map";
}
//# sourceMappingURL=read-settings.js.map