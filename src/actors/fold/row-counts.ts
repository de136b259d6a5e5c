import type { ShardMemory } from "../memory/shard-memory.ts";
import type { StoredBlock } from "./block.ts";
import { eachListPiece } from "./row-pieces.ts";

/** Largest update count of a row; later updates keep it. */
const COUNT_MAX = 0xffffffff;

/** Address of the update counts of a block's rows; undefined unless the parameter is sparse. */
export function rowCounts(block: StoredBlock): number | undefined {
  const { counts } = block.plan;
  return counts === undefined ? undefined : block.slotPointer(counts);
}

/** The count after one more update. */
export function nextCount(count: number): number {
  return Math.min(count + 1, COUNT_MAX);
}

/** Counts one update of these rows, or of all rows; does nothing unless the parameter is sparse. */
export function countUpdate(
  memory: ShardMemory,
  block: StoredBlock,
  list: Uint32Array | undefined,
): void {
  const counts = rowCounts(block);
  if (counts === undefined) return;
  const { kernels } = memory;
  if (list === undefined) kernels.countAll(counts, block.rows.rows);
  else eachListPiece(memory, list, (pointer, n) => kernels.countRows(counts, pointer, n));
}
