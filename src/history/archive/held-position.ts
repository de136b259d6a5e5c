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
    const all = held.snapshots.filter(({ manifest }) => manifest.generation === generation);
    const spans = held.spans.filter((span) => span.generation === generation);
    const seqs = all
      .filter((snapshot) => snapshot.timeMs <= timeMs)
      .map(({ manifest }) => manifest.seq);
    const recordSeq = await lastRecord(spans, held, timeMs);
    if (recordSeq !== undefined) seqs.push(recordSeq);
    const seq = Math.max(...seqs);
    const laterSeqs = [
      ...spans.map((span) => span.firstSeq),
      ...all.map(({ manifest }) => manifest.seq),
    ];
    const isFollowed = spans.some((span) => span.firstSeq <= seq + 1 && seq < span.lastSeq);
    // Which of the records that are missing were stored before is not known.
    if (seqs.length > 0 && !isFollowed && laterSeqs.some((later) => later > seq)) return undefined;
    if (seqs.length > 0) return { generation, seq };
    if (spans[0] !== undefined && spans[0].firstSeq > 1) return undefined;
  }
  return undefined;
}

/** The last record of one generation up to a time; undefined if all are later. */
async function lastRecord(
  spans: readonly JournalSpan[],
  { lastUpTo }: Held,
  timeMs: number,
): Promise<number | undefined> {
  for (const span of [...spans].reverse()) {
    const seq = await lastUpTo(span, timeMs);
    if (seq >= span.firstSeq) return seq;
  }
  return undefined;
}
