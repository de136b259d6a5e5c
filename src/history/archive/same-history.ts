import { PserverError } from "../../protocol/index.ts";
import { type Inventory, takeInventory } from "../reach.ts";
import { recordAt } from "../record-at.ts";
import type { ShardHistory, TimedRecord } from "../source.ts";

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
  const [archived, live] = await Promise.all([takeInventory(archive), takeInventory(broker)]);
  const { shard } = archive;
  for (const generation of generationsOf(archived)) {
    const [own, other] = [createdOf(archived, generation), createdOf(live, generation)];
    if (own !== undefined && other !== undefined && own !== other) {
      const what = `the journal of shard ${shard}, generation ${generation}`;
      throw otherLife(path, `${what}, was created at ${own}; in the broker it was at ${other}`);
    }
    const seq = lastInBoth(archived, live, generation);
    if (seq === undefined) continue;
    const [ours, theirs] = await Promise.all([
      recordAt(archive, { generation, seq }, signal),
      recordAt(broker, { generation, seq }, signal),
    ]);
    if (ours === undefined || theirs === undefined || isSame(ours, theirs)) continue;
    throw otherLife(path, `record ${seq} of shard ${shard} is another than in the broker`);
  }
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

function lastInBoth(a: Inventory, b: Inventory, generation: number): number | undefined {
  const seqs = a.spans.flatMap((ours) =>
    b.spans.flatMap((theirs) => {
      if (ours.generation !== generation || theirs.generation !== generation) return [];
      const seq = Math.min(ours.lastSeq, theirs.lastSeq);
      return seq >= Math.max(ours.firstSeq, theirs.firstSeq, 1) ? [seq] : [];
    }),
  );
  return seqs.length === 0 ? undefined : Math.max(...seqs);
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
