import type { Block } from "../actors/fold/block-actor.ts";
import { measure, type Statistics } from "../actors/fold/statistics.ts";
import { foldDescribed, type UpdateEvent } from "../actors/journal/describe-record.ts";
import {
  type Dtype,
  JobSubjects,
  type ParameterConfig,
  type Position,
  PserverError,
} from "../protocol/index.ts";
import { showPosition } from "../protocol/messages/position.ts";
import type { Point } from "./points.ts";
import { replayShard } from "./replay/replay-shard.ts";
import { findUpdate } from "./resolve-point.ts";
import {
  checkShard,
  type HistorySource,
  historyLost,
  recordAt,
  type TimedRecord,
} from "./source.ts";

/** A block before and after a record that named it. */
export interface ExaminedBlock {
  readonly parameter: string;
  readonly index: number;
  readonly dtype: Dtype;
  readonly shape: readonly number[];
  /** First element of the block in the parameter. */
  readonly start: number;
  readonly count: number;
  readonly epoch: number;
  readonly config: ParameterConfig;
  /** Its values before the record; undefined if it did not exist. */
  readonly before: Statistics | undefined;
  /** Its values right after the record and, in a `sync` job, after the step that the record has closed. */
  readonly after: Statistics;
  /** Elements whose bits the record has changed. */
  readonly changedElements: number;
}

/** Everything about one record. */
export interface ExaminedRecord {
  readonly record: TimedRecord;
  /** Its updates: one, or one for each entry of a batch. */
  readonly events: readonly UpdateEvent[];
  /** The blocks that its updates name and that exist after it, in the order of the updates. */
  readonly blocks: readonly ExaminedBlock[];
}

/**
 * Rebuilds the shard right before a record, folds the record, and reports what it did.
 * @throws HISTORY_LOST if nothing from which the shard can be rebuilt is kept; as `replayShard`.
 */
export async function examineRecord(
  source: HistorySource,
  { shard: number, position }: LocatedRecord,
  signal: AbortSignal,
): Promise<ExaminedRecord> {
  const { generation, seq } = position;
  const history = source.shard(number);
  const record = await recordAt(history, position, signal);
  if (record === undefined) throw historyLost(number, showPosition(number, position), undefined);
  const subjects = new JobSubjects(source.job);
  const shard = await replayShard(history, { generation, seq: seq - 1 }, { subjects, signal });
  const held = new Map<Block, Uint8Array>();
  for (const block of shard.blocks()) held.set(block, block.values().slice());
  const { events } = foldDescribed(shard, record, { shard: number, generation });
  const blocks: ExaminedBlock[] = [];
  for (const { block: change } of events) {
    const block = change && shard.block(change.parameter, change.index);
    if (block === undefined) continue;
    const before = [...held].find(([each]) => isSame(each, block));
    blocks.push(examine(shard.memory, block, before?.[1]));
  }
  return { record, events, blocks };
}

function isSame(a: Block, b: Block): boolean {
  return a.parameter === b.parameter && a.index === b.index;
}

function examine(
  memory: Parameters<typeof measure>[0],
  block: Block,
  earlier: Uint8Array | undefined,
): ExaminedBlock {
  const { parameter, index, dtype, shape, start, count, epoch, config } = block;
  const later = block.values().slice();
  const elementBytes = later.length / count;
  const isOfSize = earlier?.length === later.length;
  let changedElements = isOfSize ? 0 : count;
  for (let at = 0; isOfSize && at < later.length; at += elementBytes) {
    const [one, other] = [earlier, later].map((bytes) => bytes.subarray(at, at + elementBytes));
    if (Buffer.compare(one as Uint8Array, other as Uint8Array) !== 0) changedElements += 1;
  }
  return {
    ...{ parameter, index, dtype, shape, start, count, epoch, config, changedElements },
    before: earlier && measure(memory, { dtype, bytes: earlier }),
    after: measure(memory, { dtype, bytes: later }),
  };
}

/** A point that names one record. */
export type RecordPoint = Extract<Point, { kind: "position" | "update" }>;

/** A record, by its shard and position. */
export interface LocatedRecord {
  readonly shard: number;
  readonly position: Position;
}

/**
 * Finds the record that a point names. The record of an update is searched for in all that is kept; if it was
 * repeated, its first copy is found.
 * @throws BAD_VALUE for a position that is not kept; as {@link findUpdate}; errors of the source; the reason of the
 * signal.
 */
export async function findRecord(
  source: HistorySource,
  point: RecordPoint,
  signal: AbortSignal,
): Promise<LocatedRecord> {
  if (point.kind === "position") return await keptRecord(source, point);
  return await findUpdate(source, point, signal);
}

/** Returns the record at a position. @throws BAD_VALUE if the record is not kept. */
async function keptRecord(
  source: HistorySource,
  { shard, seq, generation }: Extract<RecordPoint, { kind: "position" }>,
): Promise<LocatedRecord> {
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
