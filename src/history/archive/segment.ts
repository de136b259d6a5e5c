import { type FileHandle, open, rename, rm, stat } from "node:fs/promises";
import { journalDamaged } from "../../actors/journal/journal-check.ts";
import { FILE_MODES, makeDirectories, syncDirectory } from "../../model-files/atomic-write.ts";
import { ensureError, type PserverError } from "../../protocol/index.ts";
import { io } from "../../system/file-errors.ts";
import type { JournalSpan, TimedRecord } from "../source.ts";
import {
  type ArchiveFacts,
  jobFrame,
  openSegmentPath,
  requireJob,
  type SegmentFile,
  segmentPath,
} from "./archive-layout.ts";
import {
  badArchive,
  ContainerReader,
  ContainerWriter,
  type PlacedFrame,
  PREAMBLE_BYTES,
  RunningTotals,
} from "./container.ts";
import type { Frame, RecordFrame, TapeFrame } from "./frames.ts";

/** Joins spans that continue or cover each other; returns them by generation and record, ascending. */
export function joinSpans(spans: readonly JournalSpan[]): JournalSpan[] {
  const sorted = [...spans].sort((a, b) => a.generation - b.generation || a.firstSeq - b.firstSeq);
  const joined: JournalSpan[] = [];
  for (const { generation, firstSeq, lastSeq } of sorted) {
    const last = joined.at(-1);
    if (last?.generation === generation && firstSeq <= last.lastSeq + 1) {
      joined[joined.length - 1] = { ...last, lastSeq: Math.max(last.lastSeq, lastSeq) };
    } else {
      joined.push({ generation, firstSeq, lastSeq });
    }
  }
  return joined;
}

/** Returns the records that spans lack between two that they have, and before the first of a first generation. */
export function gapsBetween(spans: readonly JournalSpan[]): JournalSpan[] {
  const gaps: JournalSpan[] = [];
  for (const [i, { generation, firstSeq }] of spans.entries()) {
    const before = spans[i - 1];
    const nextSeq = before?.generation === generation ? before.lastSeq + 1 : 1;
    if (firstSeq > nextSeq) gaps.push({ generation, firstSeq: nextSeq, lastSeq: firstSeq - 1 });
  }
  return gaps;
}

/** Returns what ranges have apart from spans, which are in order; joined, by generation and record, ascending. */
export function withoutSpans(
  ranges: readonly JournalSpan[],
  spans: readonly JournalSpan[],
): JournalSpan[] {
  return joinSpans(ranges.filter(({ firstSeq, lastSeq }) => firstSeq <= lastSeq)).flatMap(
    (range) => {
      const rest: JournalSpan[] = [];
      let firstSeq = range.firstSeq;
      for (const span of spans) {
        if (span.generation !== range.generation || span.lastSeq < firstSeq) continue;
        if (span.firstSeq > range.lastSeq) break;
        if (span.firstSeq > firstSeq) rest.push({ ...range, firstSeq, lastSeq: span.firstSeq - 1 });
        firstSeq = span.lastSeq + 1;
      }
      if (firstSeq <= range.lastSeq) rest.push({ ...range, firstSeq });
      return rest;
    },
  );
}

/** A frame of a segment: a record of a journal, or a message of a tape. */
export type SegmentFrame = RecordFrame | TapeFrame;

/** Kind of a segment's frames. */
export type SegmentKind = SegmentFrame["kind"];

/** The frames of one kind of segment. */
export type FrameOf<Kind extends SegmentKind> = Extract<SegmentFrame, { readonly kind: Kind }>;

/** Place to which a frame of a segment belongs. */
export interface SegmentPlace {
  readonly shard: number;
  /** Generation; 0 in a tape, which has no generations. */
  readonly generation: number;
  /** Sequence of a record; of a message of a tape, its number in the archive. */
  readonly seq: number;
}

/** Returns the place to which a frame of a segment belongs. */
export function placeOf(frame: SegmentFrame): SegmentPlace {
  const { shard } = frame;
  return frame.kind === "tape"
    ? { shard, generation: TAPE_GENERATION, seq: frame.number }
    : { shard, generation: frame.generation, seq: frame.seq };
}

/** The generation in the names of a tape's segments. */
const TAPE_GENERATION = 0;

/** Checks that the frames of a segment are consecutive, and those that its name says. */
class SegmentCheck<Kind extends SegmentKind> {
  readonly #kind: Kind;
  readonly #segment: SegmentFile;
  readonly #shard: number;
  readonly #archive: string;
  #nextSeq: number;
  #isFirst = true;

  constructor(kind: Kind, segment: SegmentFile, shard: number, archive: string) {
    this.#kind = kind;
    this.#segment = segment;
    this.#shard = shard;
    this.#archive = archive;
    this.#nextSeq = segment.firstSeq;
  }

