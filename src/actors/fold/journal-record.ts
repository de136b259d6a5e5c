import { decodeSealed, isSealed, type Message, readCrc } from "../../protocol/codec.ts";
import { PserverError } from "../../protocol/errors.ts";
import { BATCH_ENTRIES_MAX, BATCH_HEAD_BYTES_MAX } from "../../protocol/limits.ts";
import { type Batch, parseBatch } from "../../protocol/messages/batch-records.ts";
import type { HostRecord } from "../../protocol/messages/host-records.ts";
import type { Outcome } from "../../protocol/messages/outcomes.ts";
import { parseRecordHeader, type RecordHeader } from "../../protocol/messages/records.ts";
import type { JobSubjects, LogSubject } from "../../protocol/subjects.ts";
import type { Change } from "./apply-update.ts";
import type { FaultyEntry, RunChange } from "./batch/run-change.ts";
import type { ClosedRound, Contributed } from "./fragments/contribute.ts";
import type { GuardVerdict } from "./guards/judge.ts";
import { subjectCrcOf } from "./journal-checksum.ts";
import type { Rules } from "./rules.ts";

/**
 * Limit of a record without its tensor bytes. It also limits how deeply a header is nested: a deeper one could be
 * read on a thread with a large stack and fail on another.
 */
const RECORD_HEADER_BYTES_MAX = 1536;

/** Reads the checksum in a record's envelope, which identifies the record; 0 if no shard can read the record. */
export function recordCrc(payload: Uint8Array): number {
  // The limit of a batch holds for every record here. One that its shard could not read is never compared by
  // checksum.
  return readRecordMessage(payload) === undefined ? 0 : readCrc(payload);
}

/**
 * Reads the message in a record; undefined if it is unreadable: damaged, malformed, or with more than
 * `headerBytesMax` bytes before its tensor bytes, by default the most that a record of any kind may have.
 */
export function readRecordMessage(
  payload: Uint8Array,
  headerBytesMax: number = BATCH_HEAD_BYTES_MAX,
): Message | undefined {
  if (!isSealed(payload)) return undefined;
  const message = readable(() => decodeSealed(payload, headerBytesMax));
  if (message === undefined) return undefined;
  const headerBytes = payload.length - message.data.length;
  return headerBytes <= headerBytesMax ? message : undefined;
}

/** Reads the header of a trainer's record; undefined if the record is unreadable or not a trainer's. */
export function readRecordHeader(payload: Uint8Array): RecordHeader | undefined {
  const message = readRecordMessage(payload);
  return message && readable(() => parseRecordHeader(message.fields));
}

/** Reads a batch; undefined if the record is unreadable or no batch. */
export function readBatch(payload: Uint8Array): Batch | undefined {
  const message = readRecordMessage(payload);
  return message && readable(() => parseBatch(message, BATCH_ENTRIES_MAX));
}

/** Returns the result of `read`; undefined if it throws a `PserverError`. */
export function readable<Value>(read: () => Value): Value | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof PserverError) return undefined;
    throw error;
  }
}

/** A record of a shard's journal as the stream delivers it. The fold does not keep `payload`. */
export interface JournalRecord {
  readonly seq: number;
  readonly subject: string;
  readonly payload: Uint8Array;
  /**
   * False if the caller can read the record again. Then `apply` throws BAD_CHECKSUM for a payload that does not match
   * its checksum, because it may have been damaged in transit; otherwise it folds the record as unreadable.
   */
  readonly reread?: boolean;
  /** When the broker stored it, in milliseconds since 1970. Only observers see it; the fold does not. */
  readonly timeMs?: number;
}

/**
 * Reads the record's message; undefined if it is unreadable under the rules in force.
 * @throws BAD_CHECKSUM, only with `reread: false`, if the payload does not match its checksum.
 */
