import type { JetStreamClient, JetStreamManager } from "@nats-io/jetstream";
import {
  comparePositions,
  encodeMessage,
  ensureError,
  JETSTREAM_ERRORS,
  type JobSubjects,
  type Position,
  PserverError,
} from "../../../protocol/index.ts";
import {
  fromStoreError,
  isWrongSequence,
  jetStreamErrorCode,
} from "../../../transport/broker-error.ts";
import { type FoldedRecord, type FoldObserver, readable } from "../../fold/journal-record.ts";
import type { Shard } from "../../fold/shard.ts";
import { describeRecord, type UpdateEvent, undescribed } from "../describe-record.ts";
import { brokerCall, ensureFileStream } from "../streams.ts";
import { type TapeSpan, tapeSpan } from "./tape-decoder.ts";
import { TapeEncoder } from "./tape-encoder.ts";

/** Time limit for storing one message. */
const STORE_TIMEOUT_MS = 10_000;

/** Dependencies of {@link TapeStore}. */
export interface TapeStoreDeps {
  readonly client: Pick<JetStreamClient, "publish">;
  readonly manager: JetStreamManager;
  readonly subjects: JobSubjects;
  readonly shard: number;
}

/** The last message of a shard's tape: its sequence in the stream, and what it covers. */
export interface TapeEnd extends TapeSpan {
  readonly streamSeq: number;
}

/** One shard's part of the tape of a job, for its owner. */
export class TapeStore {
  readonly #deps: TapeStoreDeps;

  constructor(deps: TapeStoreDeps) {
    this.#deps = deps;
  }

  /**
   * Reads the last message; undefined if there is none. A message that cannot be read covers nothing: its lines are
   * written again.
   * @throws TIMEOUT, ….
   */
  async last(): Promise<TapeEnd | undefined> {
    const { manager, subjects, shard } = this.#deps;
    const stream = subjects.tapeStream();
    return await brokerCall(`reading the tape of shard ${shard}`, { shard }, async () => {
      try {
        const last = await manager.streams.getMessage(stream, {
          last_by_subj: subjects.tape(shard),
        });
        if (last === null) return undefined;
        const span = readable(() => tapeSpan(last.data)) ?? { generation: 0, from: 0, to: 0 };
        return { streamSeq: last.seq, ...span };
      } catch (error) {
        if (jetStreamErrorCode(error) === JETSTREAM_ERRORS.MESSAGE_NOT_FOUND) return undefined;
        throw error;
      }
    });
  }

  /**
   * Appends a message after the one with sequence `after` in the stream (0: the first of the shard).
   * @returns its sequence; undefined if the last message is another one.
   * @throws NO_SPACE, TIMEOUT, … if it was not stored, or nobody knows.
   */
  async append(bytes: Uint8Array, after: number): Promise<number | undefined> {
    const { client, subjects, shard } = this.#deps;
    try {
      const ack = await client.publish(subjects.tape(shard), bytes, {
        timeout: STORE_TIMEOUT_MS,
        expect: { lastSubjectSequence: after },
      });
      return ack.seq;
    } catch (error) {
      if (isWrongSequence(error)) return undefined;
      throw fromStoreError(error, `writing the tape of shard ${shard}`, { shard });
    }
  }
}

/** The storage that a job's tape takes in the broker. */
export interface TapeStorage {
  readonly messages: number;
  readonly bytes: number;
}

/**
 * Reads how much storage the tape of a job takes in the broker.
 * @throws TIMEOUT, JETSTREAM_UNAVAILABLE and the like.
 */
export async function readTapeStorage(
  manager: JetStreamManager,
  subjects: JobSubjects,
): Promise<TapeStorage> {
  const stream = subjects.tapeStream();
  return await brokerCall(`looking at the tape of job ${subjects.job}`, { stream }, async () => {
    const { messages, bytes } = (await manager.streams.info(stream)).state;
    return { messages, bytes };
  });
}

