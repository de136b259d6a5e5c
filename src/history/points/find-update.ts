import { mapConcurrently } from "../../actors/concurrent.ts";
import { readRecordHead } from "../../actors/fold/read-record.ts";
import { JobSubjects, PserverError } from "../../protocol/index.ts";
import { checkShard } from "../check-shard.ts";
import type { HistorySource, TimedRecord } from "../source.ts";
import { formatPoint } from "./parse-point.ts";
import type { Point } from "./point.ts";
import { type FoundRecord, searchShard, tapeIsWhole, type Wanted } from "./search-shard.ts";

/** Shards that are searched at one time. */
const SHARDS_AT_ONCE = 4;

/** A point that names an update of a trainer. */
export type UpdatePoint = Extract<Point, { kind: "update" }>;

/**
 * Finds the first record with the number of an update, in all that is kept of journals and tape; repeated
 * ones follow it.
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
  const find = (number: number) =>
    searchShard(source.shard(number), wantedOf(point, prefix(number)), false, signal);
  const searched = await mapConcurrently(shards, find, SHARDS_AT_ONCE);
  const found = searched.filter((each) => each !== undefined);
  const [first] = found;
  if (first === undefined) throw await notFound(source, shards, point, signal);
  if (found.length === 1) return first;
  const forms = found.map((each) => formatPoint({ ...point, shard: each.shard }));
  throw new PserverError(
    "BAD_VALUE",
    `point ${formatPoint(point)}: several shards have this number; expected one of ${forms.join(", ")}`,
    { expected: forms, received: formatPoint(point) },
  );
}

function wantedOf({ trainer, session, n }: UpdatePoint, prefix: string): Wanted {
  return {
    isEvent: (event) => event.trainer === trainer && event.session === session && event.n === n,
    isRecord: (record) => hasNumber(record, prefix, session, n),
  };
}

function hasNumber(record: TimedRecord, prefix: string, session: number, n: number): boolean {
  if (!record.subject.startsWith(prefix)) return false;
  const head = readRecordHead(record.payload);
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
  signal: AbortSignal,
): Promise<PserverError> {
  const wholes = await mapConcurrently(shards, async (shard) => {
    const [first] = await source.shard(shard).spans();
    const isWhole = first?.generation === 1 && first.firstSeq === 1;
    return isWhole || (await tapeIsWhole(source.shard(shard), signal));
  });
  const isWhole = wholes.every((each) => each);
  const text = `point ${formatPoint(point)}: no kept record has this number`;
  return new PserverError(isWhole ? "BAD_VALUE" : "HISTORY_LOST", text, {
    received: formatPoint(point),
  });
}
