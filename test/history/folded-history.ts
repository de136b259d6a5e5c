import type { JournalRecord } from "../../src/actors/fold/journal-record.ts";
import { Shard } from "../../src/actors/fold/shard.ts";
import { foldDescribed } from "../../src/actors/journal/describe-record.ts";
import type { Manifest, PieceRef } from "../../src/actors/journal/manifest.ts";
import { TapeEncoder } from "../../src/actors/journal/tape/tape-encoder.ts";
import type { Watermark } from "../../src/actors/journal/watermark.ts";
import type {
  HistorySource,
  JournalSpan,
  KeptSnapshot,
  ShardHistory,
  StoredTapeMessage,
  TapeStart,
  TimedRecord,
} from "../../src/history/source.ts";
import {
  comparePositions,
  encodeMessage,
  type Position,
  PserverError,
  packValue,
  readCrc,
  type Synchronization,
  sealMessage,
} from "../../src/protocol/index.ts";
import { SHARD, SUBJECTS } from "../actors/fold/journal-writer.ts";

const NO_BYTES = new Uint8Array(0);

/** A journal in memory with snapshots of its fold; a test may damage or trim both. */
export class FoldedShardHistory implements ShardHistory {
  readonly shard: number;
  readonly snapshotList: KeptSnapshot[] = [];
  /** Messages of the snapshots, by sequence. */
  readonly pieces: Map<number, Uint8Array> = new Map();
  /** Records that cannot be read, although they are listed. */
  readonly damaged: Set<number> = new Set();
  /** Records that are not listed. */
  readonly missing: Set<number> = new Set();
  /** Records that are known to be missing. */
  gapList: readonly JournalSpan[] = [];
  firstSeq = 1;
  /** Records that were read. */
  readCount = 0;
  readonly #tape: StoredTapeMessage[] = [];
  readonly #records: readonly JournalRecord[];
  /** Records that are read in the place of those that were folded. */
  readonly changed: Map<number, Pick<JournalRecord, "subject" | "payload">> = new Map();
  /** How far its owner has noted that it has folded the journal; 0 for nothing. */
  watermarkSeq = 0;
  #stored = 0;

  constructor(shard: number, records: readonly JournalRecord[]) {
    this.shard = shard;
    this.#records = records;
  }

  /** Milliseconds since 1970 at which a record was stored. */
  timeOf(seq: number): number {
    return 1_000_000 + seq * 10 + this.shard;
  }

