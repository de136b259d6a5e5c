import type { Position } from "../../protocol/index.ts";
import { type Inventory, spanWith } from "../reach.ts";
import { recordAt } from "../record-at.ts";
import type { ShardHistory } from "../source.ts";

/** Less than the time between two records, in milliseconds. */
const MOMENT_MS = 0.001;

/**
 * When the broker stored the record at a position, in milliseconds since 1970. If that record is gone, a
 * time before the next one: that of the snapshot at the position, or a moment before. Undefined if
 * nothing tells.
 */
export async function timeOfPosition(
  history: ShardHistory,
  inventory: Inventory,
  { generation, seq }: Position,
  signal: AbortSignal,
): Promise<number | undefined> {
  const own = await recordTime(history, inventory, { generation, seq }, signal);
  if (own !== undefined) return own;
  const next = await recordTime(history, inventory, { generation, seq: seq + 1 }, signal);
  const times = inventory.snapshots
    .filter(({ manifest }) => manifest.generation === generation && manifest.seq === seq)
    .map(({ timeMs }) => timeMs);
  // A take-over commits the same snapshot again, perhaps long after the next record.
  if (next !== undefined) times.push(next - MOMENT_MS);
  return times.length === 0 ? undefined : Math.min(...times);
}

async function recordTime(
  history: ShardHistory,
  { spans }: Inventory,
  position: Position,
  signal: AbortSignal,
): Promise<number | undefined> {
  if (position.seq === 0 || spanWith(spans, position) === undefined) return undefined;
  return (await recordAt(history, position, signal))?.timeMs;
}
