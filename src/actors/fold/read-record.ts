import { decodeSealed, isSealed, type Message, readCrc } from "../../protocol/codec.ts";
import { PserverError } from "../../protocol/errors.ts";

/**
 * Bytes of a record but its tensor bytes. It also bounds how deep a header nests: a deeper one
 * would be read on a thread with a large stack and fail on another.
 */
const RECORD_HEADER_BYTES_MAX = 1536;

/**
 * What identifies a record in its journal: the checksum in its envelope, 0 if the record is
 * unreadable.
 */
export function recordCrc(payload: Uint8Array): number {
  return readRecordMessage(payload) === undefined ? 0 : readCrc(payload);
}

/** The message that a record is, undefined if it is unreadable. */
export function readRecordMessage(payload: Uint8Array): Message | undefined {
  if (!isSealed(payload)) return undefined;
  const message = readable(() => decodeSealed(payload));
  if (message === undefined) return undefined;
  const headerBytes = payload.length - message.data.length;
  return headerBytes <= RECORD_HEADER_BYTES_MAX ? message : undefined;
}

/** What `read` gives, or undefined if it refuses what it reads. */
export function readable<Value>(read: () => Value): Value | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof PserverError) return undefined;
    throw error;
  }
}
