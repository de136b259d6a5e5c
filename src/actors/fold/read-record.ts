import { decodeSealed, isSealed, type Message, readCrc } from "../../protocol/codec.ts";
import { PserverError } from "../../protocol/errors.ts";

/**
 * Limit of a record without its tensor bytes. It also limits the nesting of a header: a deeper one
 * could be read on a thread with a large stack and fail on another.
 */
const RECORD_HEADER_BYTES_MAX = 1536;

/**
 * The checksum in a record's envelope, by which it is recognized; 0 if the record is unreadable.
 */
export function recordCrc(payload: Uint8Array): number {
  return readRecordMessage(payload) === undefined ? 0 : readCrc(payload);
}

/** The message in a record; undefined if it is unreadable. */
export function readRecordMessage(payload: Uint8Array): Message | undefined {
  if (!isSealed(payload)) return undefined;
  const message = readable(() => decodeSealed(payload));
  if (message === undefined) return undefined;
  const headerBytes = payload.length - message.data.length;
  return headerBytes <= RECORD_HEADER_BYTES_MAX ? message : undefined;
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
