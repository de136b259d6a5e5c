import type { StoredBlock } from "./block.ts";

/** Largest update count of a row; later updates keep it. */
const COUNT_MAX = 0xffffffff;

/** Update counts of a block's rows, a live view; undefined unless the parameter is sparse. */
export function rowCounts(block: StoredBlock): Uint32Array | undefined {
  const { counts } = block.plan;
  if (counts === undefined) return undefined;
  const { buffer, byteOffset } = block.slotBytes(counts);
  return new Uint32Array(buffer, byteOffset, block.rows.rows);
}

/** The count after one more update. */
export function nextCount(count: number): number {
  return Math.min(count + 1, COUNT_MAX);
}

/** Counts one update of these rows, or of all rows; does nothing unless the parameter is sparse. */
export function countUpdate(block: StoredBlock, rows: Uint32Array | undefined): void {
  const counts = rowCounts(block);
  if (counts === undefined) return;
  const named = rows?.length ?? counts.length;
  for (let i = 0; i < named; i++) {
    const row = rows === undefined ? i : (rows[i] as number);
    counts[row] = nextCount(counts[row] as number);
  }
}
