import { PserverError } from "../errors.ts";
/** A range of numbers, in words and as a predicate. */
export interface Range {
    readonly expected: string;
    readonly holds: (value: number) => boolean;
}
export declare const FINITE: Range;
export declare const NOT_NEGATIVE: Range;
export declare const POSITIVE: Range;
/** Decay rates: 1 would keep the whole past and learn nothing. */
export declare const DECAY: Range;
export declare const UNIT: Range;
/** Smaller numbers are denormal in float32, with which an optimizer would divide by zero. */
export declare const EPSILON: Range;
/** Counts of updates, steps or trainers. */
export declare const COUNT: Range;
/** Makes the range of whole numbers from `min` to `max`, both included. */
export declare function wholeRange(min: number, max?: number): Range;
/** A number among the settings of a rule or schedule. */
interface NumberEntry {
    readonly range: Range;
    /** The value of an absent entry; without a fallback the entry is required. */
    readonly fallback?: number;
}
/** Numbers by their keys, in the order of the normalized form. */
export type NumberEntries = Readonly<Record<string, NumberEntry>>;
/**
 * Reads a map of settings entry by entry. Null and undefined mean absent. −0 becomes 0, as messages
 * cannot carry it.
 */
export declare class Settings {
    #private;
    /** @throws BAD_CONFIG unless `value` is a plain map with no entries besides the `known` ones. */
    constructor(value: unknown, what: string, known: readonly string[]);
    /** Returns the entry as it was given; undefined if absent. */
    get(key: string): unknown;
    /** @throws BAD_CONFIG if the number is not in its range, or absent without a `fallback`. */
    number(key: string, range: Range, fallback?: number): number;
    /** Reads all these numbers, each as {@link number} does. */
    numbers(entries: NumberEntries): Record<string, number>;
    /** Reads a number as {@link number} does; undefined if absent. */
    optionalNumber(key: string, range: Range): number | undefined;
    /** Reads a boolean; false if absent. @throws BAD_CONFIG unless it is true or false. */
    flag(key: string): boolean;
    /** @throws BAD_CONFIG unless it is one of `words`. */
    word<Word extends string>(key: string, words: readonly Word[], fallback?: Word): Word;
    /** Makes the error for an invalid entry. */
    refusal(key: string, expected: string, received: unknown): PserverError;
}
/** Makes a BAD_CONFIG that names expected and received. */
export declare function badConfig(what: string, expected: string, received: unknown): PserverError;
export {};
//# sourceMappingURL=read-settings.d.ts.map