  /** Sequence of the last frame. */
  get lastSeq(): number {
    return this.#nextSeq - 1;
  }

  /** Returns the frames that the segment consists of, from a batch that was read. @throws BAD_ARCHIVE */
  contents(batch: readonly PlacedFrame[]): FrameOf<Kind>[] {
    const contents: FrameOf<Kind>[] = [];
    for (const placed of batch) {
      if (this.#isFirst) this.#checkFirst(placed);
      else if (placed.frame.kind !== "end") contents.push(this.#checkNext(placed));
      this.#isFirst = false;
    }
    return contents;
  }

  /** Checks that the last frame is the one that the name says. @throws BAD_ARCHIVE */
  checkLast(): void {
    const { path, run, lastSeq } = this.#segment;
    // One that is being written may have more by now than when it was listed.
    if (run !== undefined || lastSeq === this.lastSeq) return;
    const what = this.#kind === "tape" ? "messages" : "records";
    throw badArchive(
      path,
      0,
      `expected ${what} up to ${lastSeq}; it has them up to ${this.lastSeq}`,
    );
  }

  #checkFirst({ frame, offset }: PlacedFrame): void {
    const { path } = this.#segment;
    const { archive } = requireJob(path, offset, frame);
    if (archive === this.#archive) return;
    throw badArchive(path, offset, "the file is of another archive");
  }

  #checkNext({ frame, offset }: PlacedFrame): FrameOf<Kind> {
    const { path, generation } = this.#segment;
    const kind = this.#kind;
    const expected = describePlace(kind, { shard: this.#shard, generation, seq: this.#nextSeq });
    if (!isOfKind(frame, kind)) {
      throw badArchive(path, offset, `expected ${expected}; received a ${frame.kind}`);
    }
    const received = describePlace(kind, placeOf(frame));
    if (received !== expected) {
      throw badArchive(path, offset, `expected ${expected}; received ${received}`);
    }
    this.#nextSeq++;
    return frame;
  }
}

function isOfKind<Kind extends SegmentKind>(frame: Frame, kind: Kind): frame is FrameOf<Kind> {
  return frame.kind === kind;
}

function describePlace(kind: SegmentKind, { shard, generation, seq }: SegmentPlace): string {
  return kind === "tape"
    ? `message ${seq} of the tape of shard ${shard}`
    : `record ${seq} of shard ${shard}, generation ${generation}`;
}

/** Contents of a segment that is being written. */
export interface SegmentTail<Kind extends SegmentKind> {
  /** Last sequence; `firstSeq` − 1 if the segment is empty. */
  readonly lastSeq: number;
  /** Sums of the whole frames. */
  readonly sums: RunningTotals;
  /** The last frame before the end. */
  readonly last: FrameOf<Kind> | undefined;
  /** Why it cannot be read further; undefined if it can, or only ends within a frame. */
  readonly damage: PserverError | undefined;
}

/** Reads the records of a segment of a journal, as {@link readFrames} does. */
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
 * Reads the frames of a segment, some at a time; the whole ones if it is being written.
 * @throws BAD_ARCHIVE, BAD_VERSION, IO.
 */
export async function* readFrames<Kind extends SegmentKind>(
  kind: Kind,
  segment: SegmentFile,
  shard: number,
  { archive }: ArchiveFacts,
): AsyncGenerator<readonly FrameOf<Kind>[]> {
  const isOpen = segment.run !== undefined;
  if (isOpen && (await isNotBegun(segment.path))) return;
  await using reader = await ContainerReader.open(segment.path);
  const check = new SegmentCheck(kind, segment, shard, archive);
  for await (const batch of isOpen ? reader.wholeFrames() : reader.part(segment.offset)) {
    const contents = check.contents(batch);
    if (contents.length > 0) yield contents;
  }
  check.checkLast();
}

/**
 * Returns the contents of a segment, which may be one that is being written, up to the first damage.
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
  let [last, damage]: [FrameOf<Kind> | undefined, PserverError | undefined] = [
    undefined,
    undefined,
  ];
  if (!(await isNotBegun(segment.path))) {
    await using reader = await ContainerReader.open(segment.path);
    try {
      for await (const batch of reader.wholeFrames(sums)) {
        last = check.contents(batch).at(-1) ?? last;
      }
    } catch (error) {
      damage = ensureError(error);
      if (damage.code !== "BAD_ARCHIVE") throw damage;
    }
  }
  return { lastSeq: check.lastSeq, sums, last, damage };
}

/** Whether a file is empty, or holds a part of its preamble and nothing more. */
async function isNotBegun(path: string): Promise<boolean> {
  return (await io("examine", path, stat(path))).size < PREAMBLE_BYTES;
}

/** Cuts batches to the records after `afterSeq` up to `toSeq`. @throws JOURNAL_DAMAGED if one is missing. */
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

/** Returns a record as all sources give it. */
function toTimedRecord({ seq, timeMs, subject, data }: RecordFrame): TimedRecord {
  return { seq, timeMs, subject, payload: data };
}

/** Returns a record as a segment holds it. */
export function toRecordFrame(
  shard: number,
  generation: number,
  { seq, timeMs, subject, payload }: TimedRecord,
): RecordFrame {
  return { kind: "record", shard, generation, seq, timeMs, subject, data: payload };
}

/** Dependencies of {@link SegmentWriter}. */
export interface SegmentWriterDeps {
  /** Directory of the segments, made if it is not there. */
  readonly directory: string;
  readonly facts: ArchiveFacts;
  /** Number of the archiver's run. */
  readonly run: number;
  /** Bytes at which a segment is completed. */
  readonly segmentBytes: number;
}

/** The segment that is being written. */
interface OpenSegment {
  readonly path: string;
  readonly handle: FileHandle;
  readonly writer: ContainerWriter;
  readonly generation: number;
  readonly firstSeq: number;
  lastSeq: number;
}

/**
 * Appends the records of a journal, or the messages of a tape, to the segments of one shard. After an error it must be
 * closed; what was synced stays readable.
 */
export class SegmentWriter {
  readonly #deps: SegmentWriterDeps;
  #open: OpenSegment | undefined;
  #failed = false;
  #spans: JournalSpan[] = [];

  constructor(deps: SegmentWriterDeps) {
    this.#deps = deps;
  }

  /** Spans of the frames that were appended. */
  get spans(): readonly JournalSpan[] {
    return this.#spans;
  }

  /**
   * Appends consecutive frames of one generation. Where they do not follow those before, a new segment begins.
   * @throws DISK_FULL, IO.
   */
  async append(frames: readonly SegmentFrame[]): Promise<void> {
    await this.#orFail(async () => {
      for (const frame of frames) {
        const { generation, seq } = placeOf(frame);
        const segment = await this.#segmentFor(generation, seq);
        await segment.writer.append(frame);
        segment.lastSeq = seq;
      }
    });
    const [first, last] = [frames[0], frames.at(-1)];
    if (first === undefined || last === undefined) return;
    const [{ generation, seq: firstSeq }, { seq: lastSeq }] = [placeOf(first), placeOf(last)];
    this.#spans = joinSpans([...this.#spans, { generation, firstSeq, lastSeq }]);
  }

  /** Waits until all is on disk. @throws DISK_FULL, IO. */
  async sync(): Promise<void> {
    await this.#orFail(async () => {
      await this.#open?.writer.sync();
    });
  }

  /** Completes the segment; after an error, only cuts off the part of a frame at its end. */
  async close(): Promise<void> {
    const segment = this.#open;
    this.#open = undefined;
    if (segment === undefined) return;
    const { handle, path, writer, generation, firstSeq, lastSeq } = segment;
    try {
      if (this.#failed) {
        await handle.truncate(writer.writtenBytes).catch(() => undefined);
        return;
      }
      await writer.end();
      await writer.sync();
    } finally {
      await handle.close();
    }
    const { directory } = this.#deps;
    const complete = segmentPath(directory, { generation, firstSeq, lastSeq });
    await io("rename", path, rename(path, complete));
    await syncDirectory(directory);
  }

  /** Closes the file of the segment as it is: a later run completes it. */
  async abandon(): Promise<void> {
    const segment = this.#open;
    this.#open = undefined;
    await segment?.handle.close();
  }

  /** Returns the segment that takes a frame: the present one, or a new one. */
  async #segmentFor(generation: number, seq: number): Promise<OpenSegment> {
    const present = this.#open;
    if (present !== undefined) {
      const follows = present.generation === generation && present.lastSeq + 1 === seq;
      if (follows && present.writer.bytes < this.#deps.segmentBytes) return present;
      await this.close();
    }
    this.#open = await this.#begin(generation, seq);
    return this.#open;
  }

  async #begin(generation: number, firstSeq: number): Promise<OpenSegment> {
    const { directory, facts, run } = this.#deps;
    await makeDirectories(directory);
    const path = openSegmentPath(directory, { generation, seq: firstSeq }, run);
    const handle = await io("create", path, open(path, "wx", FILE_MODES.model));
    try {
      const writer = ContainerWriter.begin(handle, path);
      await writer.append(jobFrame(facts));
      await syncDirectory(directory);
      return { path, handle, writer, generation, firstSeq, lastSeq: firstSeq - 1 };
    } catch (error) {
      await handle.close();
      await rm(path, { force: true });
      throw error;
    }
  }

  async #orFail(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#failed = true;
      throw error;
    }
  }
}
