import type { Fields } from "../codec.ts";
import { asMap, integerField, listField } from "../fields.ts";

/** A place in a shard's journal. The generation rises when the stream has to be replaced. */
export interface Position {
  readonly generation: number;
  readonly seq: number;
}

/** The position in a message; @throws BAD_MESSAGE if it has none. */
export function parsePosition(fields: Fields): Position {
  return { generation: integerField(fields, "generation", 1), seq: integerField(fields, "seq") };
}

/** The later of two positions of one shard; undefined counts as the beginning. */
export function laterPosition(a: Position | undefined, b: Position): Position {
  return a === undefined || comparePositions(b, a) > 0 ? b : a;
}

/** Below 0 if `a` is before `b` in their shard, above 0 if it is after it. */
export function comparePositions(a: Position, b: Position): number {
  return a.generation - b.generation || a.seq - b.seq;
}

/**
 * What a shard did not keep of a journal that was replaced by one of a later generation. Several may be of one
 * generation, in order: the records between them were kept.
 */
export interface Fallback {
  /** The generation that was left; `from` and `to` are sequences of its journal. */
  readonly generation: number;
  /** The first record that the shard did not keep. */
  readonly from: number;
  /** The last record known to have existed; `from` - 1 if none is known to be lost. */
  readonly to: number;
}

/** Replacements that a shard remembers: a trainer away for longer is told only of these. */
export const FALLBACKS_MAX = 16;

/** The replacements with one more; the oldest is dropped when there are too many. */
export function withFallbacks(
  fallbacks: readonly Fallback[],
  more: readonly Fallback[],
): readonly Fallback[] {
  return [...fallbacks, ...more].slice(-FALLBACKS_MAX);
}

/** Records lost since a position of an older journal, for each generation left since. */
export function fallbacksSince(fallbacks: readonly Fallback[], generation: number): Fallback[] {
  return fallbacks.filter((fallback) => fallback.generation >= generation);
}

/**
 * The losses among these replacements for a trainer that has seen a position: those of later generations,
 * and of its own generation what the position proves to have existed. Empty losses are left out.
 */
export function lostSince(fallbacks: readonly Fallback[], seen: Position): Fallback[] {
  const lost = extendedTo(fallbacks, seen).filter(({ from, to }) => to >= from);
  return fallbacksSince(lost, seen.generation);
}

/** The replacements where the records of a generation up to a sequence are known to have existed. */
export function extendedTo(
  fallbacks: readonly Fallback[],
  { generation, seq }: Position,
): Fallback[] {
  // Of several of one generation only the last one ends with the journal.
  const last = fallbacks.findLastIndex((fallback) => fallback.generation === generation);
  return fallbacks.map((fallback, i) =>
    i === last ? { ...fallback, to: Math.max(fallback.to, seq) } : fallback,
  );
}

/**
 * The replacements in a message, none if it names none.
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
