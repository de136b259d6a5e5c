import type { Position } from "../protocol/index.ts";
import type { ShardHistory, TimedRecord } from "./source.ts";

/** The record at a position; undefined if the source has none there. @throws as `ShardHistory.read` does. */
export async function recordAt(
  history: Pick<ShardHistory, "read">,
  { generation, seq }: Position,
  signal: AbortSignal,
): Promise<TimedRecord | undefined> {
  for await (const [record] of history.read({ generation, seq: seq - 1 }, seq, signal)) {
    if (record !== undefined) return record;
  }
  return undefined;
}
