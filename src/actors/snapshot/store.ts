import {
  DiscardPolicy,
  type JetStreamClient,
  type JetStreamManager,
  RetentionPolicy,
  StorageType,
} from "@nats-io/jetstream";
import {
  decodeMessage,
  JETSTREAM_ERRORS,
  type JobSubjects,
  PserverError,
  readCrc,
} from "../../protocol/index.ts";
import {
  fromBrokerError,
  fromStoreError,
  isWrongSequence,
  jetStreamErrorCode,
} from "../../transport/broker-error.ts";
import type { StreamPublisher } from "../../transport/stream-publisher.ts";
import { readable } from "../fold/read-record.ts";
import { scanStream } from "../jetstream/scan-stream.ts";
import { streamExists } from "../jetstream/streams.ts";
import {
  decodeManifest,
  encodeManifest,
  type Manifest,
  type PieceRef,
  type StoredManifest,
} from "./manifest.ts";

/** How long the broker may take to store one piece. */
const STORE_TIMEOUT_MS = 10_000;

/** How long listing a shard's messages may take without a sign of progress. */
const LIST_TIMEOUT_MS = 2_000;

/** Answers of the broker to deleting a message that is not there: not found, or deleted before. */
const GONE: readonly number[] = [
  JETSTREAM_ERRORS.SEQUENCE_NOT_FOUND,
  JETSTREAM_ERRORS.MESSAGE_NOT_REMOVED,
  JETSTREAM_ERRORS.MESSAGE_NOT_FOUND,
];

/** The snapshot stream of a job, as one shard uses it. */
export class SnapshotStore {
  readonly #manager: JetStreamManager;
  readonly #client: JetStreamClient;
  readonly #publisher: StreamPublisher;
  readonly #subjects: JobSubjects;
  readonly #shard: number;

  constructor(options: {
    readonly manager: JetStreamManager;
    readonly client: JetStreamClient;
    readonly publisher: StreamPublisher;
    readonly subjects: JobSubjects;
    readonly shard: number;
  }) {
    this.#manager = options.manager;
    this.#client = options.client;
    this.#publisher = options.publisher;
    this.#subjects = options.subjects;
    this.#shard = options.shard;
  }

  /** Stores one message; the sequence and checksum name it from then on. */
  async publish(subject: string, bytes: Uint8Array): Promise<PieceRef> {
    try {
      const seq = await this.#publisher.publish(subject, bytes, STORE_TIMEOUT_MS);
      return { seq, crc: readCrc(bytes) };
    } catch (error) {
      throw fromStoreError(error, `storing a snapshot of shard ${this.#shard}`, {
        shard: this.#shard,
      });
    }
  }

  /**
   * The message that a reference names, as its own copy.
   * @throws SNAPSHOT_DAMAGED if it is gone or its bytes have changed.
   */
  async read(piece: PieceRef): Promise<Uint8Array> {
    const bytes = await this.#message(piece.seq);
    if (bytes === undefined) throw this.#damaged(piece, "is not in the stream");
    try {
      decodeMessage(bytes);
    } catch (cause) {
      throw this.#damaged(piece, "cannot be read", cause);
    }
    if (readCrc(bytes) !== piece.crc) throw this.#damaged(piece, "has another checksum");
    return bytes;
  }

  /** The newest manifest, read from the leader; undefined if the shard has none. */
  async lastManifest(): Promise<StoredManifest | undefined> {
    const subject = this.#subjects.manifest(this.#shard);
    const stored = await this.#get({ last_by_subj: subject });
    return stored && { seq: stored.seq, manifest: decodeManifest(stored.data) };
  }

  /**
   * All manifests that are kept, oldest first.
   * @throws SNAPSHOT_DAMAGED if one cannot be read.
   */
  async manifests(): Promise<StoredManifest[]> {
    const found = await this.#manifestMessages();
    return found.map(({ seq, data }) => ({ seq, manifest: decodeManifest(data) }));
  }

  /** As {@link manifests}, without a manifest where one cannot be read. */
  async manifestEntries(): Promise<{ seq: number; manifest: Manifest | undefined }[]> {
    const found = await this.#manifestMessages();
    return found.map(({ seq, data }) => ({ seq, manifest: readable(() => decodeManifest(data)) }));
  }

