import { ensureError, type Position, PserverError } from "../../protocol/index.ts";
import { type Inventory, takeInventory } from "../reach.ts";
import { recordAt } from "../record-at.ts";
import type { JournalSpan, ShardHistory, TimedRecord } from "../source.ts";

/**
 * Passes unless two histories of a shard contradict each other: where both hold records of a generation,
 * the last one that both hold is the same, and so is the journal that their snapshots were made of.
 * @throws BAD_ARCHIVE, which names the archive by `path`; what the sides throw.
 */
export async function checkSameHistory(
  path: string,
  archive: ShardHistory,
  broker: ShardHistory,
  signal: AbortSignal,
): Promise<void> {
  const range = await contradiction(path, archive, broker, signal);
  if (range === undefined) return;
  throw otherLife(
    path,
    `record ${range.lastSeq} of shard ${archive.shard} is another than in the broker`,
  );
}

/**
 * Records that both histories of a shard hold, of which the last one differs; undefined if there are none.
 * @throws BAD_ARCHIVE if their snapshots were made of journals created at different times; what the sides
 * throw.
 */
export async function contradiction(
  path: string,
  archive: ShardHistory,
  broker: ShardHistory,
  signal: AbortSignal,
): Promise<JournalSpan | undefined> {
  const [archived, live] = await Promise.all([takeInventory(archive), takeInventory(broker)]);
  const { shard } = archive;
  for (const generation of generationsOf(archived)) {
    const [own, other] = [createdOf(archived, generation), createdOf(live, generation)];
    if (own !== undefined && other !== undefined && own !== other) {
      const what = `the journal of shard ${shard}, generation ${generation}`;
      throw otherLife(path, `${what}, was created at ${own}; in the broker it was at ${other}`);
    }
    const range = heldByBoth(archived, live, generation);
    if (range === undefined) continue;
    const at = { generation, seq: range.lastSeq };
    if (!(await areSameAt(archive, broker, at, signal))) return range;
  }
  return undefined;
}

/**
 * The first record of a range that differs, where the last one does: a broker that has cut its journal off
 * gives all later numbers to other records. A record that cannot be read counts as one that differs.
 */
export async function firstDifference(
  archive: ShardHistory,
  broker: ShardHistory,
  { generation, firstSeq, lastSeq }: JournalSpan,
  signal: AbortSignal,
): Promise<number> {
  let [low, high] = [firstSeq, lastSeq];
  while (low < high) {
    const seq = Math.floor((low + high) / 2);
    if (await areReadablyTheSame(archive, broker, { generation, seq }, signal)) low = seq + 1;
    else high = seq;
  }
  return low;
}

async function areReadablyTheSame(
  archive: ShardHistory,
  broker: ShardHistory,
  at: Position,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    return await areSameAt(archive, broker, at, signal);
  } catch (error) {
    if (ensureError(error).code !== "JOURNAL_DAMAGED") throw error;
    return false;
  }
}

/** Whether the records at a position are the same; so if one of the two was trimmed meanwhile. */
async function areSameAt(
  archive: ShardHistory,
  broker: ShardHistory,
  at: Position,
  signal: AbortSignal,
): Promise<boolean> {
  const [ours, theirs] = await Promise.all([
    recordAt(archive, at, signal),
    recordAt(broker, at, signal),
  ]);
  return ours === undefined || theirs === undefined || isSame(ours, theirs);
}

function generationsOf({ spans, snapshots }: Inventory): Set<number> {
  const ofSnapshots = snapshots.map(({ manifest }) => manifest.generation);
  return new Set([...spans.map(({ generation }) => generation), ...ofSnapshots]);
}

/** When the journal of a generation was created, as snapshots tell; they may not know it at first. */
function createdOf({ snapshots }: Inventory, generation: number): string | undefined {
  const newest = snapshots.findLast(
    ({ manifest }) => manifest.generation === generation && manifest.created !== "",
  );
  return newest?.manifest.created;
}

/** The latest records of a generation that both hold. */
function heldByBoth(a: Inventory, b: Inventory, generation: number): JournalSpan | undefined {
  const common = a.spans.flatMap((ours) =>
    b.spans.flatMap((theirs) => {
      if (ours.generation !== generation || theirs.generation !== generation) return [];
      const firstSeq = Math.max(ours.firstSeq, theirs.firstSeq, 1);
      const lastSeq = Math.min(ours.lastSeq, theirs.lastSeq);
      return lastSeq < firstSeq ? [] : [{ generation, firstSeq, lastSeq }];
    }),
  );
  return common.sort((one, other) => other.lastSeq - one.lastSeq)[0];
}

function isSame(a: TimedRecord, b: TimedRecord): boolean {
  const isSamePlace = a.seq === b.seq && a.subject === b.subject && a.timeMs === b.timeMs;
  return isSamePlace && Buffer.compare(a.payload, b.payload) === 0;
}

/** The BAD_ARCHIVE for an archive that contradicts the broker. */
export function otherLife(path: string, problem: string): PserverError {
  const text = `${path}: this is the archive of another life of the job: ${problem}`;
  return new PserverError("BAD_ARCHIVE", text, { path });
}
