import { stat } from "node:fs/promises";
import { mapConcurrently } from "../../actors/concurrent.ts";
import type { StoredSettings } from "../../actors/job/job-settings.ts";
import { journalDamaged } from "../../actors/journal/journal-check.ts";
import type { PieceRef } from "../../actors/journal/manifest.ts";
import {
  ensureError,
  type Position,
  PserverError,
  readCrc,
  type Synchronization,
} from "../../protocol/index.ts";
import { showPosition } from "../../protocol/messages/position.ts";
import { io } from "../../system/file-errors.ts";
import {
  checkShard,
  END_SEQ,
  type HistorySource,
  historyLost,
  type JournalSpan,
  type KeptSnapshot,
  recordsNotKept,
  type ShardHistory,
  type StoredTapeMessage,
  spanWith,
  type TapeStart,
  type TimedRecord,
} from "../source.ts";
import {
  type ArchiveFacts,
  directoryFiles,
  readArchiveFacts,
  type SegmentFile,
  type ShardFiles,
  type SnapshotFile,
  uniqueSnapshots,
} from "./archive-layout.ts";
import type { TapeFrame } from "./frames.ts";
import { readRecording } from "./recorded-file.ts";
import {
  joinSpans,
  readFrames,
  readSegment,
  readTail,
  sliceRecords,
  withoutSpans,
} from "./segment.ts";
import { placesOfPieces, readPieceAt, readSnapshotHeader } from "./snapshot-file.ts";

/** Most files whose tables of pieces are kept in memory. */
const TABLES_MAX = 64;

/** How often segments are listed again while an archiver renames them. */
const LISTS_MAX = 5;

/** Whether a segment is not there: the archiver may have completed it and given it another name. */
export function isMissing(error: unknown): boolean {
  return ensureError(error).details["errno"] === "ENOENT";
}

/** Returns a message as all sources give it. */
export function toTapeMessage({ seq, timeMs, data }: TapeFrame): StoredTapeMessage {
  return { seq, timeMs, data };
}

function isAtOrAfter(start: TapeStart, { seq, timeMs }: StoredTapeMessage): boolean {
  return start.kind === "time" ? timeMs >= start.timeMs : seq >= start.seq;
}

/** Gives the batches of a segment of a tape up to damage, after which the next segment can be read. */
async function* untilDamage<Batch>(
  batches: AsyncIterable<Batch>,
  onDamage: (error: PserverError) => void,
): AsyncGenerator<Batch> {
  try {
    yield* batches;
  } catch (error) {
    const found = ensureError(error);
    if (found.code !== "BAD_ARCHIVE") throw error;
    onDamage(found);
  }
}

/** Snapshots whose files are read at one time. */
const FILES_AT_ONCE = 8;

/** A segment with records, of which the last one is known. */
interface WholeSegment extends SegmentFile {
  readonly lastSeq: number;
}

/** The history of one shard in an archive, also while an archiver adds to it. */
export class ArchiveShard implements ShardHistory {
  readonly shard: number;
  readonly #files: ShardFiles;
  readonly #facts: ArchiveFacts;
  /** Offsets of pieces by sequence, for each snapshot; the snapshot used last is at the end. */
  readonly #tables: Map<string, Promise<ReadonlyMap<number, number>>> = new Map();
  /** The snapshots as they were listed for the last piece. */
  #snapshots: readonly SnapshotFile[] = [];

  constructor(files: ShardFiles, facts: ArchiveFacts, shard: number) {
    this.shard = shard;
    this.#files = files;
    this.#facts = facts;
  }

