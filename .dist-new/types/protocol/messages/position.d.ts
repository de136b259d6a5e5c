import type { Fields } from "../codec.ts";
/** A place in a shard's journal. The generation rises when the journal is replaced. */
export interface Position {
    readonly generation: number;
    readonly seq: number;
}
/** Reads the position in a message; @throws BAD_MESSAGE if it has none. */
export declare function parsePosition(fields: Fields): Position;
/** Returns the later of two positions of one shard; undefined counts as the beginning. */
export declare function laterPosition(a: Position | undefined, b: Position): Position;
/** Compares two positions of one shard: below 0 if `a` is before `b`, above 0 if it is after it. */
export declare function comparePositions(a: Position, b: Position): number;
/**
 * Consecutive records that a shard did not keep when its journal was replaced. Several fallbacks may be of
 * one generation, in order; the shard kept the records between them.
 */
export interface Fallback {
    /** The generation of the journal that was replaced; `from` and `to` are sequences of its journal. */
    readonly generation: number;
    /** The first record that the shard did not keep. */
    readonly from: number;
    /** The last record known to have existed; `from` - 1 if none is known to be lost. */
    readonly to: number;
}
/** Fallbacks that a shard remembers: a trainer that was away for longer is told only of these. */
export declare const FALLBACKS_MAX = 16;
/** Appends fallbacks to a list; drops the oldest if there are too many. */
export declare function withFallbacks(fallbacks: readonly Fallback[], added: readonly Fallback[]): readonly Fallback[];
/** Returns the fallbacks of this generation and of all later ones. */
export declare function fallbacksSince(fallbacks: readonly Fallback[], generation: number): Fallback[];
/**
 * Returns what a trainer that has seen a position has lost: the fallbacks of later generations, and of its
 * own generation the records that the position proves to have existed. Empty ones are left out.
 */
export declare function lostSince(fallbacks: readonly Fallback[], seen: Position): Fallback[];
/** Returns the fallbacks with the knowledge that the records of a generation existed up to a sequence. */
export declare function extendedTo(fallbacks: readonly Fallback[], { generation, seq }: Position): Fallback[];
/**
 * Reads the fallbacks in a message; none if it names none.
 * @throws BAD_MESSAGE if they are malformed.
 */
export declare function parseFallbacks(fields: Fields): readonly Fallback[];
//# sourceMappingURL=position.d.ts.map