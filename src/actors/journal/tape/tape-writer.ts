import {
  comparePositions,
  encodeMessage,
  ensureError,
  type Position,
  PserverError,
  quoteName,
} from "../../../protocol/index.ts";
import type { FoldedRecord, FoldObserver } from "../../fold/journal-record.ts";
import type { Shard } from "../../fold/shard.ts";
import {
  type BatchLines,
  batchLines,
  describeRecord,
  leftOutLine,
  senderOf,
  type UpdateEvent,
  undescribed,
} from "../describe-record.ts";
import { TapeAllowance } from "./tape-allowance.ts";
import { TapeEncoder } from "./tape-encoder.ts";
import type { TapeStore } from "./tape-store.ts";

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
  /** The shard's part of the bytes that the tape may have. */
  readonly bytesMax: number;
  /** The shard being folded. The writer uses the scratch of its memory. */
  readonly folded: Pick<Shard, "memory" | "block" | "nameOfNumber">;
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
  /** Records without lines, because these could not be stored. */
  readonly leftOut: number;
  /** Records without lines, because their trainers had used up their allowances. */
  readonly thinned: number;
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
  readonly measures = true;
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
  readonly #allowance: TapeAllowance;
  #undescribed = 0;
  #leftOut = 0;
  #thinned = 0;
  #closed = false;

  constructor(deps: TapeWriterDeps) {
    this.#deps = deps;
    this.#allowance = new TapeAllowance(deps.bytesMax);
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
    const [undescribed, leftOut, thinned] = [this.#undescribed, this.#leftOut, this.#thinned];
    return { undescribed, leftOut, thinned };
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
    if (this.#isThinned(folded, place)) return;
    const batch = batchLines(folded, this.#deps.folded, place);
    if (batch === undefined) {
      this.#writeFor(folded, describeRecord(folded, this.#deps.folded, place));
    } else {
      this.#charge(folded, this.#writeBatch(batch));
    }
  }

  /** Takes a record that could not be described or written, and writes a line that says so. */
  failed(folded: FoldedRecord, error: PserverError): void {
    if (!this.#isWanted(folded)) return;
    const { shard } = this.#deps;
    const { seq } = folded;
    const place = { shard, generation: this.#deps.generation() };
    this.#undescribed += 1;
    if (this.#undescribed === 1) {
      const text = `shard ${shard}: record ${seq} was folded, but cannot be described: ${error.code}: ${error.message}`;
      this.#deps.onIncomplete(new PserverError("INTERNAL", text, { shard, seq }, { cause: error }));
    }
    if (this.#isThinned(folded, place)) return;
    this.#writeFor(folded, [undescribed(folded, place, error)]);
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

  /**
   * Whether a record gets no line, because its trainer has used up its allowance. Adds a line that says so for the
   * first of such records, the second, the fourth and so on, and for the last one.
   */
  #isThinned(folded: FoldedRecord, place: { shard: number; generation: number }): boolean {
    const trainer = senderOf(folded);
    if (trainer === undefined) return false;
    const left = this.#allowance.leaveOut(trainer, folded);
    if (left === undefined) return false;
    const { shard, onIncomplete } = this.#deps;
    const { seq } = folded;
    this.#thinned += 1;
    if (this.#thinned === 1) {
      const who = `trainer ${quoteName(trainer)}`;
      const text =
        `shard ${shard}: ${who} has used up its share of the tape; from record ${seq} on its lines are left out. ` +
        "The first host of a job sets the tape's size with --tape-limit";
      onIncomplete(new PserverError("QUOTA", text, { shard, seq, trainer }));
    }
    if (left.isTold) this.#write([leftOutLine(folded, place, left)]);
    else this.#encoderOf(place.generation, seq).pass(folded);
    return true;
  }

  /** Adds the lines of one record to the tape, and to what its trainer has used. @throws as {@link #write}. */
  #writeFor(folded: FoldedRecord, events: readonly UpdateEvent[]): void {
    this.#charge(folded, this.#write(events));
  }

  #charge(folded: FoldedRecord, bytes: number): void {
    const trainer = senderOf(folded);
    if (trainer !== undefined) this.#allowance.charge(trainer, bytes);
  }

  /** Adds the lines of a batch; returns their bytes. @throws INTERNAL if they cannot be written. */
  #writeBatch({ first, lines }: BatchLines): number {
    const encoder = this.#encoderOf(first.generation, first.seq);
    let bytes = 0;
    for (let entry = 0; entry < first.entries; entry += ENTRIES_AT_ONCE) {
      const before = encoder.bytes;
      const count = Math.min(ENTRIES_AT_ONCE, first.entries - entry);
      const { verb } = lines;
      encoder.addEntries({ ...first, entry, verb }, lines, count, entry + count === first.entries);
      bytes += encoder.bytes - before;
      if (encoder.bytes >= MESSAGE_BYTES) this.#seal();
    }
    this.#lineTimer ??= setTimeout(() => this.#seal(), LINE_MS);
    return bytes;
  }

  /** Adds the lines of one record; returns their bytes. @throws INTERNAL if they cannot be written. */
  #write(events: readonly UpdateEvent[]): number {
    const [first] = events;
    if (first === undefined) return 0;
    const encoder = this.#encoderOf(first.generation, first.seq);
    let bytes = 0;
    for (let at = 0; at < events.length; at += ENTRIES_AT_ONCE) {
      const before = encoder.bytes;
      encoder.add(events.slice(at, at + ENTRIES_AT_ONCE), at + ENTRIES_AT_ONCE >= events.length);
      bytes += encoder.bytes - before;
      if (encoder.bytes >= MESSAGE_BYTES) this.#seal();
    }
    this.#lineTimer ??= setTimeout(() => this.#seal(), LINE_MS);
    return bytes;
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
