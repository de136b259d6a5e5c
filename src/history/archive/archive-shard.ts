import { mapConcurrently } from "../../actors/concurrent.ts";
import { journalDamaged } from "../../actors/owner/journal-gap.ts";
import type { PieceRef } from "../../actors/snapshot/manifest.ts";
import type { Position } from "../../protocol/index.ts";
import { historyLost, showPosition } from "../history-lost.ts";
import type {
  JournalSpan,
  KeptSnapshot,
  ShardHistory,
  StoredTapeMessage,
  TapeStart,
  TimedRecord,
} from "../source.ts";
import type { ArchiveFacts } from "./archive-facts.ts";
import {
  journalDirectory,
  listSegments,
  listSnapshots,
  type SegmentFile,
  snapshotDirectory,
} from "./archive-layout.ts";
import { ArchivePieces } from "./archive-pieces.ts";
import { ArchiveTape } from "./archive-tape.ts";
import { heldPositionAt } from "./held-position.ts";
import { joinSpans } from "./join-spans.ts";
import { isRenamed, LISTS_MAX } from "./renamed-segment.ts";
import { readSegment, readTail, sliceRecords } from "./segment.ts";
import { readSnapshotHead } from "./snapshot-file.ts";
import { uniqueSnapshots } from "./unique-snapshots.ts";

/** Snapshots whose files are read at one time. */
const FILES_AT_ONCE = 8;

/** A segment with records whose last one is known. */
interface WholeSegment extends SegmentFile {
  readonly lastSeq: number;
}

/** What an archive holds of one shard, also while an archiver adds to it. */
export class ArchiveShard implements ShardHistory {
  readonly shard: number;
  readonly #directory: string;
  readonly #facts: ArchiveFacts;
  readonly #pieces: ArchivePieces;
  readonly #tape: ArchiveTape;

  constructor(directory: string, facts: ArchiveFacts, shard: number) {
    this.shard = shard;
    this.#directory = directory;
    this.#facts = facts;
    this.#pieces = new ArchivePieces(directory, facts, shard);
    this.#tape = new ArchiveTape(directory, facts, shard);
  }

  async spans(): Promise<JournalSpan[]> {
    return joinSpans(await this.#segments());
  }

  async snapshots(): Promise<KeptSnapshot[]> {
    const files = await listSnapshots(snapshotDirectory(this.#directory, this.shard));
    const heads = await mapConcurrently(
      files,
      (file) => readSnapshotHead(file, this.shard, this.#facts),
      FILES_AT_ONCE,
    );
    return uniqueSnapshots(heads.map(({ snapshot }) => snapshot));
  }

  piece(ref: PieceRef): Promise<Uint8Array> {
    return this.#pieces.read(ref);
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
        if (!isRenamed(error) || lists === LISTS_MAX) throw error;
        lists++;
      }
    }
  }

  readTape(
    start: TapeStart,
    signal: AbortSignal,
  ): AsyncGenerator<StoredTapeMessage, void, undefined> {
    return this.#tape.read(start, signal);
  }

  async positionAt(timeMs: number): Promise<Position | undefined> {
    const segments = await this.#segments();
    const held = {
      spans: joinSpans(segments),
      snapshots: await this.snapshots(),
      lastUpTo: (span: JournalSpan) => this.#lastUpTo(segments, span, timeMs),
    };
    return await heldPositionAt(held, timeMs);
  }

  async #lastUpTo(
    all: readonly WholeSegment[],
    { generation, firstSeq, lastSeq }: JournalSpan,
    timeMs: number,
  ): Promise<number> {
    const segments = all.filter(
      (segment) =>
        segment.generation === generation &&
        segment.firstSeq >= firstSeq &&
        segment.firstSeq <= lastSeq,
    );
    // The last segment that begins before: its beginning is all that is read of the others.
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

  /** Sequence of the last record up to a time in a segment, or in its first batch. */
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

  /** The segment that holds a record. @throws HISTORY_LOST, JOURNAL_DAMAGED if none does. */
  async #segmentWith(generation: number, seq: number): Promise<WholeSegment> {
    const segments = (await this.#segments()).filter((each) => each.generation === generation);
    const found = segments.find(({ firstSeq, lastSeq }) => firstSeq <= seq && seq <= lastSeq);
    if (found !== undefined) return found;
    const [first] = segments;
    if (first !== undefined && first.firstSeq < seq) {
      const next = segments.find(({ firstSeq }) => firstSeq > seq);
      throw journalDamaged(this.shard, seq, next?.firstSeq);
    }
    const oldest = first && { generation, seq: first.firstSeq };
    throw historyLost(
      this.shard,
      `record ${showPosition(this.shard, { generation, seq })}`,
      oldest,
    );
  }

  /** The segments with a record, also the one that is being written. */
  async #segments(): Promise<WholeSegment[]> {
    for (let lists = 1; ; lists++) {
      try {
        return await this.#listSegments();
      } catch (error) {
        if (!isRenamed(error) || lists === LISTS_MAX) throw error;
      }
    }
  }

  async #listSegments(): Promise<WholeSegment[]> {
    const segments: WholeSegment[] = [];
    for (const file of await listSegments(journalDirectory(this.#directory, this.shard))) {
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
