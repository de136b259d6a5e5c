import { stat } from "node:fs/promises";
import { journalDamaged } from "../../actors/owner/journal-gap.ts";
import { ensureError, type PserverError } from "../../protocol/index.ts";
import { io } from "../../system/file-errors.ts";
import { badArchive } from "../container/bad-archive.ts";
import { PREAMBLE_BYTES } from "../container/container-format.ts";
import { ContainerReader, type PlacedFrame } from "../container/container-reader.ts";
import type { RecordFrame } from "../container/frames.ts";
import { RunningTotals } from "../container/running-totals.ts";
import type { TimedRecord } from "../source.ts";
import { type ArchiveFacts, requireJob } from "./archive-facts.ts";
import type { SegmentFile } from "./archive-layout.ts";

/** What is in a segment that is being written. */
export interface SegmentTail {
  /** `firstSeq` − 1 if there is no record. */
  readonly lastSeq: number;
  /** Whether all of it was written. */
  readonly isEnded: boolean;
  /** Of the whole frames. */
  readonly sums: RunningTotals;
  /** Why it cannot be read further, if not because it ends within a frame. */
  readonly damage: PserverError | undefined;
}

/** Checks that the frames of a segment are what its name says, one after the other. */
class SegmentCheck {
  readonly #segment: SegmentFile;
  readonly #shard: number;
  readonly #archive: string;
  #nextSeq: number;
  #isFirst = true;

  constructor(segment: SegmentFile, shard: number, archive: string) {
    this.#segment = segment;
    this.#shard = shard;
    this.#archive = archive;
    this.#nextSeq = segment.firstSeq;
  }

  /** Sequence of the last record. */
  get lastSeq(): number {
    return this.#nextSeq - 1;
  }

  /** The records among frames. @throws BAD_ARCHIVE. */
  records(batch: readonly PlacedFrame[]): RecordFrame[] {
    const records: RecordFrame[] = [];
    for (const placed of batch) {
      if (this.#isFirst) this.#checkFirst(placed);
      else if (placed.frame.kind !== "end") records.push(this.#checkRecord(placed));
      this.#isFirst = false;
    }
    return records;
  }

  /** @throws BAD_ARCHIVE unless the last record is the one that the name says. */
  checkLast(): void {
    const { path, lastSeq } = this.#segment;
    if (lastSeq === undefined || lastSeq === this.lastSeq) return;
    throw badArchive(
      path,
      0,
      `expected records up to ${lastSeq}; it has them up to ${this.lastSeq}`,
    );
  }

  #checkFirst({ frame, offset }: PlacedFrame): void {
    const { path } = this.#segment;
    const { archive } = requireJob(path, offset, frame);
    if (archive === this.#archive) return;
    throw badArchive(path, offset, "the file is of another archive");
  }

  #checkRecord({ frame, offset }: PlacedFrame): RecordFrame {
    const { path, generation } = this.#segment;
    const expected = `record ${this.#nextSeq} of shard ${this.#shard}, generation ${generation}`;
    if (frame.kind !== "record") {
      throw badArchive(path, offset, `expected ${expected}; received a ${frame.kind}`);
    }
    const received = `record ${frame.seq} of shard ${frame.shard}, generation ${frame.generation}`;
    if (received !== expected) {
      throw badArchive(path, offset, `expected ${expected}; received ${received}`);
    }
    this.#nextSeq++;
    return frame;
  }
}

/**
 * Reads the records of a segment, some at a time. Of one that is being written it gives the whole records.
 * @throws BAD_ARCHIVE, BAD_VERSION, IO.
 */
export async function* readSegment(
  segment: SegmentFile,
  shard: number,
  { archive }: ArchiveFacts,
): AsyncGenerator<readonly TimedRecord[]> {
  const isOpen = segment.lastSeq === undefined;
  if (isOpen && (await isNotBegun(segment.path))) return;
  await using reader = await ContainerReader.open(segment.path);
  const check = new SegmentCheck(segment, shard, archive);
  for await (const batch of isOpen ? reader.wholeFrames() : reader.frames()) {
    const records = check.records(batch).map(toTimedRecord);
    if (records.length > 0) yield records;
  }
  check.checkLast();
}

/**
 * What is in a segment that is being written, up to the first damage.
 * @throws BAD_ARCHIVE if the preamble is damaged, BAD_VERSION, IO.
 */
export async function readTail(
  segment: SegmentFile,
  shard: number,
  { archive }: ArchiveFacts,
): Promise<SegmentTail> {
  const sums = new RunningTotals();
  const check = new SegmentCheck(segment, shard, archive);
  const tail = { isEnded: false, sums, damage: undefined };
  if (await isNotBegun(segment.path)) return { ...tail, lastSeq: check.lastSeq };
  await using reader = await ContainerReader.open(segment.path);
  let isEnded = false;
  try {
    for await (const batch of reader.wholeFrames(sums)) {
      check.records(batch);
      isEnded = batch.at(-1)?.frame.kind === "end";
    }
  } catch (error) {
    const damage = ensureError(error);
    if (damage.code !== "BAD_ARCHIVE") throw damage;
    return { ...tail, lastSeq: check.lastSeq, damage };
  }
  return { ...tail, lastSeq: check.lastSeq, isEnded };
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
