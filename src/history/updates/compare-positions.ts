import type { Position } from "../../protocol/index.ts";

/** Below 0 if `a` is before `b` in their shard, above 0 if it is after it. */
export function comparePositions(a: Position, b: Position): number {
  return a.generation - b.generation || a.seq - b.seq;
}
