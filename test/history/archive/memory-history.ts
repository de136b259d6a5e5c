import { NO_RECORDS } from "../../../src/actors/fold/journal-checksum.ts";
import { journalDamaged } from "../../../src/actors/journal/journal-check.ts";
import type { PieceRef } from "../../../src/actors/journal/manifest.ts";
import {
  type HistorySource,
  type JournalSpan,
  type KeptSnapshot,
  positionAt,
  type ShardHistory,
  type StoredTapeMessage,
  type TapeStart,
  type TimedRecord,
  takeInventory,
} from "../../../src/history/source.ts";
import {
  encodeMessage,
  type Position,
  PserverError,
  packValue,
  readCrc,
} from "../../../src/protocol/index.ts";

/** One shard's journals and snapshots in memory; a test makes records and trims them as hosts do. */
export class MemoryShard implements ShardHistory {
  readonly shard: number;
  readonly records: Map<number, TimedRecord[]> = new Map([[1, []]]);
  manifests: KeptSnapshot[] = [];
  readonly pieces: Map<number, Uint8Array> = new Map();
  /** The shard's tape; a test may cut it off. */
  tape: StoredTapeMessage[] = [];
  /** Pieces read, in order. */
  readonly reads: number[] = [];
  /** Called before each batch of records is given. */
  onBatch: () => void | Promise<void> = () => undefined;
  /** Records that are listed and cannot be read. */
  readonly lost: Set<number> = new Set();
  /** Records whose next delivery is damaged on its way. */
  readonly damagedOnce: Set<number> = new Set();
  generation = 1;
  created = "then";
  #storedSeq = 0;
  #seq = 0;
  #taped = 0;

  constructor(shard: number) {
    this.shard = shard;
  }

  /** Appends records with random-looking payloads; some are not readable at all. */
  push(count: number, bytes = 40): void {
    for (let i = 0; i < count; i++) {
      const seq = ++this.#seq;
      const data = Uint8Array.from({ length: bytes }, (_, at) => seq * 31 + at);
      const payload = seq % 7 === 0 ? data : encodeMessage({ n: seq }, data);
      const subject = `ps.j.log.${this.shard}.trainer.a.push.w.${seq % 3}`;
      this.records.get(this.generation)?.push({ seq, subject, payload, timeMs: this.timeOf(seq) });
    }
  }

