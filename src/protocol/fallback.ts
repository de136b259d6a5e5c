import type { Fields } from "./codec.ts";
import { asMap, integerField, listField } from "./fields.ts";
import type { Position } from "./outcomes.ts";

/** What a shard did not keep of a journal that was replaced by one of a later generation. */
export interface Fallback {
  /** The generation that was left; `from` and `to` are sequences of its journal. */
  readonly generation: number;
  /** The first record that the shard did not keep. */
  readonly from: number;
  /** The last record known to have existed; `from` - 1 if none is known to be lost. */
  readonly to: number;
}

/** Replacements that a shard remembers: whoever was away for longer is told of these only. */
export const FALLBACKS_MAX = 16;

/** The replacements up to one more, the oldest forgotten where they are too many. */
export function withFallbacks(
  fallbacks: readonly Fallback[],
  more: readonly Fallback[],
): readonly Fallback[] {
  return [...fallbacks, ...more].slice(-FALLBACKS_MAX);
}

/** What was lost since a position of an older journal, by the generations that were left since. */
export function fallbacksSince(fallbacks: readonly Fallback[], generation: number): Fallback[] {
  return fallbacks.filter((fallback) => fallback.generation >= generation);
}

/**
 * What whoever has seen a position lost, of these replacements: those of later generations, and what
 * it knows itself to have existed of its own. Replacements that lost nothing are left out.
 */
export function lostSince(fallbacks: readonly Fallback[], seen: Position): Fallback[] {
  return fallbacksSince(fallbacks, seen.generation)
    .map((fallback) => {
      const known = fallback.generation === seen.generation ? seen.seq : 0;
      return { ...fallback, to: Math.max(fallback.to, known) };
    })
    .filter(({ from, to }) => to >= from);
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
