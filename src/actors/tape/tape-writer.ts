import {
  comparePositions,
  encodeMessage,
  ensureError,
  type Position,
  type PserverError,
} from "../../protocol/index.ts";
import type { FoldedRecord } from "../fold/fold-observer.ts";
import type { Shard } from "../fold/shard.ts";
import { describeRecord } from "../updates/describe-record.ts";
import type { UpdateEvent } from "../updates/update-event.ts";
import { TapeEncoder } from "./tape-encoder.ts";
import type { TapeStore } from "./tape-store.ts";

/** Bytes of lines from which on a message is stored; well below what any broker takes in one. */
const MESSAGE_BYTES = 64 * 1024;

/** How long a line may wait for others to share its message. */
const LINE_MS = 1_000;

/** Bytes of messages that wait to be stored from which on the fold waits. */
const WAITING_BYTES_MAX = 4 * 1024 ** 2;

/** Pause after a message that could not be stored. */
const RETRY_MS = 500;

/** Entries of a batch that are encoded before its message is measured. */
const ENTRIES_AT_ONCE = 256;

/** Dependencies of {@link TapeWriter}. */
export interface TapeWriterDeps {
  readonly store: Pick<TapeStore, "last" | "append">;
  readonly shard: number;
  /** The shard that is folded; its memory's scratch is used. */
  readonly folded: Pick<Shard, "memory" | "block">;
  /** Generation of the journal that is folded now. */
  readonly generation: () => number;
  /** Called when messages were stored: the fold may go on. */
  readonly onProgress: () => void;
  /** Called for the first failure to store a message after a success; it is retried. */
  readonly onFailed: (error: PserverError) => void;
}

/** A message that waits to be stored. */
interface WaitingMessage {
  readonly bytes: Uint8Array;
  /** Up to here all lines are stored once it is. */
  readonly covers: Position;
  /** The last record that it has lines of, perhaps not all of them. */
  readonly last: Position;
}

/**
 * Writes the tape of a shard: lines of each record that its owner folds, in the order of the journal, none
 * left out. A new owner folds the records after its snapshot again; those whose lines are stored already
 * are skipped. A message is stored only after the last one that this owner knows, so that two owners at one
 * time leave no hole; lines that both have stored are told by their positions.
 */
export class TapeWriter {
  readonly #deps: TapeWriterDeps;
  #encoder: TapeEncoder | undefined;
  #encodedGeneration = 0;
  #waiting: WaitingMessage[] = [];
  #waitingBytes = 0;
  /** Up to here, all lines are stored. */
  #covered: Position = { generation: 0, seq: 0 };
  /** Sequence of the shard's last message in the stream. */
  #lastStreamSeq = 0;
  #storing: Promise<void> | undefined;
  #lineTimer: NodeJS.Timeout | undefined;
  #retryTimer: NodeJS.Timeout | undefined;
  #hasFailed = false;
  #closed = false;

  constructor(deps: TapeWriterDeps) {
    this.#deps = deps;
  }

  /** Learns how far the tape goes; must precede {@link observe}. @throws as `TapeStore.last`. */
  async open(): Promise<void> {
    await this.#readEnd();
  }

  /** Whether the fold has to wait until messages are stored. */
  get holdsUp(): boolean {
    return this.#waitingBytes > WAITING_BYTES_MAX;
  }

  /** Takes a record that was just folded. */
  observe(folded: FoldedRecord): void {
    const generation = this.#deps.generation();
    if (this.#closed || comparePositions({ generation, seq: folded.seq }, this.#covered) <= 0)
      return;
    const { shard } = this.#deps;
    const events = describeRecord(folded, this.#deps.folded, { shard, generation });
    const encoder = this.#encoderOf(generation, folded.seq);
    for (let at = 0; at < events.length; at += ENTRIES_AT_ONCE) {
      const some = events.slice(at, at + ENTRIES_AT_ONCE);
      this.#add(encoder, some, at + ENTRIES_AT_ONCE >= events.length);
    }
    this.#lineTimer ??= setTimeout(() => this.#seal(), LINE_MS);
  }

  /**
   * Stores all lines of records up to `at`.
   * @throws why a message could not be stored; it is retried, and so may the call be.
   */
  async flush(at: Position): Promise<void> {
    this.#seal();
    while (comparePositions(at, this.#covered) > 0 && this.#waiting.length > 0) {
      clearTimeout(this.#retryTimer);
      this.#retryTimer = undefined;
      await this.#store();
    }
  }

  /** Stores nothing more: another owner completes the tape. */
  close(): void {
    this.#closed = true;
    clearTimeout(this.#lineTimer);
    clearTimeout(this.#retryTimer);
    this.#drop();
  }

  #encoderOf(generation: number, seq: number): TapeEncoder {
    if (this.#encoder === undefined || this.#encodedGeneration !== generation) {
      this.#seal();
      this.#encoder = new TapeEncoder(generation, seq - 1);
      this.#encodedGeneration = generation;
    }
    return this.#encoder;
  }

  #add(encoder: TapeEncoder, events: readonly UpdateEvent[], isWhole: boolean): void {
    encoder.add(events, isWhole);
    if (encoder.bytes >= MESSAGE_BYTES) this.#seal();
  }

  /** Makes a message of the lines that have none yet, and begins to store it. */
  #seal(): void {
    clearTimeout(this.#lineTimer);
    this.#lineTimer = undefined;
    const encoder = this.#encoder;
    if (encoder === undefined || encoder.isEmpty || this.#closed) return;
    const { fields, data } = encoder.take();
    const bytes = encodeMessage(fields, data);
    const { generation, to: seq } = fields;
    const last = { generation, seq: encoder.lastSeq };
    encoder.clear();
    this.#waiting.push({ bytes, covers: { generation, seq }, last });
    this.#waitingBytes += bytes.length;
    // A failure is reported and retried.
    this.#store().catch(() => undefined);
  }

  /** Stores the waiting messages; of several calls at one time, all get the result of the first. */
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
        this.#hasFailed = false;
        this.#deps.onProgress();
      }
    } catch (thrown) {
      const error = ensureError(thrown);
      if (this.#closed) return;
      if (!this.#hasFailed) this.#deps.onFailed(error);
      this.#hasFailed = true;
      this.#retryTimer = setTimeout(() => {
        this.#retryTimer = undefined;
        this.#store().catch(() => undefined);
      }, RETRY_MS);
      throw error;
    }
  }

  async #storeOne(message: WaitingMessage): Promise<void> {
    const seq = await this.#deps.store.append(message.bytes, this.#lastStreamSeq);
    if (this.#closed) return;
    if (seq === undefined) {
      // Another owner has written, or an earlier attempt whose answer was lost.
      await this.#readEnd();
      if (comparePositions(message.last, this.#covered) > 0) return;
    } else {
      this.#lastStreamSeq = seq;
      this.#covered = message.covers;
    }
    this.#waiting.shift();
    this.#waitingBytes -= message.bytes.length;
  }

  async #readEnd(): Promise<void> {
    const last = await this.#deps.store.last();
    if (last === undefined || this.#closed) return;
    this.#lastStreamSeq = last.streamSeq;
    this.#covered = { generation: last.generation, seq: last.to };
  }

  #drop(): void {
    this.#waiting = [];
    this.#waitingBytes = 0;
  }
}
