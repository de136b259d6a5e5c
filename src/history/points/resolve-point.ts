import { mapConcurrently } from "../../actors/concurrent.ts";
import { type Position, PserverError } from "../../protocol/index.ts";
import { checkShard } from "../check-shard.ts";
import { historyLost, showPosition } from "../history-lost.ts";
import { type Inventory, newestOf, oldestOf, takeInventory } from "../reach.ts";
import type { HistorySource, ShardHistory } from "../source.ts";
import { findMark } from "./find-mark.ts";
import { findStep } from "./find-step.ts";
import { findUpdate } from "./find-update.ts";
import { formatTime } from "./parse-point.ts";
import type { Cut, Point, ResolvedPoint } from "./point.ts";
import { timeOfPosition } from "./record-time.ts";
import type { FoundRecord } from "./search-shard.ts";

/** Shards that are folded at one time to find a step. */
const SHARDS_AT_ONCE = 4;

/** The first record of a shard. */
const FIRST: Position = { generation: 1, seq: 1 };

/** A shard of a source, with what the source holds of it. */
interface ListedShard {
  readonly history: ShardHistory;
  readonly inventory: Inventory;
}

/**
 * Finds the cut that a point means. A time cuts each shard after the records that the broker stored up to
 * it; a position cuts its own shard right after that record, and the others at the record's time.
 * @throws HISTORY_LOST if the point lies before what is kept, BAD_VALUE if it lies after it or names a
 * shard or generation that the job does not have; what the source throws; the reason of `signal`.
 */
export async function resolvePoint(
  source: HistorySource,
  point: Point,
  signal: AbortSignal,
): Promise<ResolvedPoint> {
  if (point.kind === "update" || point.kind === "mark") {
    return await resolveFound(source, point, await findPointed(source, point, signal), signal);
  }
  const shards = await listShards(source);
  switch (point.kind) {
    case "now":
      return {
        point,
        cut: shards.map(({ inventory }) => endOf(inventory, newestOf)),
        timeMs: undefined,
      };
    case "start":
      return {
        point,
        cut: shards.map(({ inventory }) => endOf(inventory, oldestOf)),
        timeMs: undefined,
      };
    case "time":
      return { point, cut: await timeCut(shards, point.timeMs, signal), timeMs: point.timeMs };
    case "position":
      return await atPosition(source, shards, point, signal);
    case "step":
      return { point, cut: await stepCut(source, shards, point.step, signal), timeMs: undefined };
  }
}

async function listShards(source: HistorySource): Promise<ListedShard[]> {
  const numbers = Array.from({ length: source.shards }, (_, shard) => shard);
  return await mapConcurrently(numbers, async (shard) => {
    const history = source.shard(shard);
    return { history, inventory: await takeInventory(history) };
  });
}

function endOf(
  inventory: Inventory,
  end: (inventory: Inventory) => Position | undefined,
): Position {
  const position = end(inventory);
  if (position !== undefined) return position;
  throw historyLost(inventory.shard, "any point", undefined);
}

/** @throws HISTORY_LOST if nothing had been stored in any shard, or what had been is trimmed. */
async function timeCut(
  shards: readonly ListedShard[],
  timeMs: number,
  signal: AbortSignal,
): Promise<Cut> {
  const cut = await mapConcurrently(shards, (shard) => positionAt(shard, timeMs, signal));
  if (cut.some(({ generation, seq }) => generation > 1 || seq > 0)) return cut;
  const firsts = await mapConcurrently(shards, ({ history, inventory }) =>
    timeOfPosition(history, inventory, FIRST, signal),
  );
  const startMs = Math.min(...firsts.filter((first) => first !== undefined));
  throw historyLost(shards[0]?.inventory.shard ?? 0, formatTime(timeMs), FIRST, startMs);
}

