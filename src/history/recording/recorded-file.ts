import type { PieceRef } from "../../actors/journal/manifest.ts";
import {
  type Position,
  PserverError,
  readCrc,
  type Synchronization,
} from "../../protocol/index.ts";
import { uniqueSnapshots } from "../archive/archive-layout.ts";
import { heldPositionAt } from "../archive/archive-source.ts";
import { badArchive, ContainerReader } from "../archive/container.ts";
import { joinSpans, sliceRecords, toTimedRecord } from "../archive/segment.ts";
import {
  checkShard,
  type HistorySource,
  historyLost,
  type JournalSpan,
  type KeptSnapshot,
  type ShardHistory,
  showPosition,
  type TimedRecord,
} from "../source.ts";

import { indexRecording, type RecordedParts, type RecordingIndex } from "./recording-index.ts";

/** The history in a recorded file. */
export class RecordedFile implements HistorySource {
  readonly name: string;
  readonly #reader: ContainerReader;
  readonly #index: RecordingIndex;

  constructor(reader: ContainerReader, index: RecordingIndex) {
    this.name = reader.path;
    this.#reader = reader;
    this.#index = index;
  }

  /** Opens a recorded file, and checks every byte of it. @throws BAD_ARCHIVE, BAD_VERSION, IO. */
  static async open(path: string): Promise<RecordedFile> {
    const reader = await ContainerReader.open(path);
    try {
      return new RecordedFile(reader, await indexRecording(reader));
    } catch (error) {
      await reader.close();
      throw error;
    }
  }

  get job(): string {
    return this.#index.job.job;
  }

  get shards(): number {
    return this.#index.job.shards;
  }

  get synchronization(): Synchronization {
    return this.#index.job.synchronization;
  }

  shard(shard: number): ShardHistory {
    checkShard(this, shard);
    return new RecordedShard(shard, this.#reader, this.#index.shards[shard] as RecordedParts);
  }

  async close(): Promise<void> {
    await this.#reader.close();
  }
}

/** What a recorded file has of one shard. */
class RecordedShard implements ShardHistory {
  readonly shard: number;
  readonly #reader: ContainerReader;
  readonly #parts: RecordedParts;

  constructor(shard: number, reader: ContainerReader, parts: RecordedParts) {
    this.shard = shard;
    this.#reader = reader;
    this.#parts = parts;
  }

  async spans(): Promise<JournalSpan[]> {
    return joinSpans(this.#parts.spans);
  }

  async snapshots(): Promise<KeptSnapshot[]> {
    return uniqueSnapshots(this.#parts.snapshots);
  }

  async piece({ seq, crc }: PieceRef): Promise<Uint8Array> {
    const { shard } = this;
    const offset = this.#parts.pieces.get(seq);
    if (offset !== undefined) {
      const { frame } = await this.#reader.frameAt(offset);
      if (frame.kind !== "piece" || frame.seq !== seq) {
        throw badArchive(this.#reader.path, offset, `expected piece ${seq}; it has changed`);
      }
      if (readCrc(frame.data) === crc) return frame.data;
    }
    const what = offset === undefined ? "is not in the file" : "has another checksum";
    const text = `shard ${shard}: snapshot message ${seq} ${what}`;
    throw new PserverError("SNAPSHOT_DAMAGED", text, { shard, seq, path: this.#reader.path });
  }

  async *read(
    { generation, seq }: Position,
    toSeq: number,
    signal: AbortSignal,
  ): AsyncGenerator<readonly TimedRecord[]> {
    if (seq >= toSeq) return;
    const place = this.#parts.places.findLast(
      (each) => each.generation === generation && each.seq <= seq + 1,
    );
    let lastSeq = seq;
    if (place !== undefined) {
      const batches = this.#recordsFrom(place.offset, generation);
      for await (const batch of sliceRecords(batches, this.shard, seq, toSeq)) {
        signal.throwIfAborted();
        yield batch;
        lastSeq = batch.at(-1)?.seq ?? lastSeq;
      }
    }
    if (lastSeq === toSeq) return;
    const wanted = showPosition(this.shard, { generation, seq: lastSeq + 1 });
    const [first] = joinSpans(this.#parts.spans);
    const oldest = first && { generation: first.generation, seq: first.firstSeq };
    throw historyLost(this.shard, `record ${wanted}`, oldest);
  }

  async positionAt(timeMs: number): Promise<Position | undefined> {
    return await heldPositionAt(
      {
        spans: await this.spans(),
        snapshots: await this.snapshots(),
        lastUpTo: (span) => this.#lastUpTo(span, timeMs),
      },
      timeMs,
    );
  }

  async #lastUpTo({ generation, firstSeq, lastSeq }: JournalSpan, timeMs: number): Promise<number> {
    const place = this.#parts.places.findLast(
      (each) =>
        each.generation === generation &&
        each.seq >= firstSeq &&
        each.seq <= lastSeq &&
        each.timeMs <= timeMs,
    );
    if (place === undefined) return firstSeq - 1;
    let seq = place.seq;
    for await (const batch of this.#recordsFrom(place.offset, generation)) {
      for (const record of batch) {
        if (record.timeMs > timeMs || record.seq > lastSeq) return seq;
        seq = record.seq;
      }
    }
    return seq;
  }

  /** The shard's records of a generation from a place in the file on, up to those of another shard. */
  async *#recordsFrom(offset: number, generation: number): AsyncGenerator<readonly TimedRecord[]> {
    for await (const batch of this.#reader.framesFrom(offset)) {
      const records: TimedRecord[] = [];
      for (const { frame } of batch) {
        const isOwn = frame.kind === "record" && frame.shard === this.shard;
        if (!isOwn || frame.generation !== generation) {
          if (records.length > 0) yield records;
          return;
        }
        records.push(toTimedRecord(frame));
      }
      yield records;
    }
  }
}
