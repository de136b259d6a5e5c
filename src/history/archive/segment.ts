import { stat } from "node:fs/promises";
import { journalDamaged } from "../../actors/owner/journal-gap.ts";
import { ensureError, type PserverError } from "../../protocol/index.ts";
import { io } from "../../system/file-errors.ts";
import { PREAMBLE_BYTES } from "../container/container-format.ts";
import { ContainerReader } from "../container/container-reader.ts";
import type { RecordFrame } from "../container/frames.ts";
import { RunningTotals } from "../container/running-totals.ts";
import type { TimedRecord } from "../source.ts";
import type { ArchiveFacts } from "./archive-facts.ts";
import type { SegmentFile } from "./archive-layout.ts";
import { type FrameOf, SegmentCheck, type SegmentKind } from "./segment-check.ts";

/** What is in a segment that is being written. */
export interface SegmentTail<Kind extends SegmentKind> {
  /** `firstSeq` − 1 if there is nothing. */
  readonly lastSeq: number;
  /** Whether all of it was written. */
  readonly isEnded: boolean;
  /** Of the whole frames. */
  readonly sums: RunningTotals;
  /** The last frame before the end. */
  readonly last: FrameOf<Kind> | undefined;
  /** Why it cannot be read further, if not because it ends within a frame. */
  readonly damage: PserverError | undefined;
}

/** The records of a segment of a journal; as {@link readFrames}. */
export async function* readSegment(
  segment: SegmentFile,
  shard: number,
  facts: ArchiveFacts,
): AsyncGenerator<readonly TimedRecord[]> {
  for await (const batch of readFrames("record", segment, shard, facts)) {
    yield batch.map(toTimedRecord);
  }
}

/**
 * Reads what a segment holds, some frames at a time. Of one that is being written it gives the whole frames.
 * @throws BAD_ARCHIVE, BAD_VERSION, IO.
 */
export async function* readFrames<Kind extends SegmentKind>(
  kind: Kind,
  segment: SegmentFile,
  shard: number,
  { archive }: ArchiveFacts,
): AsyncGenerator<readonly FrameOf<Kind>[]> {
  const isOpen = segment.lastSeq === undefined;
  if (isOpen && (await isNotBegun(segment.path))) return;
  await using reader = await ContainerReader.open(segment.path);
  const check = new SegmentCheck(kind, segment, shard, archive);
  for await (const batch of isOpen ? reader.wholeFrames() : reader.frames()) {
    const contents = check.contents(batch);
    if (contents.length > 0) yield contents;
  }
  check.checkLast();
}

/**
 * What is in a segment that is being written, or in another one, up to the first damage.
 * @throws BAD_ARCHIVE if the preamble is damaged, BAD_VERSION, IO.
 */
export async function readTail<Kind extends SegmentKind>(
  kind: Kind,
  segment: SegmentFile,
  shard: number,
  { archive }: ArchiveFacts,
): Promise<SegmentTail<Kind>> {
  const sums = new RunningTotals();
  const check = new SegmentCheck(kind, segment, shard, archive);
  let [isEnded, last, damage]: [boolean, FrameOf<Kind> | undefined, PserverError | undefined] = [
    false,
    undefined,
    undefined,
  ];
  if (!(await isNotBegun(segment.path))) {
    await using reader = await ContainerReader.open(segment.path);
    try {
      for await (const batch of reader.wholeFrames(sums)) {
        last = check.contents(batch).at(-1) ?? last;
        isEnded = batch.at(-1)?.frame.kind === "end";
      }
    } catch (error) {
      damage = ensureError(error);
      if (damage.code !== "BAD_ARCHIVE") throw damage;
    }
  }
  return { lastSeq: check.lastSeq, isEnded: isEnded && damage === undefined, sums, last, damage };
}

/** Whether nothing of a file is there but perhaps a part of its preamble. */
async function isNotBegun(path: string): Promise<boolean> {
  return (await io("examine", path, stat(path))).size < PREAMBLE_BYTES;
}

/** The parts of batches after record `afterSeq` up to `toSeq`. @throws JOURNAL_DAMAGED if one is missing. */
export async function* sliceRecords(
  batches: AsyncIterable<readonly TimedRecord[]>,
  shard: number,
  afterSeq: number,
  toSeq: number,
): AsyncGenerator<readonly TimedRecord[], number> {
  let lastSeq = afterSeq;
  for await (const batch of batches) {
    const wanted = batch.filter(({ seq }) => seq > lastSeq && seq <= toSeq);
    const [first] = wanted;
    if (first === undefined) continue;
    if (first.seq !== lastSeq + 1) throw journalDamaged(shard, lastSeq + 1, first.seq);
    lastSeq = wanted.at(-1)?.seq ?? lastSeq;
    yield wanted;
    if (lastSeq >= toSeq) break;
  }
  return lastSeq;
}

/** A record as all sources give it. */
export function toTimedRecord({ seq, timeMs, subject, data }: RecordFrame): TimedRecord {
  return { seq, timeMs, subject, payload: data };
}

/** A record as a segment holds it. */
export function toRecordFrame(
  shard: number,
  generation: number,
  { seq, timeMs, subject, payload }: TimedRecord,
): RecordFrame {
  return { kind: "record", shard, generation, seq, timeMs, subject, data: payload };
}
