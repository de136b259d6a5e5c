import type { JetStreamManager } from "@nats-io/jetstream";
import {
  decodeMessage,
  JETSTREAM_ERRORS,
  type JobSubjects,
  PserverError,
  readCrc,
} from "../../protocol/index.ts";
import { fromBrokerError, jetStreamErrorCode } from "../../transport/broker-error.ts";
import { readable } from "../fold/read-record.ts";
import { decodeManifest, type Manifest, type PieceRef, type StoredManifest } from "./manifest.ts";

/** Dependencies of {@link SnapshotReader}. */
export interface SnapshotReaderDeps {
  readonly manager: JetStreamManager;
  readonly subjects: JobSubjects;
  readonly shard: number;
}

/** A message of the snapshot stream. */
interface StoredMessage {
  readonly seq: number;
  readonly data: Uint8Array;
  /** When the broker stored it, in milliseconds since 1970. */
  readonly timeMs: number;
}

/** A manifest in the stream: its sequence, when it was stored, and what it says if it can be read. */
export interface DatedManifest extends Omit<StoredMessage, "data"> {
  readonly manifest: Manifest | undefined;
}

/** Reads one shard's part of the snapshot stream of a job. */
export class SnapshotReader {
  readonly #deps: SnapshotReaderDeps;
  readonly #subjects: JobSubjects;
  readonly #shard: number;

  constructor(deps: SnapshotReaderDeps) {
    this.#deps = deps;
    this.#subjects = deps.subjects;
    this.#shard = deps.shard;
  }

  /**
   * Reads the message that a reference names into a buffer of its own.
   * @throws SNAPSHOT_DAMAGED if it is gone or its bytes have changed.
   */
  async read(piece: PieceRef): Promise<Uint8Array> {
    const bytes = await this.#bytes(piece.seq);
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
    const stored = await this.message({ last_by_subj: subject });
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

  /** As {@link manifests}, with their times, and with undefined for a manifest that cannot be read. */
  async manifestEntries(): Promise<DatedManifest[]> {
    const found = await this.#manifestMessages();
    return found.map(({ seq, data, timeMs }) => {
      return { seq, timeMs, manifest: readable(() => decodeManifest(data)) };
    });
  }

  async #manifestMessages(): Promise<StoredMessage[]> {
    const subject = this.#subjects.manifest(this.#shard);
    const found: StoredMessage[] = [];
    for (let seq = 1; ; ) {
      const stored = await this.message({ seq, next_by_subj: subject });
      if (stored === undefined) return found;
      found.push(stored);
      seq = stored.seq + 1;
    }
  }

  async #bytes(seq: number): Promise<Uint8Array | undefined> {
    const stream = this.#subjects.snapshotStream();
    try {
      // Direct get sends plain bytes; only a message that it lacks is read from the leader, in base64.
      const direct = await this.#deps.manager.direct.getMessage(stream, { seq });
      if (direct !== null) return Uint8Array.from(direct.data);
    } catch (error) {
      if (fromBrokerError(error, "reading").code === "CLOSED")
        throw fromBrokerError(error, "reading");
    }
    return (await this.message({ seq }))?.data;
  }

  /** One message as the leader has it; undefined if there is none. */
  protected async message(
    query: { seq: number; next_by_subj?: string } | { last_by_subj: string },
  ): Promise<StoredMessage | undefined> {
    try {
      const stored = await this.#deps.manager.streams.getMessage(
        this.#subjects.snapshotStream(),
        query,
      );
      if (stored === null) return undefined;
      return { seq: stored.seq, data: stored.data, timeMs: stored.time.getTime() };
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
