import type { Position } from "../../protocol/index.ts";
import type { JournalSpan, KeptSnapshot } from "../source.ts";

/** What files hold of one shard. */
export interface Held {
  readonly spans: readonly JournalSpan[];
  readonly snapshots: readonly KeptSnapshot[];
  /** Sequence of the last record of a span up to `timeMs`; `firstSeq` − 1 if all are later. */
  readonly lastUpTo: (span: JournalSpan, timeMs: number) => Promise<number>;
}

/**
 * The last position at or before a time; undefined if it is before all, or among records that are missing.
 * @throws what `lastUpTo` throws.
 */
export async function heldPositionAt(held: Held, timeMs: number): Promise<Position | undefined> {
  const generations = new Set(held.spans.map(({ generation }) => generation));
  for (const { manifest } of held.snapshots) generations.add(manifest.generation);
  for (const generation of [...generations].sort((a, b) => b - a)) {
    const seqs = held.snapshots
      .filter(({ manifest }) => manifest.generation === generation)
      .filter((snapshot) => snapshot.timeMs <= timeMs)
      .map(({ manifest }) => manifest.seq);
    const spans = held.spans.filter((span) => span.generation === generation);
    const recordSeq = await lastRecord(spans, held, timeMs);
    if (recordSeq !== undefined) seqs.push(recordSeq);
    if (seqs.length > 0) return { generation, seq: Math.max(...seqs) };
    // Which of the missing records were stored before is not known.
    if (spans[0] !== undefined && spans[0].firstSeq > 1) return undefined;
  }
  return undefined;
}

/** The last record of one generation up to a time, unless records that are missing may be later. */
async function lastRecord(
  spans: readonly JournalSpan[],
  { lastUpTo }: Held,
  timeMs: number,
): Promise<number | undefined> {
  for (const [i, span] of [...spans.entries()].reverse()) {
    const seq = await lastUpTo(span, timeMs);
    if (seq < span.firstSeq) continue;
    const isBeforeGap = seq === span.lastSeq && i < spans.length - 1;
    return isBeforeGap ? undefined : seq;
  }
  return undefined;
}
