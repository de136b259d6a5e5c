import { mapConcurrently } from "../../actors/concurrent.ts";
import { readable, readRecordMessage } from "../../actors/fold/read-record.ts";
import {
  BATCH_HEAD_BYTES_MAX,
  JobSubjects,
  type Position,
  PserverError,
  parseHead,
} from "../../protocol/index.ts";
import { checkShard } from "../check-shard.ts";
import type { HistorySource, ShardHistory, TimedRecord } from "../source.ts";
import { formatPoint } from "./parse-point.ts";
import type { Point } from "./point.ts";

/** Shards that are searched at one time. */
const SHARDS_AT_ONCE = 4;

/** A point that names an update of a trainer. */
export type UpdatePoint = Extract<Point, { kind: "update" }>;

/** A record that was found. */
export interface FoundRecord {
  readonly shard: number;
  readonly position: Position;
  readonly timeMs: number;
}

/**
 * Finds the first record with the number of an update, in all that is kept; repeated ones follow it.
 * @throws HISTORY_LOST if none is kept but some records are not, BAD_VALUE if there has never been one, if
 * several shards have that number and the point names none of them; what the source throws.
 */
export async function findUpdate(
  source: HistorySource,
  point: UpdatePoint,
  signal: AbortSignal,
): Promise<FoundRecord> {
  const { shard } = point;
  if (shard !== undefined) checkShard(source, shard);
  const shards = shard === undefined ? [...Array(source.shards).keys()] : [shard];
  const prefix = trainerPrefix(source.job, point.trainer);
  const find = (number: number) => findIn(source.shard(number), point, prefix, signal);
  const found = (await mapConcurrently(shards, find, SHARDS_AT_ONCE)).flat();
  const [first] = found;
  if (first === undefined) throw await notFound(source, shards, point);
  if (found.length === 1) return first;
  const forms = found.map((each) => formatPoint({ ...point, shard: each.shard }));
  throw new PserverError(
    "BAD_VALUE",
    `point ${formatPoint(point)}: several shards have this number; expected one of ${forms.join(", ")}`,
    { expected: forms, received: formatPoint(point) },
  );
}

async function findIn(
  history: ShardHistory,
  { session, n }: UpdatePoint,
  prefix: (shard: number) => string,
  signal: AbortSignal,
): Promise<FoundRecord[]> {
  const { shard } = history;
  const ofTrainer = prefix(shard);
  for (const { generation, firstSeq, lastSeq } of await history.spans()) {
    const after = { generation, seq: firstSeq - 1 };
    for await (const batch of history.read(after, lastSeq, signal)) {
      const record = batch.find((each) => hasNumber(each, ofTrainer, session, n));
      if (record === undefined) continue;
      const { seq, timeMs } = record;
      return [{ shard, position: { generation, seq }, timeMs }];
    }
  }
  return [];
}

function hasNumber(record: TimedRecord, prefix: string, session: number, n: number): boolean {
  if (!record.subject.startsWith(prefix)) return false;
  const message = readRecordMessage(record.payload, BATCH_HEAD_BYTES_MAX);
  const head = message && readable(() => parseHead(message.fields));
  return head?.session === session && head.n === n;
}

/** What the subjects of a trainer's records in a shard begin with. */
function trainerPrefix(job: string, trainer: string): (shard: number) => string {
  const subjects = new JobSubjects(job);
  return (shard) => {
    const clock = subjects.clock(shard, trainer);
    return clock.slice(0, clock.lastIndexOf(".") + 1);
  };
}

async function notFound(
  source: HistorySource,
  shards: readonly number[],
  point: UpdatePoint,
): Promise<PserverError> {
  const spans = await mapConcurrently(shards, (shard) => source.shard(shard).spans());
  const isWhole = spans.every((of) => of[0]?.generation === 1 && of[0].firstSeq === 1);
  const text = `point ${formatPoint(point)}: no kept record has this number`;
  return new PserverError(isWhole ? "BAD_VALUE" : "HISTORY_LOST", text, {
    received: formatPoint(point),
  });
}