  async spans(): Promise<JournalSpan[]> {
    return joinSpans(await this.#segments());
  }

  async gaps(): Promise<JournalSpan[]> {
    const spans = await this.spans();
    const noted = await this.#files.gaps();
    const held = [...spans, ...noted, ...(await this.#files.snapshots())];
    const generations = [...new Set(held.map(({ generation }) => generation))];
    const around = generations.flatMap((generation): JournalSpan[] => {
      const own = spans.filter((span) => span.generation === generation);
      const [first, last] = [own[0], own.at(-1)];
      if (first === undefined || last === undefined) {
        return [{ generation, firstSeq: 1, lastSeq: END_SEQ }];
      }
      // Files may be removed, oldest first, and records after the last one may come later.
      return [
        { generation, firstSeq: 1, lastSeq: first.firstSeq - 1 },
        { generation, firstSeq: last.lastSeq + 1, lastSeq: END_SEQ },
      ];
    });
    return withoutSpans([...noted, ...around], spans);
  }

  async snapshots(): Promise<KeptSnapshot[]> {
    const heads = await mapConcurrently(
      await this.#files.snapshots(),
      (file) => readSnapshotHeader(file, this.shard, this.#facts),
      FILES_AT_ONCE,
    );
    return uniqueSnapshots(heads.map(({ snapshot }) => snapshot));
  }

  async piece(ref: PieceRef): Promise<Uint8Array> {
    const found = await this.#findPiece(ref);
    if (found === undefined) throw this.#damagedPiece(ref, "is not in the archive");
    const bytes = await readPieceAt(found.path, found.offset, ref.seq);
    if (readCrc(bytes) !== ref.crc) throw this.#damagedPiece(ref, "has another checksum");
    return bytes;
  }

  async *read(
    { generation, seq }: Position,
    toSeq: number,
    signal: AbortSignal,
  ): AsyncGenerator<readonly TimedRecord[]> {
    let lastSeq = seq;
    for (let lists = 1; lastSeq < toSeq; ) {
      const segment = await this.#segmentWith(generation, lastSeq + 1);
      const batches = readSegment(segment, this.shard, this.#facts);
      try {
        for await (const batch of sliceRecords(batches, this.shard, lastSeq, toSeq)) {
          signal.throwIfAborted();
          lastSeq = batch.at(-1)?.seq ?? lastSeq;
          yield batch;
        }
      } catch (error) {
        if (!isMissing(error) || lists === LISTS_MAX) throw error;
        lists++;
      }
    }
  }

  async *readTape(
    start: TapeStart,
    signal: AbortSignal,
  ): AsyncGenerator<StoredTapeMessage, void, undefined> {
    let reached = 0;
    let damage: PserverError | undefined;
    const onDamage = (error: PserverError): void => {
      damage ??= error;
    };
    for (let lists = 1; ; lists++) {
      try {
        const segments = await this.#files.tape();
        for (const segment of await this.#tapeFrom(start, segments)) {
          if (segment.lastSeq !== undefined && segment.lastSeq <= reached) continue;
          for await (const batch of untilDamage(this.#tapeIn(segment), onDamage)) {
            signal.throwIfAborted();
            for (const frame of batch) {
              if (frame.number <= reached) continue;
              reached = frame.number;
              if (isAtOrAfter(start, frame)) yield toTapeMessage(frame);
            }
          }
        }
        break;
      } catch (error) {
        if (!isMissing(error) || lists === LISTS_MAX) throw error;
      }
    }
    if (damage !== undefined) throw damage;
  }

  /** True unless its first segment is lost: what it has from the beginning is what the broker had then. */
  async isTapeTrimmed(): Promise<boolean> {
    const [first] = await this.#files.tape();
    return first?.firstSeq === 1;
  }

  async lastUpTo({ generation, firstSeq, lastSeq }: JournalSpan, timeMs: number): Promise<number> {
    const segments = (await this.#segments()).filter(
      (segment) =>
        segment.generation === generation &&
        segment.firstSeq >= firstSeq &&
        segment.firstSeq <= lastSeq,
    );
    // The last segment that begins before the time. Of the others only the beginning is read.
    let [low, high] = [0, segments.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      const segment = segments[middle] as WholeSegment;
      if ((await this.#lastIn(segment, timeMs, true)) >= segment.firstSeq) low = middle + 1;
      else high = middle;
    }
    const segment = segments[low - 1];
    return segment === undefined ? firstSeq - 1 : await this.#lastIn(segment, timeMs, false);
  }

  /** Returns the last record up to a time in a segment, or in its first batch. */
  async #lastIn(segment: WholeSegment, timeMs: number, firstOnly: boolean): Promise<number> {
    let lastSeq = segment.firstSeq - 1;
    for await (const batch of readSegment(segment, this.shard, this.#facts)) {
      const later = batch.find((record) => record.timeMs > timeMs);
      if (later !== undefined) return later.seq - 1;
      lastSeq = batch.at(-1)?.seq ?? lastSeq;
      if (firstOnly) break;
    }
    return lastSeq;
  }

  /** Finds the first file that has a piece: one of the snapshots that were committed after the piece was stored. */
  async #findPiece(ref: PieceRef): Promise<{ path: string; offset: number } | undefined> {
    for (const isListedAnew of [false, true]) {
      if (isListedAnew) this.#snapshots = await this.#files.snapshots();
      for (const file of this.#snapshots) {
        if (file.storedSeq < ref.seq) continue;
        const offset = (await this.#piecesIn(file)).get(ref.seq);
        if (offset !== undefined) return { path: file.path, offset };
      }
    }
    return undefined;
  }

  async #piecesIn(file: SnapshotFile): Promise<ReadonlyMap<number, number>> {
    const key = `${file.path} ${file.offset}`;
    const known = this.#tables.get(key);
    if (known !== undefined) {
      this.#tables.delete(key);
      this.#tables.set(key, known);
      return await known;
    }
    const header = readSnapshotHeader(file, this.shard, this.#facts);
    const table = header.then((found) => placesOfPieces(file, found));
    this.#tables.set(key, table);
    table.catch(() => this.#tables.delete(key));
    const [oldest] = this.#tables.keys();
    if (this.#tables.size > TABLES_MAX && oldest !== undefined) this.#tables.delete(oldest);
    return await table;
  }

  #damagedPiece({ seq }: PieceRef, what: string): PserverError {
    return new PserverError(
      "SNAPSHOT_DAMAGED",
      `shard ${this.shard}: snapshot message ${seq} ${what}`,
      { shard: this.shard, seq },
    );
  }

  /** Returns the segments of a tape without those that end before `start`. */
  async #tapeFrom(
    start: TapeStart,
    segments: readonly SegmentFile[],
  ): Promise<readonly SegmentFile[]> {
    if (start.kind === "time" && start.timeMs <= 0) return segments;
    let from = segments.length - 1;
    for (; from > 0; from--) {
      const first = await this.#firstIn(segments[from] as SegmentFile);
      if (first !== undefined && !isAtOrAfter(start, first)) break;
    }
    return segments.slice(Math.max(0, from));
  }

  async #firstIn(segment: SegmentFile): Promise<TapeFrame | undefined> {
    // The damage is told by whoever reads the segment.
    for await (const [first] of untilDamage(this.#tapeIn(segment), () => undefined)) return first;
    return undefined;
  }

  #tapeIn(segment: SegmentFile): AsyncGenerator<readonly TapeFrame[]> {
    return readFrames("tape", segment, this.shard, this.#facts);
  }

  /** Returns the segment that holds a record. @throws HISTORY_LOST, JOURNAL_DAMAGED if none does. */
  async #segmentWith(generation: number, seq: number): Promise<WholeSegment> {
    const segments = (await this.#segments()).filter((each) => each.generation === generation);
    const found = segments.find(({ firstSeq, lastSeq }) => firstSeq <= seq && seq <= lastSeq);
    if (found !== undefined) return found;
    const [first] = segments;
    const oldest = first && { generation, seq: first.firstSeq };
    if (oldest === undefined || seq < oldest.seq) {
      const wanted = `record ${showPosition(this.shard, { generation, seq })}`;
      throw historyLost(this.shard, wanted, oldest);
    }
    const gap = spanWith(joinSpans(await this.#files.gaps()), { generation, seq });
    if (gap !== undefined) throw recordsNotKept(this.shard, gap);
    const next = segments.find(({ firstSeq }) => firstSeq > seq);
    throw journalDamaged(this.shard, seq, next?.firstSeq);
  }

  /** Lists the segments with a record, also the one that is being written. */
  async #segments(): Promise<WholeSegment[]> {
    for (let lists = 1; ; lists++) {
      try {
        return await this.#listSegments();
      } catch (error) {
        if (!isMissing(error) || lists === LISTS_MAX) throw error;
      }
    }
  }

  async #listSegments(): Promise<WholeSegment[]> {
    const segments: WholeSegment[] = [];
    for (const file of await this.#files.journal()) {
      if (file.lastSeq !== undefined) segments.push({ ...file, lastSeq: file.lastSeq });
      else {
        const { lastSeq, damage } = await readTail("record", file, this.shard, this.#facts);
        if (damage !== undefined) throw damage;
        if (lastSeq >= file.firstSeq) segments.push({ ...file, lastSeq });
      }
    }
    return segments;
  }
}

/** The history in an archive: in a directory, also while an archiver adds to it, or in a recorded file. */
export class ArchiveSource implements HistorySource {
  readonly name: string;
  readonly facts: ArchiveFacts;
  readonly settings?: StoredSettings;
  readonly #filesOf: (shard: number) => ShardFiles;

  constructor(name: string, facts: ArchiveFacts, filesOf: (shard: number) => ShardFiles) {
    this.name = name;
    this.facts = facts;
    if (facts.settings !== undefined) this.settings = facts.settings;
    this.#filesOf = filesOf;
  }

  /**
   * Opens the archive in a directory, or a recorded file, of which every byte is checked.
   * @throws BAD_ARCHIVE if there is none or it is damaged, BAD_VERSION, IO.
   */
  static async open(path: string): Promise<ArchiveSource> {
    if ((await io("open", path, stat(path))).isDirectory()) {
      const facts = await readArchiveFacts(path);
      return new ArchiveSource(path, facts, (shard) => directoryFiles(path, shard));
    }
    const { facts, shards } = await readRecording(path);
    return new ArchiveSource(path, facts, (shard) => shards[shard] as ShardFiles);
  }

  get job(): string {
    return this.facts.job;
  }

  get shards(): number {
    return this.facts.shards;
  }

  get synchronization(): Synchronization {
    return this.facts.synchronization;
  }

  /** Returns the files of a shard. @throws BAD_VALUE for a shard that the job does not have. */
  files(shard: number): ShardFiles {
    checkShard(this, shard);
    return this.#filesOf(shard);
  }

  shard(shard: number): ArchiveShard {
    return new ArchiveShard(this.files(shard), this.facts, shard);
  }

  async close(): Promise<void> {
    // No file stays open.
  }
}
