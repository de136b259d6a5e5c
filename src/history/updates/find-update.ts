import { readable } from "../../actors/fold/read-record.ts";
import {
  decodeMessage,
  JobSubjects,
  type Position,
  PserverError,
  parseHead,
} from "../../protocol/index.ts";
import { checkShard } from "../check-shard.ts";
import { showPosition } from "../history-lost.ts";
import { formatPoint } from "../points/parse-point.ts";
import type { Point } from "../points/point.ts";
import type { HistorySource, ShardHistory } from "../source.ts";

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
 * @throws BAD_VALUE if there is none, or several shards have a record of this number and none is named;
 * what the source throws; the reason of the signal.
 */
export async function findRecord(
  source: HistorySource,
  point: RecordPoint,
  signal: AbortSignal,
): Promise<FoundRecord> {
  if (point.kind === "position") return await heldRecord(source, point);
  const { shard } = point;
  if (shard !== undefined) checkShard(source, shard);
  const numbers =
    shard === undefined ? Array.from({ length: source.shards }, (_, number) => number) : [shard];
  const subjects = new JobSubjects(source.job);
  const found: FoundRecord[] = [];
  for (const number of numbers) {
    const position = await search(source.shard(number), subjects, point, signal);
    if (position !== undefined) found.push({ shard: number, position });
  }
  const [only, ...others] = found;
  if (only !== undefined && others.length === 0) return only;
  const name = formatPoint(point);
  throw new PserverError(
    "BAD_VALUE",
    only === undefined
      ? `${name}: expected an update that is kept in the journal; found none`
      : `${name}: shards ${found.map((each) => each.shard).join(", ")} have an update of this number: ` +
          `name one, such as ${name}@${only.shard}`,
    { received: name },
  );
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

/** The first record of a shard with the sender and number of an update. */
async function search(
  history: ShardHistory,
  subjects: JobSubjects,
  { trainer, session, n }: Extract<RecordPoint, { kind: "update" }>,
  signal: AbortSignal,
): Promise<Position | undefined> {
  for (const { generation, firstSeq, lastSeq } of await history.spans()) {
    const after = { generation, seq: firstSeq - 1 };
    for await (const batch of history.read(after, lastSeq, signal)) {
      for (const { subject, payload, seq } of batch) {
        const log = readable(() => subjects.parseLog(subject));
        if (log === undefined || log.by === "host" || log.trainer !== trainer) continue;
        const head = readable(() => parseHead(decodeMessage(payload).fields));
        if (head?.session === session && head.n === n) return { generation, seq };
      }
    }
  }
  return undefined;
}
