import type { Fields } from "./codec.ts";
import { integerField } from "./fields.ts";

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
