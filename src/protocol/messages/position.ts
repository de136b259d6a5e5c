import type { Fields } from "../codec.ts";
import { asMap, integerField, listField } from "../fields.ts";

/** A place in a shard's journal. The generation rises when the journal is replaced. */
export interface Position {
  readonly generation: number;
  readonly seq: number;
}

/** Reads the position in a message; @throws BAD_MESSAGE if it has none. */
export function parsePosition(fields: Fields): Position {
  return { generation: integerField(fields, "generation", 1), seq: integerField(fields, "seq") };
}

/** Returns the later of two positions of one shard; undefined counts as the beginning. */
export function laterPosition(a: Position | undefined, b: Position): Position {
  return a === undefined || comparePositions(b, a) > 0 ? b : a;
}

/** Compares two positions of one shard: below 0 if `a` is before `b`, above 0 if it is after it. */
export function comparePositions(a: Position, b: Position): number {
  return a.generation - b.generation || a.seq - b.seq;
}

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
export const FALLBACKS_MAX = 16;

/** Appends fallbacks to a list; drops the oldest if there are too many. */
export function withFallbacks(
  fallbacks: readonly Fallback[],
  added: readonly Fallback[],
): readonly Fallback[] {
  return [...fallbacks, ...added].slice(-FALLBACKS_MAX);
}

/** Returns the fallbacks of this generation and of all later ones. */
export function fallbacksSince(fallbacks: readonly Fallback[], generation: number): Fallback[] {
  return fallbacks.filter((fallback) => fallback.generation >= generation);
}

/**
 * Returns what a trainer that has seen a position has lost: the fallbacks of later generations, and of its
 * own generation the records that the position proves to have existed. Empty ones are left out.
 */
export function lostSince(fallbacks: readonly Fallback[], seen: Position): Fallback[] {
  const lost = extendedTo(fallbacks, seen).filter(({ from, to }) => to >= from);
  return fallbacksSince(lost, seen.generation);
}

/** Returns the fallbacks with the knowledge that the records of a generation existed up to a sequence. */
export function extendedTo(
  fallbacks: readonly Fallback[],
  { generation, seq }: Position,
): Fallback[] {
  // Of several of one generation, only the last reaches to the end of the journal.
  const last = fallbacks.findLastIndex((fallback) => fallback.generation === generation);
  return fallbacks.map((fallback, i) =>
    i === last ? { ...fallback, to: Math.max(fallback.to, seq) } : fallback,
  );
}

/**
 * Reads the fallbacks in a message; none if it names none.
 * @throws BAD_MESSAGE if they are malformed.
 */
export function parseFallbacks(fields: Fields): readonly Fallback[] {
  if (fields["fallbacks"] === undefined) return [];
  return listField(fields, "fallbacks", FALLBACKS_MAX).map((value) => {
    const entry = asMap(value, "fallback");
    return {
      generation: integerField(entry, "generation", 1),
      from: integerField(entry, "from", 1),
      to: integerField(entry, "to"),
    };
  });
}

/** Formats a position as points spell it: `3:1200`, with the generation unless it is the first: `3:1200@2`. */
export function showPosition(shard: number, { generation, seq }: Position): string {
  return generation === 1 ? `${shard}:${seq}` : `${shard}:${seq}@${generation}`;
}

/** Shows a position in every shard, as the commands read it: `0:120 1:97@2`. */
export function showCut(at: readonly Position[]): string {
  return at.map((position, shard) => showPosition(shard, position)).join(" ");
}
