import type { NotedChecksum } from "../actors/fold/journal-checksum.ts";
import { type HeadMark, notedOf } from "../actors/owner/head-mark.ts";
import { journalDamaged } from "../actors/owner/journal-gap.ts";
import { comparePositions, type Position } from "../protocol/index.ts";
import { historyLost, showPosition } from "./history-lost.ts";
import type { JournalSpan, KeptSnapshot, ShardHistory } from "./source.ts";

/** Positions of one generation that a shard can be rebuilt at: all from `firstSeq` to `lastSeq`. */
export interface Reach {
  readonly generation: number;
  readonly firstSeq: number;
  readonly lastSeq: number;
}

/** Where the rebuilding of a shard can begin: at a snapshot, or with nothing before record 1. */
export interface ReplayBase extends Position {
  /** Undefined for the empty shard. */
  readonly snapshot: KeptSnapshot | undefined;
}

/** What a source holds of a shard, listed once. */
export interface Inventory {
  readonly shard: number;
  readonly spans: readonly JournalSpan[];
  readonly snapshots: readonly KeptSnapshot[];
}

/** Lists what a source holds of a shard. @throws TIMEOUT, DENIED and the like. */
export async function takeInventory(history: ShardHistory): Promise<Inventory> {
  const { shard } = history;
  // The spans first: a snapshot listed afterwards reaches back to no less.
  const spans = await history.spans();
  return { shard, spans, snapshots: await history.snapshots() };
}

/** All places where a rebuilding can begin, by generation and sequence, ascending. */
export function basesOf({ spans, snapshots }: Inventory): ReplayBase[] {
  const bases: ReplayBase[] = snapshots.map((snapshot) => {
    const { generation, seq } = snapshot.manifest;
    return { generation, seq, snapshot };
  });
  const isWhole = spans.some(({ generation, firstSeq }) => generation === 1 && firstSeq === 1);
  if (isWhole) bases.unshift({ generation: 1, seq: 0, snapshot: undefined });
  return bases.sort(comparePositions);
}

/**
 * What was noted of the journal of a generation when it was folded before, ascending: by its snapshots, and by
 * the mark of its owners.
 */
export function notedIn(
  { snapshots }: Inventory,
  mark: HeadMark | undefined,
  generation: number,
): NotedChecksum[] {
  const own = snapshots.filter(({ manifest }) => manifest.generation === generation);
  const noted = own.map(({ manifest: { seq, checksum } }) => ({ seq, checksum }));
  return [...noted, ...notedOf(mark, generation)].sort((a, b) => a.seq - b.seq);
}

/** The span that holds the record at a position; undefined if none does. */
export function spanWith(
  spans: readonly JournalSpan[],
  { generation, seq }: Position,
): JournalSpan | undefined {
  return spans.find(
    (each) => each.generation === generation && each.firstSeq <= seq && seq <= each.lastSeq,
  );
}

/** The last record that follows a position without a gap; that of the position if none does. */
export function connectedUpTo({ spans }: Inventory, { generation, seq }: Position): number {
  return spanWith(spans, { generation, seq: seq + 1 })?.lastSeq ?? seq;
}

/** What can be rebuilt, by generation and sequence, ascending; parts do not overlap. */
export function reachOf(inventory: Inventory): Reach[] {
  const parts: Reach[] = [];
  for (const { generation, seq } of basesOf(inventory)) {
    const last = parts.at(-1);
    if (last?.generation === generation && seq <= last.lastSeq) continue;
    const lastSeq = connectedUpTo(inventory, { generation, seq });
    parts.push({ generation, firstSeq: seq, lastSeq });
  }
  return parts;
}

/**
 * The places from which a position can be rebuilt, the nearest first.
 * @throws HISTORY_LOST if all are later, JOURNAL_DAMAGED if a record between is missing.
 */
export function basesBefore(inventory: Inventory, to: Position): [ReplayBase, ...ReplayBase[]] {
  const { shard, spans } = inventory;
  const leadsTo = ({ generation, seq }: ReplayBase): boolean => {
    if (generation !== to.generation || seq > to.seq) return false;
    const holds = (span: JournalSpan): boolean =>
      span.generation === generation && span.firstSeq <= seq + 1 && to.seq <= span.lastSeq;
    return seq === to.seq || spans.some(holds);
  };
  const [nearest, ...others] = basesOf(inventory).filter(leadsTo).reverse();
  if (nearest !== undefined) return [nearest, ...others];
  const gapSeq = gapBefore(inventory, to);
  if (gapSeq !== undefined) throw journalDamaged(shard, gapSeq, undefined);
  throw historyLost(shard, showPosition(shard, to), oldestOf(inventory));
}

/** The first record that is missing between the places where a rebuilding can begin and a position. */
function gapBefore(inventory: Inventory, to: Position): number | undefined {
  const before = reachOf(inventory).findLast(
    ({ generation, firstSeq }) => generation === to.generation && firstSeq <= to.seq,
  );
  return before && before.lastSeq + 1;
}

/** The oldest position that can be rebuilt; undefined if none can. */
export function oldestOf(inventory: Inventory): Position | undefined {
  const first = reachOf(inventory)[0];
  return first && { generation: first.generation, seq: first.firstSeq };
}

/** The newest position that is kept, whether or not it can be rebuilt; undefined if nothing is. */
export function newestOf({ spans, snapshots }: Inventory): Position | undefined {
  const ends = [
    ...spans.map(({ generation, lastSeq: seq }) => ({ generation, seq })),
    ...snapshots.map(({ manifest: { generation, seq } }) => ({ generation, seq })),
  ];
  return ends.sort((a, b) => b.generation - a.generation || b.seq - a.seq)[0];
}

/** The oldest position from which records lead to another one of its generation; itself if none do. */
export function startOf(inventory: Inventory, to: Position): Position {
  const part = reachOf(inventory).find(
    ({ generation, firstSeq, lastSeq }) =>
      generation === to.generation && firstSeq <= to.seq && to.seq <= lastSeq,
  );
  return part === undefined ? to : { generation: to.generation, seq: part.firstSeq };
}
