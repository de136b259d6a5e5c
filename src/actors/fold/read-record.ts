import { decodeSealed, isSealed, type Message, readCrc } from "../../protocol/codec.ts";
import { PserverError } from "../../protocol/errors.ts";
import { BATCH_HEAD_BYTES_MAX } from "../../protocol/limits.ts";

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
  return readRecordMessage(payload, BATCH_HEAD_BYTES_MAX) === undefined ? 0 : readCrc(payload);
}

/**
 * The message in a record; undefined if it is unreadable: damaged, malformed, or with more than
 * `headBytesMax` bytes before its tensor bytes.
 */
export function readRecordMessage(payload: Uint8Array, headBytesMax: number): Message | undefined {
  if (!isSealed(payload)) return undefined;
  const message = readable(() => decodeSealed(payload, headBytesMax));
  if (message === undefined) return undefined;
  const headBytes = payload.length - message.data.length;
  return headBytes <= headBytesMax ? message : undefined;
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
