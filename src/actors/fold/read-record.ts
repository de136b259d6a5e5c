import { decodeSealed, isSealed, type Message, readCrc } from "../../protocol/codec.ts";
import { PserverError } from "../../protocol/errors.ts";
import { BATCH_ENTRIES_MAX, BATCH_HEAD_BYTES_MAX } from "../../protocol/limits.ts";
import { type BatchEntry, parseBatch } from "../../protocol/parse-batch.ts";
import { parseHead, type RecordHead } from "../../protocol/records.ts";

/**
 * Limit of a record without its tensor bytes. It also limits the nesting of a header: a deeper one
 * could be read on a thread with a large stack and fail on another.
 */
export const RECORD_HEADER_BYTES_MAX = 1536;

/**
 * The checksum in a record's envelope, by which it is recognized; 0 if no shard can read the record.
 */
export function recordCrc(payload: Uint8Array): number {
  // The larger limit holds for every record: one that its shard could not read is not recognized by it.
  return readRecordMessage(payload) === undefined ? 0 : readCrc(payload);
}

/**
 * The message in a record; undefined if it is unreadable: damaged, malformed, or with more than
 * `headBytesMax` bytes before its tensor bytes, by default the most that a record of any kind may have.
 */
export function readRecordMessage(
  payload: Uint8Array,
  headBytesMax: number = BATCH_HEAD_BYTES_MAX,
): Message | undefined {
  if (!isSealed(payload)) return undefined;
  const message = readable(() => decodeSealed(payload, headBytesMax));
  if (message === undefined) return undefined;
  const headBytes = payload.length - message.data.length;
  return headBytes <= headBytesMax ? message : undefined;
}

/** The head of a trainer's record; undefined if the record is unreadable or none of a trainer. */
export function readRecordHead(payload: Uint8Array): RecordHead | undefined {
  const message = readRecordMessage(payload);
  return message && readable(() => parseHead(message.fields));
}

/** The entries of a batch; undefined if the record is unreadable or no batch. */
export function readBatchEntries(payload: Uint8Array): readonly BatchEntry[] | undefined {
  const message = readRecordMessage(payload);
  return (
    message && readable(() => parseBatch(parseHead(message.fields), message, BATCH_ENTRIES_MAX))
  );
}

/** The result of `read`; undefined if it throws a `PserverError`. */
export function readable<Value>(read: () => Value): Value | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof PserverError) return undefined;
    throw error;
  }
}
