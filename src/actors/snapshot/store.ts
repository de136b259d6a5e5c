import type { JetStreamClient, JetStreamManager } from "@nats-io/jetstream";
import { JETSTREAM_ERRORS, type JobSubjects, PserverError, readCrc } from "../../protocol/index.ts";
import {
  fromBrokerError,
  fromStoreError,
  isWrongSequence,
  jetStreamErrorCode,
} from "../../transport/broker-error.ts";
import type { StreamPublisher } from "../../transport/stream-publisher.ts";
import { brokerCall } from "../jetstream/broker-call.ts";
import { scanStream } from "../jetstream/scan-stream.ts";
import { ensureFileStream } from "../jetstream/streams.ts";
import { decodeManifest, encodeManifest, type Manifest, type PieceRef } from "./manifest.ts";
import { SnapshotReader, type SnapshotReaderDeps } from "./snapshot-reader.ts";

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
export interface SnapshotStoreDeps extends SnapshotReaderDeps {
  readonly client: JetStreamClient;
  readonly publisher: StreamPublisher;
}

/** One shard's part of the snapshot stream of a job, for its owner. */
export class SnapshotStore extends SnapshotReader {
  readonly #deps: SnapshotStoreDeps;
  readonly #subjects: JobSubjects;
  readonly #shard: number;
  #stored = 0;

  constructor(deps: SnapshotStoreDeps) {
    super(deps);
    this.#deps = deps;
    this.#subjects = deps.subjects;
    this.#shard = deps.shard;
  }

  /** How many messages this store has stored beside manifests. */
  get stored(): number {
    return this.#stored;
  }

  /** Stores one message; returns the reference to it. */
  async publish(subject: string, bytes: Uint8Array): Promise<PieceRef> {
    try {
      const seq = await this.#deps.publisher.publish(subject, bytes, STORE_TIMEOUT_MS);
      this.#stored += 1;
      return { seq, crc: readCrc(bytes) };
    } catch (error) {
      throw fromStoreError(error, `storing a snapshot of shard ${this.#shard}`, {
        shard: this.#shard,
      });
    }
  }

  /**
   * Writes a manifest after the one with sequence `previousSeq` (0: the first of the shard). Recognizes
   * a write whose answer was lost: this one, or an earlier one of the same owner.
   * @param ended why nothing may be written any more, as a later manifest of the owner may be there; asked
   * before the write is repeated.
   * @returns its sequence.
   * @throws NOT_OWNER if another owner has written since: this one is deposed; what `ended` returns.
   */
  async commit(
    manifest: Manifest,
    previousSeq: number,
    ended: () => PserverError | undefined = () => undefined,
  ): Promise<number> {
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
        const stored = await this.message({ last_by_subj: subject });
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
        const reason = ended();
        if (reason !== undefined) throw reason;
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

  /** Deletes messages, without overwriting their bytes; those that are gone already count as deleted. */
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
}

/** Creates the snapshot stream of a job unless it exists. */
export async function ensureSnapshotStream(
  manager: JetStreamManager,
  subjects: JobSubjects,
  replicas: number,
): Promise<void> {
  const name = subjects.snapshotStream();
  const config = { name, subjects: [subjects.allSnapshots()], num_replicas: replicas };
  await brokerCall(`creating the snapshot stream of job ${subjects.job}`, {}, () =>
    ensureFileStream(manager, config),
  );
}