async function positionAt(
  { history, inventory }: ListedShard,
  timeMs: number,
  signal: AbortSignal,
): Promise<Position> {
  const position = await history.positionAt(timeMs);
  if (position !== undefined) return position;
  const oldest = oldestOf(inventory);
  // Nothing of the shard is missing, so it was empty then.
  if (oldest?.generation === 1 && oldest.seq === 0) return oldest;
  throw historyLost(
    inventory.shard,
    formatTime(timeMs),
    oldest,
    oldest && (await timeOfPosition(history, inventory, oldest, signal)),
  );
}

async function atPosition(
  source: HistorySource,
  shards: readonly ListedShard[],
  point: Extract<Point, { kind: "position" }>,
  signal: AbortSignal,
): Promise<ResolvedPoint> {
  const { shard } = point;
  checkShard(source, shard);
  const listed = shards[shard];
  if (listed === undefined) throw new PserverError("INTERNAL", `no shard ${shard}`);
  const position = checkPosition(listed.inventory, point);
  const timeMs = await timeOfPosition(listed.history, listed.inventory, position, signal);
  if (timeMs === undefined) {
    throw historyLost(shard, showPosition(shard, position), oldestOf(listed.inventory));
  }
  return { point, cut: await cutAt(shards, shard, position, timeMs, signal), timeMs };
}

/** A point that names the record of a trainer, which has to be searched for. */
export type SearchedPoint = Extract<Point, { kind: "update" | "mark" }>;

/** The record that a point names. @throws as `findUpdate` and `findMark`. */
export async function findPointed(
  source: HistorySource,
  point: SearchedPoint,
  signal: AbortSignal,
): Promise<FoundRecord> {
  return point.kind === "update"
    ? await findUpdate(source, point, signal)
    : await findMark(source, point.name, signal);
}

/**
 * The cut of a record that was found: its own shard right after it, the others at its time.
 * @throws HISTORY_LOST if another shard's history does not reach back to it; what the source throws.
 */
export async function resolveFound(
  source: HistorySource,
  point: SearchedPoint,
  { shard, position, timeMs }: FoundRecord,
  signal: AbortSignal,
): Promise<ResolvedPoint> {
  const shards = await listShards(source);
  return { point, cut: await cutAt(shards, shard, position, timeMs, signal), timeMs };
}

/** A cut of one shard at a position, and of the others at its time. */
async function cutAt(
  shards: readonly ListedShard[],
  shard: number,
  position: Position,
  timeMs: number,
  signal: AbortSignal,
): Promise<Cut> {
  return await mapConcurrently(shards, (other) =>
    other.inventory.shard === shard ? Promise.resolve(position) : positionAt(other, timeMs, signal),
  );
}

/** @throws UNSUPPORTED in a job whose trainers do not keep step. */
async function stepCut(
  source: HistorySource,
  shards: readonly ListedShard[],
  step: number,
  signal: AbortSignal,
): Promise<Cut> {
  const { job, synchronization } = source;
  if (synchronization.mode === "async") {
    const text = `point step:${step}: the trainers of job ${job} do not keep step: it is async`;
    throw new PserverError("UNSUPPORTED", text, { job });
  }
  return await mapConcurrently(
    shards,
    ({ history, inventory }) => findStep(history, inventory, job, step, signal),
    SHARDS_AT_ONCE,
  );
}

/** The position with its generation. @throws BAD_VALUE if no record of the shard has had it yet. */
function checkPosition(
  inventory: Inventory,
  { shard, seq, generation }: Extract<Point, { kind: "position" }>,
): Position {
  const newest = endOf(inventory, newestOf);
  const found = { generation: generation ?? newest.generation, seq };
  const last = inventory.spans.findLast((span) => span.generation === found.generation)?.lastSeq;
  const isLater = found.generation > newest.generation || seq > (last ?? newest.seq);
  if (!isLater) return found;
  const at = showPosition(shard, found);
  throw new PserverError(
    "BAD_VALUE",
    `point ${at}: expected a position up to ${showPosition(shard, newest)}; received a later one`,
    { shard, expected: newest, received: found },
  );
}