  async #manifestMessages(): Promise<{ seq: number; data: Uint8Array }[]> {
    const subject = this.#subjects.manifest(this.#shard);
    const found: { seq: number; data: Uint8Array }[] = [];
    for (let seq = 1; ; ) {
      const stored = await this.#get({ seq, next_by_subj: subject });
      if (stored === undefined) return found;
      found.push(stored);
      seq = stored.seq + 1;
    }
  }

  /**
   * Writes a manifest after the one with sequence `previousSeq` (0: the first of the shard).
   * @returns its sequence. A write whose answer was lost is recognized and counts: this one, and
   * an earlier one of the same owner.
   * @throws NOT_OWNER if another owner has written since: this one is deposed.
   */
  async commit(manifest: Manifest, previousSeq: number): Promise<number> {
    const bytes = encodeManifest(manifest);
    const subject = this.#subjects.manifest(this.#shard);
    for (let expected = previousSeq; ; ) {
      try {
        const ack = await this.#client.publish(subject, bytes, {
          timeout: STORE_TIMEOUT_MS,
          expect: { lastSubjectSequence: expected },
        });
        return ack.seq;
      } catch (error) {
        const stored = await this.#get({ last_by_subj: subject });
        if (stored !== undefined && Buffer.compare(stored.data, bytes) === 0) return stored.seq;
        // A cluster refuses a write while another is under way; nobody has written yet.
        if (!isWrongSequence(error) || (stored?.seq ?? 0) === expected) {
          throw fromStoreError(error, `committing a snapshot of shard ${this.#shard}`, {
            shard: this.#shard,
          });
        }
        const last = stored && { seq: stored.seq, manifest: decodeManifest(stored.data) };
        if (last?.manifest.owner !== manifest.owner || last.seq <= expected) {
          throw this.#deposed(manifest, last?.manifest, error);
        }
        expected = last.seq;
      }
    }
  }

  #deposed(manifest: Manifest, last: Manifest | undefined, cause: unknown): PserverError {
    return new PserverError(
      "NOT_OWNER",
      `shard ${this.#shard}: host ${last?.host ?? "?"} has taken over under term ${last?.term ?? "?"}`,
      { shard: this.#shard, expected: manifest.term, received: last?.term },
      { cause },
    );
  }

  /** The sequences of all messages of the shard. */
  async list(): Promise<number[]> {
    const sequences: number[] = [];
    try {
      const scan = {
        manager: this.#manager,
        client: this.#client,
        stream: this.#subjects.snapshotStream(),
        start: { filter_subject: this.#subjects.shardSnapshots(this.#shard) },
        graceMs: LIST_TIMEOUT_MS,
      };
      await scanStream(scan, (seq) => sequences.push(seq) > 0);
      return sequences;
    } catch (error) {
      throw fromBrokerError(error, `listing snapshots of shard ${this.#shard}`, {
        shard: this.#shard,
      });
    }
  }

  /** Deletes messages; one that is gone already counts as deleted. */
  async remove(sequences: Iterable<number>): Promise<void> {
    const stream = this.#subjects.snapshotStream();
    for (const seq of sequences) {
      try {
        await this.#manager.streams.deleteMessage(stream, seq, false);
      } catch (error) {
        if (!GONE.includes(jetStreamErrorCode(error))) {
          throw fromBrokerError(error, `deleting snapshot message ${seq}`, { shard: this.#shard });
        }
      }
    }
  }

  async #message(seq: number): Promise<Uint8Array | undefined> {
    const stream = this.#subjects.snapshotStream();
    try {
      // Direct get sends plain bytes; the leader's answer, base64 in JSON, is for what it lacks.
      const direct = await this.#manager.direct.getMessage(stream, { seq });
      if (direct !== null) return Uint8Array.from(direct.data);
    } catch (error) {
      if (fromBrokerError(error, "reading").code === "CLOSED")
        throw fromBrokerError(error, "reading");
    }
    return (await this.#get({ seq }))?.data;
  }

  async #get(
    query: { seq: number; next_by_subj?: string } | { last_by_subj: string },
  ): Promise<{ seq: number; data: Uint8Array } | undefined> {
    try {
      const stored = await this.#manager.streams.getMessage(this.#subjects.snapshotStream(), query);
      return stored === null ? undefined : { seq: stored.seq, data: stored.data };
    } catch (error) {
      if (jetStreamErrorCode(error) === JETSTREAM_ERRORS.MESSAGE_NOT_FOUND) return undefined;
      throw fromBrokerError(error, `reading snapshots of shard ${this.#shard}`, {
        shard: this.#shard,
      });
    }
  }

  #damaged(piece: PieceRef, what: string, cause?: unknown): PserverError {
    return new PserverError(
      "SNAPSHOT_DAMAGED",
      `shard ${this.#shard}: snapshot message ${piece.seq} ${what}`,
      { shard: this.#shard, seq: piece.seq },
      { cause },
    );
  }
}

/**
 * Makes the snapshot stream of a job if it is not there. One that is there is not asked for again: a
 * broker that has less room than it has promised refuses that, and an existing job needs none.
 */
export async function ensureSnapshotStream(
  manager: JetStreamManager,
  subjects: JobSubjects,
  replicas: number,
): Promise<void> {
  const name = subjects.snapshotStream();
  try {
    if (await streamExists(manager, name)) return;
    await manager.streams.add({
      name,
      subjects: [subjects.allSnapshots()],
      storage: StorageType.File,
      retention: RetentionPolicy.Limits,
      discard: DiscardPolicy.New,
      num_replicas: replicas,
      allow_direct: true,
    });
  } catch (error) {
    throw fromBrokerError(error, `creating the snapshot stream of job ${subjects.job}`);
  }
}
