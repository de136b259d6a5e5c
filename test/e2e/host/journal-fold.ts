import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { Shard } from "../../../src/actors/fold/shard.ts";
import type { Manifest, StoredManifest } from "../../../src/actors/journal/manifest.ts";
import {
  blockKey,
  readSnapshotState,
  SnapshotStore,
} from "../../../src/actors/journal/snapshot-store.ts";

import { decodeMessage, JobSubjects } from "../../../src/protocol/index.ts";
import { StreamPublisher } from "../../../src/transport/jetstream.ts";

/** A record as an independent consumer of the stream got it. */
export interface ReadRecord {
  readonly seq: number;
  readonly subject: string;
  readonly payload: Uint8Array;
}

/** What the broker holds of a job, read without any host. */
export class Archive {
  readonly connection: NatsConnection;
  readonly subjects: JobSubjects;

  private constructor(connection: NatsConnection, job: string) {
    this.connection = connection;
    this.subjects = new JobSubjects(job);
  }

  static async open(url: string, job: string): Promise<Archive> {
    return new Archive(await connect({ servers: url }), job);
  }

  async close(): Promise<void> {
    await this.connection.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** First and last sequence and the bytes of a journal. */
  async journal(
    shard: number,
    generation = 1,
  ): Promise<{ first: number; last: number; bytes: number }> {
    const manager = await jetstreamManager(this.connection);
    const { state } = await manager.streams.info(this.subjects.journalStream(shard, generation));
    return { first: state.first_seq, last: state.last_seq, bytes: state.bytes };
  }

  /** Sequence of the last record that a journal holds. */
  async lastRecord(shard: number, generation = 1): Promise<number> {
    const manager = await jetstreamManager(this.connection);
    const stream = this.subjects.journalStream(shard, generation);
    const last = { last_by_subj: this.subjects.shardLog(shard) };
    return (await manager.streams.getMessage(stream, last))?.seq ?? 0;
  }

  /** All records that a journal holds, in order. */
  async records(shard: number, generation = 1): Promise<ReadRecord[]> {
    const { first, last } = await this.journal(shard, generation);
    const records: ReadRecord[] = [];
    if (last < first) return records;
    const consumer = await jetstream(this.connection).consumers.get(
      this.subjects.journalStream(shard, generation),
    );
    const messages = await consumer.consume({ max_messages: 64 });
    for await (const { seq, subject, data } of messages) {
      records.push({ seq, subject, payload: Uint8Array.from(data) });
      if (seq >= last) break;
    }
    return records;
  }

  /** The manifests that are kept of a shard, oldest first. */
  async manifests(shard: number): Promise<StoredManifest[]> {
    const store = await this.#store(shard);
    return await store.manifests();
  }

  /** The sequences of all messages of a shard's snapshots. */
  async snapshotMessages(shard: number): Promise<number[]> {
    return [...(await (await this.#store(shard)).list()).keys()];
  }

  /** One message of the snapshot stream. */
  async snapshotMessage(seq: number): Promise<Uint8Array> {
    const manager = await jetstreamManager(this.connection);
    const stored = await manager.streams.getMessage(this.subjects.snapshotStream(), { seq });
    return stored?.data ?? new Uint8Array(0);
  }

  /** The shard as a manifest holds it. */
  async restore(shard: number, manifest: Manifest): Promise<Shard> {
    const store = await this.#store(shard);
    const { fold, pieces } = await readSnapshotState(store, manifest);
    const bytes = new Map<string, Uint8Array[]>();
    for (const { parameter, index, slots } of pieces) {
      const read = slots.map(async (piece) => decodeMessage(await store.read(piece)).data);
      bytes.set(blockKey(parameter, index), await Promise.all(read));
    }
    return Shard.restore({ subjects: this.subjects, shard }, fold, (block, slot) => {
      return bytes.get(blockKey(block.parameter, block.index))?.[slot] ?? new Uint8Array(0);
    });
  }

  /** The fold of a whole journal of generation 1, from its first record. */
  async fold(shard: number): Promise<Shard> {
    const folded = Shard.create({ subjects: this.subjects, shard });
    for (const record of await this.records(shard)) folded.apply(record);
    return folded;
  }

  async #store(shard: number): Promise<SnapshotStore> {
    const manager = await jetstreamManager(this.connection);
    const client = jetstream(this.connection);
    const publisher = StreamPublisher.open(this.connection, "_INBOX");
    return new SnapshotStore({ manager, client, publisher, subjects: this.subjects, shard });
  }
}
