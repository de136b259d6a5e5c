import { asMap, integerField, listField } from "../fields.js";
/** Reads the position in a message; @throws BAD_MESSAGE if it has none. */
export function parsePosition(fields) {
    return { generation: integerField(fields, "generation", 1), seq: integerField(fields, "seq") };
}
/** Returns the later of two positions of one shard; undefined counts as the beginning. */
export function laterPosition(a, b) {
    return a === undefined || comparePositions(b, a) > 0 ? b : a;
}
/** Compares two positions of one shard: below 0 if `a` is before `b`, above 0 if it is after it. */
export function comparePositions(a, b) {
    return a.generation - b.generation || a.seq - b.seq;
}
/** Fallbacks that a shard remembers: a trainer that was away for longer is told only of these. */
export const FALLBACKS_MAX = 16;
/** Appends fallbacks to a list; drops the oldest if there are too many. */
export function withFallbacks(fallbacks, added) {
    return [...fallbacks, ...added].slice(-FALLBACKS_MAX);
}
/** Returns the fallbacks of this generation and of all later ones. */
export function fallbacksSince(fallbacks, generation) {
    return fallbacks.filter((fallback) => fallback.generation >= generation);
}
/**
 * Returns what a trainer that has seen a position has lost: the fallbacks of later generations, and of its
 * own generation the records that the position proves to have existed. Empty ones are left out.
 */
export function lostSince(fallbacks, seen) {
    const lost = extendedTo(fallbacks, seen).filter(({ from, to }) => to >= from);
    return fallbacksSince(lost, seen.generation);
}
/** Returns the fallbacks with the knowledge that the records of a generation existed up to a sequence. */
export function extendedTo(fallbacks, { generation, seq }) {
    // Of several of one generation, only the last reaches to the end of the journal.
    const last = fallbacks.findLastIndex((fallback) => fallback.generation === generation);
    return fallbacks.map((fallback, i) => i === last ? { ...fallback, to: Math.max(fallback.to, seq) } : fallback);
}
/**
 * Reads the fallbacks in a message; none if it names none.
 * @throws BAD_MESSAGE if they are malformed.
 */
export function parseFallbacks(fields) {
    if (fields["fallbacks"] === undefined)
        return [];
    return listField(fields, "fallbacks", FALLBACKS_MAX).map((value) => {
        const entry = asMap(value, "fallback");
        return {
            generation: integerField(entry, "generation", 1),
            from: integerField(entry, "from", 1),
            to: integerField(entry, "to"),
        };
    });
}
//# sourceMappingURL=position.js.map