export function readMessage(
  record: JournalRecord,
  subject: LogSubject | undefined,
  rules: Rules | undefined,
  shard: number,
): Message | undefined {
  const { seq, payload, reread } = record;
  const message = readRecordMessage(payload, headerBytesMaxOf(subject, rules));
  if (message !== undefined || reread !== false) return message;
  // The checksum matches, so the record is stored like this.
  if (isSealed(payload)) return undefined;
  throw new PserverError(
    "BAD_CHECKSUM",
    `record ${seq} of shard ${shard}: ${payload.length} bytes do not match their checksum`,
    { shard, seq },
  );
}

/** Returns the most bytes that a record on this subject may have before its tensor bytes. */
function headerBytesMaxOf(subject: LogSubject | undefined, rules: Rules | undefined): number {
  if (rules !== undefined && (subject?.by === "batch" || subject?.by === "contribute")) {
    return rules.batchHeaderBytesMax;
  }
  if (rules !== undefined && subject?.by === "note") return rules.noteBytesMax;
  return RECORD_HEADER_BYTES_MAX;
}

/** Limit of cached subjects: enough for each block of a shard and each trainer, except in large jobs. */
const KNOWN_MAX = 2_048;

/** A subject of a journal. */
export interface ReadSubject {
  /** The parts of the subject; undefined if it does not belong to the job's journals. */
  readonly parsed: LogSubject | undefined;
  /** Checksum of its characters. */
  readonly crc: number;
}

/** Parses journal subjects, with a cache, because the same few subjects repeat. */
export class LogSubjects {
  readonly #subjects: JobSubjects;
  readonly #known: Map<string, ReadSubject> = new Map();

  constructor(subjects: JobSubjects) {
    this.#subjects = subjects;
  }

  /** Parses a subject. */
  read(subject: string): ReadSubject {
    const cached = this.#known.get(subject);
    if (cached !== undefined) return cached;
    const parsed = readable(() => this.#subjects.parseLog(subject));
    const read = { parsed, crc: subjectCrcOf(subject) };
    if (parsed === undefined) return read;
    if (this.#known.size >= KNOWN_MAX) this.#known.clear();
    this.#known.set(subject, read);
    return read;
  }
}

/** Sequence of a record, and when the broker stored it, in milliseconds since 1970; 0 if that is not known. */
interface FoldedPlace {
  readonly seq: number;
  readonly timeMs: number;
}

/** One record with its outcome. Views of its payload are valid during the call only. */
export type FoldedRecord = FoldedPlace & Folded;

type Folded =
  | {
      readonly kind: "unreadable";
      /** Undefined if the subject does not belong to the job's journals. */
      readonly subject: LogSubject | undefined;
      readonly payloadBytes: number;
    }
  | {
      readonly kind: "host";
      readonly record: HostRecord;
      /** The round that a `close` closes; undefined if it closes none, and for any other record. */
      readonly closed: ClosedRound | undefined;
    }
  | {
      readonly kind: "trainer";
      readonly subject: Exclude<LogSubject, { by: "host" }>;
      readonly header: RecordHeader;
      readonly message: Message;
      readonly outcome: Outcome;
      /** Whether an earlier copy of the record was folded; `outcome` may be that of the copy. */
      readonly isRepeat: boolean;
      /** The change made; undefined for a record that was rejected, repeated or about no block, and for a batch. */
      readonly change: Change | undefined;
      /** The changes that the runs of a batch made. */
      readonly runs: readonly RunChange[];
      /** The entry for which a batch was rejected, if it was an entry. */
      readonly fault: FaultyEntry | undefined;
      /** What a contribution has come to; undefined for a rejected or repeated one, and for any other record. */
      readonly contributed: Contributed | undefined;
      /** What guards have decided about it, if a norm was above its limit. */
      readonly verdict: GuardVerdict | undefined;
    };

/**
 * Gets each record with its outcome. It must not change the shard; it may use the scratch of the shard's memory. What
 * it throws does not reach the fold.
 */
export interface FoldObserver {
  /** Whether changes are to carry statistics of their elements, which cost a pass over them. */
  readonly measures: boolean;
  /** Called when a record's changes were made, before the step that it closes is applied. */
  observe(record: FoldedRecord): void;
  /** Called with the error that {@link observe} has thrown for a record. Errors of this call are only counted. */
  failed(record: FoldedRecord, error: PserverError): void;
}