  /** The fold of the first so many records. */
  folded(seq: number): Shard {
    const shard = Shard.create({ subjects: SUBJECTS, shard: this.shard });
    for (const record of this.#records.slice(0, seq)) shard.apply(record);
    return shard;
  }

  /** A record as it was written. */
  written(seq: number): JournalRecord {
    return this.#records[seq - 1] as JournalRecord;
  }

  watermark(): Promise<Watermark | undefined> {
    if (this.watermarkSeq === 0) return Promise.resolve(undefined);
    const { noted, lastCrc: recordCrc } = this.folded(this.watermarkSeq);
    return Promise.resolve({ ...{ term: 1, generation: 1, recordCrc, earlier: [] }, ...noted });
  }

  /** One shard, before the first record and after each. */
  *following(): Generator<Shard, void> {
    const shard = this.folded(0);
    yield shard;
    for (const record of this.#records) {
      shard.apply(record);
      yield shard;
    }
  }

  /** Makes a snapshot of the fold at a record; `change` may damage its state before. */
  snapshot(seq: number, change: (shard: Shard) => void = () => undefined): void {
    const shard = this.folded(seq);
    change(shard);
    this.#keep(shard, { generation: 1, seq, recordCrc: shard.lastCrc });
  }

  /** Lets the shard go on from the fold at a record under generation 2, as a rewind does; its journal is empty. */
  continueFrom(seq: number, change: (shard: Shard) => void = () => undefined): void {
    const shard = this.folded(seq);
    change(shard);
    shard.restartJournal();
    const fallbacks = [{ generation: 1, from: seq + 1, to: this.lastSeq }];
    this.#keep(shard, { generation: 2, seq: 0, recordCrc: 0, fallbacks, past: 1 });
  }

  /** Lets the shard go on under generation 2 without a record that was put aside; its journal is empty. */
  continueWithout(seq: number, change: (shard: Shard) => void = () => undefined): void {
    const shard = this.folded(seq - 1);
    shard.skipTo(seq);
    for (const record of this.#records.slice(seq)) shard.apply(record);
    change(shard);
    shard.restartJournal();
    const last = { generation: 1, from: this.lastSeq + 1, to: this.lastSeq };
    const fallbacks = [{ generation: 1, from: seq, to: seq }, last];
    this.#keep(shard, { generation: 2, seq: 0, recordCrc: 0, fallbacks });
  }

  #keep(shard: Shard, head: Position & Omit<Partial<Manifest>, "checksum">): void {
    const blocks = [...shard.blocks()].map((block) => {
      const { parameter, index, epoch, version, accumulated } = block;
      const slots = Array.from({ length: 1 + block.slots }, (_, slot) =>
        this.#store(block.slotBytes(slot)),
      );
      return { parameter, index, epoch, version, accumulated, slots: slots.map(rowOf) };
    });
    const state = this.#store(packValue({ fold: shard.saveState(), pieces: blocks }));
    const { checksum } = shard.noted;
    const manifest = {
      ...{ term: 1, host: "h", owner: "o", created: "then", fallbacks: [], recordCrc: 0, checksum },
      ...{ state: [state], pieces: [], ...head },
    };
    this.#stored += 1;
    this.snapshotList.push({ seq: this.#stored, timeMs: this.timeOf(head.seq) + 1, manifest });
  }

  /** Writes the lines of records from one to another on the tape, in messages of so many records. */
  writeTape(fromSeq: number, toSeq: number, records = 2): void {
    const shard = this.folded(fromSeq - 1);
    const encoder = new TapeEncoder(1, fromSeq - 1);
    for (let seq = fromSeq; seq <= toSeq; seq++) {
      const record = { ...(this.#records[seq - 1] as JournalRecord), timeMs: this.timeOf(seq) };
      const { events } = foldDescribed(shard, record, { shard: this.shard, generation: 1 });
      encoder.add(events, true);
      if (seq < toSeq && (seq - fromSeq + 1) % records !== 0) continue;
      const { fields, data } = encoder.take();
      const message = { seq: this.#tape.length + 1, timeMs: this.timeOf(seq) + 1 };
      this.#tape.push({ ...message, data: encodeMessage(fields, data) });
      encoder.clear();
    }
  }

  /** Changes a byte of a message of the tape. */
  damageTape(at: number): void {
    const message = this.#tape[at];
    if (message === undefined) throw new Error(`no message ${at}`);
    const data = Uint8Array.from(message.data);
    data[data.length - 1] = 1 ^ (data.at(-1) ?? 0);
    this.#tape[at] = { ...message, data };
  }

  /** Changes a byte of the last message stored. */
  damageNewestPiece(): void {
    const [seq, bytes] = [...this.pieces].at(-1) ?? [0, NO_BYTES];
    const changed = Uint8Array.from(bytes);
    changed[changed.length - 1] = 1 ^ (changed.at(-1) ?? 0);
    this.pieces.set(seq, changed);
  }

  /** The last record. */
  get lastSeq(): number {
    return this.#records.length;
  }

  spans(): Promise<JournalSpan[]> {
    const spans: JournalSpan[] = [];
    let firstSeq = this.firstSeq;
    for (const seq of [...this.missing].sort((a, b) => a - b)) {
      if (seq > firstSeq) spans.push({ generation: 1, firstSeq, lastSeq: seq - 1 });
      firstSeq = seq + 1;
    }
    spans.push({ generation: 1, firstSeq, lastSeq: this.lastSeq });
    const isLeft = this.snapshotList.some(({ manifest }) => manifest.generation === 2);
    if (isLeft) spans.push({ generation: 2, firstSeq: 1, lastSeq: 0 });
    return Promise.resolve(spans);
  }

  gaps(): Promise<readonly JournalSpan[]> {
    return Promise.resolve(this.gapList);
  }

  snapshots(): Promise<KeptSnapshot[]> {
    return Promise.resolve(
      [...this.snapshotList].sort((a, b) => comparePositions(a.manifest, b.manifest)),
    );
  }

  piece({ seq, crc }: PieceRef): Promise<Uint8Array> {
    const bytes = this.pieces.get(seq);
    const isWhole = bytes !== undefined && readCrc(bytes) === crc;
    const isDamaged = bytes !== undefined && crcOf(bytes) !== readCrc(bytes);
    if (isWhole && !isDamaged) return Promise.resolve(bytes);
    return Promise.reject(new PserverError("SNAPSHOT_DAMAGED", `message ${seq} is damaged`));
  }

  async *read(
    { seq }: Position,
    toSeq: number,
    signal: AbortSignal,
  ): AsyncGenerator<readonly TimedRecord[]> {
    for (let at = seq + 1; at <= toSeq; at++) {
      signal.throwIfAborted();
      const record = this.#records[at - 1];
      if (
        record === undefined ||
        at < this.firstSeq ||
        this.damaged.has(at) ||
        this.missing.has(at)
      ) {
        throw new PserverError("JOURNAL_DAMAGED", `expected record ${at}`);
      }
      this.readCount += 1;
      yield [{ ...record, ...this.changed.get(at), seq: at, timeMs: this.timeOf(at) }];
    }
  }

  async *readTape(start: TapeStart): AsyncGenerator<StoredTapeMessage> {
    for (const message of this.#tape) {
      const isWanted =
        start.kind === "time" ? message.timeMs >= start.timeMs : message.seq >= start.seq;
      if (isWanted) yield message;
    }
  }

  lastUpTo({ firstSeq, lastSeq }: JournalSpan, timeMs: number): Promise<number> {
    let seq = firstSeq - 1;
    while (seq < lastSeq && this.timeOf(seq + 1) <= timeMs) seq += 1;
    return Promise.resolve(seq);
  }

  #store(data: Uint8Array): PieceRef {
    this.#stored += 1;
    const bytes = encodeMessage({}, data);
    this.pieces.set(this.#stored, bytes);
    return { seq: this.#stored, crc: readCrc(bytes) };
  }
}

function rowOf({ seq, crc }: PieceRef): readonly number[] {
  return [seq, crc];
}

/** The checksum that the bytes of a message give, computed by sealing them again. */
function crcOf(bytes: Uint8Array): number {
  return readCrc(sealMessage({ bytes: Uint8Array.from(bytes), data: NO_BYTES }));
}

/** A job with one shard that has records, that of the fold's tests; the others are empty. */
export class FoldedHistory implements HistorySource {
  readonly name = "memory";
  readonly job = SUBJECTS.job;
  readonly shards = 4;
  readonly own: FoldedShardHistory;
  readonly synchronization: Synchronization;
  readonly #others: readonly FoldedShardHistory[];

  constructor(
    records: readonly JournalRecord[],
    synchronization: Synchronization = { mode: "async" },
  ) {
    this.own = new FoldedShardHistory(SHARD, records);
    this.synchronization = synchronization;
    this.#others = [0, 1, 2].map((shard) => new FoldedShardHistory(shard, []));
  }

  shard(shard: number): FoldedShardHistory {
    const found = shard === SHARD ? this.own : this.#others[shard];
    if (found !== undefined) return found;
    throw new PserverError("BAD_VALUE", `no shard ${shard}`);
  }

  /** The cut that has the shard with records after one of them. */
  cut(seq: number): Position[] {
    return [0, 0, 0, seq].map((each) => ({ generation: 1, seq: each }));
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}
