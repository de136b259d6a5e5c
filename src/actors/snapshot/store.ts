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
import { brokerCall } from "../jetstream/broker-call.ts";
import { scanStream } from "../jetstream/scan-stream.ts";
import { streamExists } from "../jetstream/streams.ts";
import {
  decodeManifest,
  encodeManifest,
  type Manifest,
  type PieceRef,
  type StoredManifest,
} from "./manifest.ts";

/** Time limit for storing one message. */
const STORE_TIMEOUT_MS = 10_000;

/** Time limit for listing a shard's messages without progress. */
const LIST_TIMEOUT_MS = 2_000;

/** Error codes of the broker for deleting a message that is gone already. */
const GONE: readonly number[] = [
  JETSTREAM_ERRORS.SEQUENCE_NOT_FOUND,
  JETSTREAM_ERRORS.MESSAGE_NOT_REMOVED,
  JETSTREAM_ERRORS.MESSAGE_NOT_FOUND,
];

/** Dependencies of {@link SnapshotStore}. */
export interface SnapshotStoreDeps {
  readonly manager: JetStreamManager;
  readonly client: JetStreamClient;
  readonly publisher: StreamPublisher;
  readonly subjects: JobSubjects;
  readonly shard: number;
}

/** One shard's part of the snapshot stream of a job. */
export class SnapshotStore {
  readonly #deps: SnapshotStoreDeps;
  readonly #subjects: JobSubjects;
  readonly #shard: number;

  constructor(deps: SnapshotStoreDeps) {
    this.#deps = deps;
    this.#subjects = deps.subjects;
    this.#shard = deps.shard;
  }

  /** Stores one message; returns the reference to it. */
  async publish(subject: string, bytes: Uint8Array): Promise<PieceRef> {
    try {
      const seq = await this.#deps.publisher.publish(subject, bytes, STORE_TIMEOUT_MS);
      return { seq, crc: readCrc(bytes) };
    } catch (error) {
      throw fromStoreError(error, `storing a snapshot of shard ${this.#shard}`, {
        shard: this.#shard,
      });
    }
  }

  /**
   * Reads the message that a reference names into a buffer of its own.
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

  /** The newest manifest, read from the leader; undefined without one. */
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

  /** As {@link manifests}, with undefined for a manifest that cannot be read. */
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
   * Writes a manifest after the one with sequence `previousSeq` (0: the first of the shard). Recognizes
   * a write whose answer was lost: this one, or an earlier one of the same owner.
   * @returns its sequence.
   * @throws NOT_OWNER if another owner has written since: this one is deposed.
   */
  async commit(manifest: Manifest, previousSeq: number): Promise<number> {
    const bytes = encodeManifest(manifest);
    const subject = this.#subjects.manifest(this.#shard);
    for (let expected = previousSeq; ; ) {
      try {
        const ack = await this.#deps.client.publish(subject, bytes, {
          timeout: STORE_TIMEOUT_MS,
          expect: { lastSubjectSequence: expected },
        });
        return ack.seq;
      } catch (error) {
        const stored = await this.#get({ last_by_subj: subject });
        if (stored !== undefined && Buffer.compare(stored.data, bytes) === 0) return stored.seq;
        // A cluster refuses concurrent writes; here nobody has written yet.
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
    const { manager, client, subjects, shard } = this.#deps;
    const sequences: number[] = [];
    const scan = {
      ...{ manager, client, graceMs: LIST_TIMEOUT_MS },
      stream: subjects.snapshotStream(),
      start: { filter_subject: subjects.shardSnapshots(shard) },
    };
    await brokerCall(`listing snapshots of shard ${shard}`, { shard }, () =>
      scanStream(scan, (seq) => sequences.push(seq) > 0),
    );
    return sequences;
  }

  /** Deletes messages; those that are gone already count as deleted. */
  async remove(sequences: Iterable<number>): Promise<void> {
    const stream = this.#subjects.snapshotStream();
    for (const seq of sequences) {
      try {
        await this.#deps.manager.streams.deleteMessage(stream, seq, false);
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
      // Direct get sends plain bytes; only a message that it lacks is read from the leader, in base64.
      const direct = await this.#deps.manager.direct.getMessage(stream, { seq });
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
      const stored = await this.#deps.manager.streams.getMessage(
        this.#subjects.snapshotStream(),
        query,
      );
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
 * Creates the snapshot stream of a job unless it exists. An existing one is not requested again: a
 * broker that has less storage than it has promised would refuse that.
 */
export async function ensureSnapshotStream(
  manager: JetStreamManager,
  subjects: JobSubjects,
  replicas: number,
): Promise<void> {
  const name = subjects.snapshotStream();
  await brokerCall(`creating the snapshot stream of job ${subjects.job}`, {}, async () => {
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
  });
}
