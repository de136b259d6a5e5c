import { type Position, PserverError } from "../protocol/index.ts";

/**
 * The error for a position of a shard that the kept history does not reach back to; `oldest` is the first
 * one that it does reach, if any, which was stored at `oldestMs`, where that is known.
 */
export function historyLost(
  shard: number,
  wanted: string,
  oldest: Position | undefined,
  oldestMs?: number,
): PserverError {
  const time = oldestMs === undefined ? undefined : new Date(oldestMs).toISOString();
  const at = time === undefined ? "" : `, stored at ${time}`;
  const from =
    oldest === undefined
      ? "nothing of it is left"
      : `it begins at ${showPosition(shard, oldest)}${at}`;
  return new PserverError(
    "HISTORY_LOST",
    `the kept history of shard ${shard} does not reach back to ${wanted}: ${from}`,
    { shard, received: wanted, ...(oldest && { expected: oldest }), ...(time && { time }) },
  );
}

/** A position as points spell it: `3:1200`, with the generation unless it is the first: `3:1200@2`. */
export function showPosition(shard: number, { generation, seq }: Position): string {
  return generation === 1 ? `${shard}:${seq}` : `${shard}:${seq}@${generation}`;
}
