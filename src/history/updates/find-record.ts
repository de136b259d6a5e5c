import { type Position, PserverError } from "../../protocol/index.ts";
import { checkShard } from "../check-shard.ts";
import { showPosition } from "../history-lost.ts";
import { findUpdate } from "../points/find-update.ts";
import type { Point } from "../points/point.ts";
import type { HistorySource } from "../source.ts";

/** A point that names one record. */
export type RecordPoint = Extract<Point, { kind: "position" | "update" }>;

/** A record by its shard and position. */
export interface FoundRecord {
  readonly shard: number;
  readonly position: Position;
}

/**
 * The record that a point names. That of an update is searched for in all that is kept; of a record that was
 * repeated, it is the first copy.
 * @throws BAD_VALUE for a position that is not kept; as {@link findUpdate}; what the source throws; the reason
 * of the signal.
 */
export async function findRecord(
  source: HistorySource,
  point: RecordPoint,
  signal: AbortSignal,
): Promise<FoundRecord> {
  if (point.kind === "position") return await heldRecord(source, point);
  return await findUpdate(source, point, signal);
}

/** @throws BAD_VALUE if the record is not kept. */
async function heldRecord(
  source: HistorySource,
  { shard, seq, generation }: Extract<RecordPoint, { kind: "position" }>,
): Promise<FoundRecord> {
  checkShard(source, shard);
  const spans = await source.shard(shard).spans();
  const newest = generation ?? spans.at(-1)?.generation ?? 1;
  const held = spans.filter((span) => span.generation === newest);
  const position = { generation: newest, seq };
  if (held.some(({ firstSeq, lastSeq }) => firstSeq <= seq && seq <= lastSeq)) {
    return { shard, position };
  }
  const kept = held.map(({ firstSeq, lastSeq }) => `${firstSeq} to ${lastSeq}`).join(", ");
  throw new PserverError(
    "BAD_VALUE",
    `record ${showPosition(shard, position)}: expected one that is kept` +
      `${kept === "" ? "" : `, ${kept}`}; received another`,
    { shard, received: position },
  );
}