/** Creates the stream of a job's tape unless it exists. Nothing is ever removed from it. */
export async function ensureTapeStream(
  manager: JetStreamManager,
  subjects: JobSubjects,
  replicas: number,
): Promise<void> {
  const name = subjects.tapeStream();
  const config = { name, subjects: [subjects.allTapes()], num_replicas: replicas };
  await brokerCall(`creating the tape of job ${subjects.job}`, {}, () =>
    ensureFileStream(manager, { ...config, deny_delete: true, deny_purge: true }),
  );
}

/** Bytes of lines that fill a message; well below what any broker takes in one. */
const MESSAGE_BYTES = 64 * 1024;

/** How long a line may wait for others to share its message. */
const LINE_MS = 1_000;

/** Limit of the bytes of messages that wait to be stored; beyond it the fold waits, or lines are left out. */
const WAITING_BYTES_MAX = 4 * 1024 ** 2;

/**
 * How long storing may fail before the fold and snapshots stop waiting for the tape: a shard is better served without
 * its tape than not at all.
 */
const PATIENCE_MS = 10_000;

/** Pause after a failure to store a message. */
const RETRY_MS = 500;

/** How many entries of a batch are encoded before the size of the message is checked. */
const ENTRIES_AT_ONCE = 256;

/** Dependencies of {@link TapeWriter}. */
export interface TapeWriterDeps {
  readonly store: Pick<TapeStore, "last" | "append">;
  readonly shard: number;
  /** The shard being folded. The writer uses the scratch of its memory. */
  readonly folded: Pick<Shard, "memory" | "block">;
  /** Returns the generation of the journal being folded. */
  readonly generation: () => number;
  /** Called when messages were stored, or failed to be, so that the fold may go on. */
  readonly onProgress: () => void;
  /** Called for the first failure to store a message after a success. Storing is retried. */
  readonly onFailed: (error: PserverError) => void;
  /** Called for the first record that could not be described, and for the first lines left out. */
  readonly onIncomplete: (error: PserverError) => void;
}

/** Counts of records whose lines on the tape are missing or empty. */
export interface TapeGaps {
  /** Records whose lines only say that they could not be described. */
  readonly undescribed: number;
  /** Records without lines. */
  readonly leftOut: number;
}

/** A message that waits to be stored. */
interface WaitingMessage {
  readonly bytes: Uint8Array;
  /** Up to this position all lines are stored once the message is. */
  readonly covers: Position;
  /** The last record that the message has lines of, perhaps not all of them. */
  readonly last: Position;
}

/**
 * Writes the tape of a shard: lines of each record that its owner folds, in the order of the journal, without a gap.
 * A new owner folds the records after its snapshot again; it skips those whose lines are stored already. A message is
 * stored only after the last one that this owner knows, so that two owners at one time leave no hole; lines that both
 * have stored are recognized by their positions.
 *
 * Failures of the tape never stop the shard: a record that cannot be described has a line that says so; while no
 * message can be stored, the shard waits {@link PATIENCE_MS}, and then leaves lines out.
 */
export class TapeWriter implements FoldObserver {
  readonly #deps: TapeWriterDeps;
  #encoder: TapeEncoder | undefined;
  #encodedGeneration = 0;
  #waiting: WaitingMessage[] = [];
  #waitingBytes = 0;
  /** Up to this position, all lines are stored. */
  #covered: Position = { generation: 0, seq: 0 };
  /** Sequence of the shard's last message in the stream; undefined while it is not known. */
  #lastStreamSeq: number | undefined;
  #storing: Promise<void> | undefined;
  #lineTimer: NodeJS.Timeout | undefined;
  #retryTimer: NodeJS.Timeout | undefined;
  /** The first failure to store since the last success, and when it was; undefined after a success. */
  #failure: { readonly error: PserverError; readonly atMs: number } | undefined;
  #undescribed = 0;
  #leftOut = 0;
  #closed = false;