  /** Appends messages to the tape; `seq` is their place in the stream, which other shards use, too. */
  writeTape(count: number, bytes = 40): void {
    for (let i = 0; i < count; i++) {
      const seq = (this.tape.at(-1)?.seq ?? 0) + 3;
      const data = encodeMessage(
        { n: ++this.#taped },
        Uint8Array.from({ length: bytes }, () => seq),
      );
      this.tape.push({ seq, timeMs: 1e9 + this.#taped * 2.5, data });
    }
  }

  /** When a record was stored. */
  timeOf(seq: number): number {
    return this.generation * 1e9 + seq * 1.5;
  }

  /** Commits a snapshot of the last record, with `fresh` new pieces and those of the one before. */
  snapshot(fresh = 1): KeptSnapshot {
    const before = this.manifests.at(-1)?.manifest.pieces ?? [];
    const pieces = [
      ...before,
      ...Array.from({ length: fresh }, () => this.#store({ piece: true })),
    ];
    const slots = pieces.map((seq) => [seq, readCrc(this.pieces.get(seq) ?? new Uint8Array(0))]);
    const block = { parameter: "w", index: 0, epoch: 1, version: 1, accumulated: 0, slots };
    const blocks = slots.map((slot, index) => ({ ...block, index, slots: [slot] }));
    const state = this.#store({}, packValue({ fold: null, pieces: blocks }));
    const manifest = {
      ...{ term: 1, host: "h", owner: "o", generation: this.generation, created: this.created },
      ...{ fallbacks: [], seq: this.#seq, recordCrc: 0, checksum: NO_RECORDS, pieces },
      state: [{ seq: state, crc: readCrc(this.pieces.get(state) ?? new Uint8Array(0)) }],
    };
    return this.#commit(manifest);
  }

  /** Commits the newest snapshot again, as a take-over does. */
  takeOver(): void {
    const last = this.manifests.pop();
    if (last !== undefined) this.#commit({ ...last.manifest, term: last.manifest.term + 1 });
  }

  /** Removes all before a snapshot, as retention does. */
  trim(snapshots: number): void {
    this.manifests = this.manifests.slice(snapshots);
    const [oldest] = this.manifests;
    if (oldest === undefined) return;
    const { generation, seq } = oldest.manifest;
    for (const [each, records] of this.records) {
      if (each < generation) this.records.delete(each);
      if (each === generation) {
        this.records.set(
          each,
          records.filter((record) => record.seq >= seq),
        );
      }
    }
    const needed = this.manifests.flatMap(({ manifest }) => [
      ...manifest.pieces,
      ...manifest.state.map((ref) => ref.seq),
    ]);
    for (const piece of this.pieces.keys()) if (!needed.includes(piece)) this.pieces.delete(piece);
  }

  /** Goes on under a new journal, as after an accepted loss. */
  replace(): void {
    this.generation += 1;
    this.created = `then ${this.generation}`;
    this.#seq = 0;
    this.records.set(this.generation, []);
    this.snapshot();
  }

  /** Begins again with record 1. */
  restart(): void {
    this.#seq = 0;
  }

  /** The last record. */
  get seq(): number {
    return this.#seq;
  }

  spans(): Promise<JournalSpan[]> {
    return Promise.resolve(
      [...this.records].map(([generation, records]) => {
        const firstSeq = records[0]?.seq ?? 1;
        return { generation, firstSeq, lastSeq: records.at(-1)?.seq ?? firstSeq - 1 };
      }),
    );
  }

  snapshots(): Promise<KeptSnapshot[]> {
    return Promise.resolve([...this.manifests]);
  }

  piece({ seq }: PieceRef): Promise<Uint8Array> {
    const bytes = this.pieces.get(seq);
    this.reads.push(seq);
    if (bytes !== undefined) return Promise.resolve(bytes);
    return Promise.reject(new PserverError("SNAPSHOT_DAMAGED", `piece ${seq} is gone`));
  }

  async *read(
    { generation, seq }: Position,
    toSeq: number,
    signal: AbortSignal,
  ): AsyncGenerator<readonly TimedRecord[]> {
    for (let next = seq + 1; next <= toSeq; ) {
      signal.throwIfAborted();
      await this.onBatch();
      const records = this.records.get(generation) ?? [];
      const batch = records.filter((record) => record.seq >= next && record.seq <= toSeq);
      if (batch[0]?.seq !== next) throw new PserverError("HISTORY_LOST", `record ${next} is gone`);
      if (this.lost.has(next)) throw journalDamaged(this.shard, next, next + 1);
      const end = batch.findIndex((record) => this.lost.has(record.seq));
      const given = batch.slice(0, end < 0 ? 16 : Math.min(16, end));
      yield given.map((record) => this.#deliver(record));
      next += given.length;
    }
  }

  async *readTape(start: TapeStart, signal: AbortSignal): AsyncGenerator<StoredTapeMessage> {
    for (const message of [...this.tape]) {
      signal.throwIfAborted();
      const isWanted =
        start.kind === "time" ? message.timeMs >= start.timeMs : message.seq >= start.seq;
      if (isWanted) yield message;
    }
  }

  lastUpTo({ generation, firstSeq }: JournalSpan, timeMs: number): Promise<number> {
    const records = this.records.get(generation) ?? [];
    return Promise.resolve(
      records.findLast((record) => record.timeMs <= timeMs)?.seq ?? firstSeq - 1,
    );
  }

  #deliver(record: TimedRecord): TimedRecord {
    if (!this.damagedOnce.delete(record.seq)) return record;
    const payload = record.payload.slice();
    payload[payload.length - 1] = (payload.at(-1) ?? 0) ^ 1;
    return { ...record, payload };
  }

  #commit(manifest: KeptSnapshot["manifest"]): KeptSnapshot {
    const stored = { seq: ++this.#storedSeq, timeMs: this.timeOf(this.#seq) + 0.25, manifest };
    this.manifests.push(stored);
    return stored;
  }

  #store(fields: Readonly<Record<string, unknown>>, data?: Uint8Array): number {
    const seq = ++this.#storedSeq;
    this.pieces.set(seq, encodeMessage({ ...fields, seq }, data ?? Uint8Array.of(1)));
    return seq;
  }
}

/** A job's history in memory. */
export class MemoryHistory implements HistorySource {
  readonly name = "memory";
  readonly job = "j";
  readonly synchronization = { mode: "async" as const };
  readonly all: readonly MemoryShard[];

  constructor(shards: number) {
    this.all = Array.from({ length: shards }, (_, shard) => new MemoryShard(shard));
  }

  get shards(): number {
    return this.all.length;
  }

  shard(shard: number): MemoryShard {
    const found = this.all[shard];
    if (found === undefined) throw new PserverError("BAD_VALUE", `no shard ${shard}`);
    return found;
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

/** All records after a position, read in one go. */
export async function recordsOf(
  history: ShardHistory,
  after: Position,
  toSeq: number,
): Promise<TimedRecord[]> {
  const records: TimedRecord[] = [];
  const { signal } = new AbortController();
  for await (const batch of history.read(after, toSeq, signal)) records.push(...batch);
  return records;
}

/** All messages of a tape from a time on. */
export async function tapeOf(history: ShardHistory, timeMs = 0): Promise<StoredTapeMessage[]> {
  const messages: StoredTapeMessage[] = [];
  const { signal } = new AbortController();
  for await (const message of history.readTape?.({ kind: "time", timeMs }, signal) ?? []) {
    messages.push(message);
  }
  return messages;
}

/** The position at a time. */
export async function positionOf(
  history: ShardHistory,
  timeMs: number,
): Promise<Position | undefined> {
  return await positionAt(history, await takeInventory(history), timeMs);
}