  constructor(deps: TapeWriterDeps) {
    this.#deps = deps;
  }

  /**
   * Reads how far the tape goes. Must precede {@link observe}. If it fails, it is repeated before lines are stored.
   */
  async open(): Promise<void> {
    try {
      await this.#readEnd();
    } catch (error) {
      this.#noteFailure(ensureError(error));
    }
  }

  /** Whether the fold must wait until messages are stored. */
  get holdsUp(): boolean {
    return this.#waitingBytes > WAITING_BYTES_MAX && !this.#isGivenUp;
  }

  /** Counts of records whose lines are missing or empty, since this writer was made. */
  get gaps(): TapeGaps {
    return { undescribed: this.#undescribed, leftOut: this.#leftOut };
  }

  /** Takes a record that was just folded. */
  observe(folded: FoldedRecord): void {
    if (!this.#isWanted(folded)) return;
    if (this.#failure !== undefined && this.#isGivenUp && this.#waitingBytes > WAITING_BYTES_MAX) {
      // Lines after a hole are in another message than those before it, so that readers notice the hole.
      this.#seal();
      this.#encoder = undefined;
      this.#leaveOut(1, folded.seq, this.#failure.error);
      return;
    }
    const place = { shard: this.#deps.shard, generation: this.#deps.generation() };
    this.#write(describeRecord(folded, this.#deps.folded, place));
  }

  /** Takes a record that could not be described or written, and writes a line that says so. */
  failed(folded: FoldedRecord, error: PserverError): void {
    if (!this.#isWanted(folded)) return;
    const { shard } = this.#deps;
    const { seq } = folded;
    this.#undescribed += 1;
    if (this.#undescribed === 1) {
      const text = `shard ${shard}: record ${seq} was folded, but cannot be described: ${error.code}: ${error.message}`;
      this.#deps.onIncomplete(new PserverError("INTERNAL", text, { shard, seq }, { cause: error }));
    }
    this.#write([undescribed(folded, { shard, generation: this.#deps.generation() }, error)]);
  }

  /**
   * Stores all lines of records up to `at`; returns without that if no message could be stored for {@link
   * PATIENCE_MS}.
   * @throws the reason why a message could not be stored. Storing is retried, and the call may be, too.
   */
  async flush(at: Position): Promise<void> {
    this.#seal();
    while (comparePositions(at, this.#covered) > 0 && this.#waiting.length > 0) {
      clearTimeout(this.#retryTimer);
      this.#retryTimer = undefined;
      try {
        await this.#store();
      } catch (error) {
        if (this.#isGivenUp) return;
        throw error;
      }
    }
  }

  /** Stops storing; another owner completes the tape. */
  close(): void {
    this.#closed = true;
    clearTimeout(this.#lineTimer);
    clearTimeout(this.#retryTimer);
    this.#drop();
  }

  /** Whether the tape still lacks a record's lines. */
  #isWanted({ seq }: FoldedRecord): boolean {
    const at = { generation: this.#deps.generation(), seq };
    return !this.#closed && comparePositions(at, this.#covered) > 0;
  }

  /** Whether storing has failed for so long that nothing waits for the tape any more. */
  get #isGivenUp(): boolean {
    return this.#failure !== undefined && performance.now() - this.#failure.atMs >= PATIENCE_MS;
  }

  /** Adds the lines of one record. @throws INTERNAL if they cannot be written. */
  #write(events: readonly UpdateEvent[]): void {
    const [first] = events;
    if (first === undefined) return;
    const encoder = this.#encoderOf(first.generation, first.seq);
    for (let at = 0; at < events.length; at += ENTRIES_AT_ONCE) {
      encoder.add(events.slice(at, at + ENTRIES_AT_ONCE), at + ENTRIES_AT_ONCE >= events.length);
      if (encoder.bytes >= MESSAGE_BYTES) this.#seal();
    }
    this.#lineTimer ??= setTimeout(() => this.#seal(), LINE_MS);
  }

  #encoderOf(generation: number, seq: number): TapeEncoder {
    if (this.#encoder === undefined || this.#encodedGeneration !== generation) {
      this.#seal();
      this.#encoder = new TapeEncoder(generation, seq - 1);
      this.#encodedGeneration = generation;
    }
    return this.#encoder;
  }

  /** Makes a message of the lines added since the last one, and begins to store it. */
  #seal(): void {
    clearTimeout(this.#lineTimer);
    this.#lineTimer = undefined;
    const encoder = this.#encoder;
    if (encoder === undefined || encoder.isEmpty || this.#closed) return;
    const { records, lastSeq } = encoder;
    try {
      const { fields, data } = encoder.take();
      const bytes = encodeMessage(fields, data);
      const { generation, to: seq } = fields;
      const last = { generation, seq: lastSeq };
      this.#waiting.push({ bytes, covers: { generation, seq }, last });
      this.#waitingBytes += bytes.length;
    } catch (error) {
      this.#leaveOut(records, lastSeq, ensureError(error));
      this.#encoder = undefined;
      return;
    }
    encoder.clear();
    // Failures are reported elsewhere, and retried.
    this.#store().catch(() => undefined);
  }

  /** Counts records whose lines are left out, `seq` being the last of them, and reports the first time. */
  #leaveOut(records: number, seq: number, cause: PserverError): void {
    const { shard, onIncomplete } = this.#deps;
    const isFirst = this.#leftOut === 0;
    this.#leftOut += records;
    if (!isFirst) return;
    const text = `shard ${shard}: records have no lines, the last of them ${seq}: ${cause.message}`;
    onIncomplete(new PserverError(cause.code, text, { shard, seq }, { cause }));
  }

  /** Stores the waiting messages. Calls during another one get its result. */
  #store(): Promise<void> {
    if (this.#retryTimer !== undefined) return Promise.resolve();
    this.#storing ??= this.#storeAll().finally(() => {
      this.#storing = undefined;
    });
    return this.#storing;
  }

  async #storeAll(): Promise<void> {
    try {
      for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
        await this.#storeOne(next);
        if (this.#closed) return;
        this.#failure = undefined;
        this.#deps.onProgress();
      }
    } catch (thrown) {
      const error = ensureError(thrown);
      if (this.#closed) return;
      this.#noteFailure(error);
      this.#retryTimer = setTimeout(() => {
        this.#retryTimer = undefined;
        this.#store().catch(() => undefined);
      }, RETRY_MS);
      this.#deps.onProgress();
      throw error;
    }
  }

  #noteFailure(error: PserverError): void {
    if (this.#failure !== undefined) return;
    this.#failure = { error, atMs: performance.now() };
    this.#deps.onFailed(error);
  }

  async #storeOne(message: WaitingMessage): Promise<void> {
    if (this.#lastStreamSeq === undefined) await this.#readEnd();
    if (this.#closed) return;
    if (!this.#isStored(message)) {
      const seq = await this.#deps.store.append(message.bytes, this.#lastStreamSeq ?? 0);
      if (this.#closed) return;
      if (seq === undefined) {
        // Another owner has written, or an earlier attempt of this one whose answer was lost.
        await this.#readEnd();
        if (!this.#isStored(message)) return;
      } else {
        this.#lastStreamSeq = seq;
        this.#covered = message.covers;
      }
    }
    this.#waiting.shift();
    this.#waitingBytes -= message.bytes.length;
  }

  #isStored({ last }: WaitingMessage): boolean {
    return comparePositions(last, this.#covered) <= 0;
  }

  async #readEnd(): Promise<void> {
    const last = await this.#deps.store.last();
    if (this.#closed) return;
    this.#lastStreamSeq = last?.streamSeq ?? 0;
    if (last !== undefined) this.#covered = { generation: last.generation, seq: last.to };
  }

  #drop(): void {
    this.#waiting = [];
    this.#waitingBytes = 0;
  }
}
