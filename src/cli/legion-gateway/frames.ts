import { isRecord } from "../../model-files/file-text.ts";
import { DTYPES, type Dtype, isDtype, type TensorData } from "../../protocol/dtypes.ts";
import { mismatch } from "../../protocol/errors.ts";
import { RANK_MAX } from "../../protocol/limits.ts";
import { quoteName } from "../../protocol/names.ts";

// Legion's wire: every frame is an int32 kind, an int32 length in bytes, and these bytes. An array is a
// JSON frame with its shape and dtype, then a numeric frame with its elements in C order.

/** Kinds of frames, the first number of each. */
export const FRAME = { json: 10, numeric: 11 } as const;

/** Names of the two kinds, for messages. */
const KINDS: Readonly<Record<number, string>> = {
  [FRAME.json]: "JSON",
  [FRAME.numeric]: "numbers",
};

export const FRAME_HEADER_BYTES = 8;

/** Bytes of a frame at most: its length is an int32. */
export const FRAME_BYTES_MAX = 2 ** 31 - 1;

/** Bytes of a JSON frame at most: about 150,000 indices. */
export const JSON_BYTES_MAX = 1024 * 1024;

/** Description of an array in a JSON frame; its elements follow in a frame of their own. */
export interface ArrayHeader {
  readonly dtype: Dtype;
  readonly shape: readonly number[];
  readonly elements: number;
  readonly bytes: number;
}

/** An array as it is sent. */
export interface WireArray {
  readonly dtype: Dtype;
  readonly shape: readonly number[];
  readonly data: TensorData;
}

/** The first eight bytes of a frame. */
export function frameHeader(kind: number, bytes: number): Uint8Array {
  const header = new DataView(new ArrayBuffer(FRAME_HEADER_BYTES));
  header.setInt32(0, kind, true);
  header.setInt32(4, bytes, true);
  return new Uint8Array(header.buffer);
}

/**
 * Bytes that follow the header of a frame of one kind.
 * @throws BAD_MESSAGE for another kind, BAD_LENGTH for a negative length or one above `bytesMax`.
 */
export function frameLength(header: Uint8Array, kind: number, bytesMax: number): number {
  const view = new DataView(header.buffer, header.byteOffset, FRAME_HEADER_BYTES);
  const received = view.getInt32(0, true);
  if (received !== kind) {
    throw mismatch("BAD_MESSAGE", "frame", `${kind} (${KINDS[kind]})`, received);
  }
  const bytes = view.getInt32(4, true);
  if (bytes >= 0 && bytes <= bytesMax) return bytes;
  const expected = `a length from 0 to ${bytesMax} bytes`;
  throw mismatch("BAD_LENGTH", `frame of ${KINDS[kind]}`, expected, bytes);
}

/** A frame of JSON. */
export function jsonFrame(value: unknown): Uint8Array {
  const text = Buffer.from(JSON.stringify(value));
  return Buffer.concat([frameHeader(FRAME.json, text.byteLength), text]);
}

/**
 * Parses the bytes of a JSON frame, an object.
 * @throws BAD_MESSAGE for anything else.
 */
export function parseJsonFrame(bytes: Uint8Array): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch (cause) {
    throw mismatch("BAD_MESSAGE", "frame", "JSON in UTF-8", "other bytes", {}, { cause });
  }
  if (isRecord(value)) return value;
  throw mismatch("BAD_MESSAGE", "frame", "a JSON object", "another value");
}

/**
 * Reads the description of an array from a JSON frame.
 * @param what names it in messages.
 * @throws BAD_DTYPE for a dtype that parameters cannot have, BAD_SHAPE, TOO_LARGE above `bytesMax`.
 */
export function parseArrayHeader(
  { dtype, shape }: Readonly<Record<string, unknown>>,
  what: string,
  bytesMax: number,
): ArrayHeader {
  if (!isDtype(dtype)) {
    const expected = Object.keys(DTYPES).join(", ");
    throw mismatch("BAD_DTYPE", `dtype of ${what}`, expected, quoteName(String(dtype)));
  }
  const elements = elementsOf(shape);
  if (elements === undefined) {
    const received = quoteName(JSON.stringify(shape) ?? "nothing");
    throw mismatch("BAD_SHAPE", `shape of ${what}`, `at most ${RANK_MAX} counts`, received);
  }
  const bytes = elements * DTYPES[dtype].bytes;
  if (bytes > bytesMax) {
    throw mismatch("TOO_LARGE", what, `an array of at most ${bytesMax} bytes`, `one of ${bytes}`);
  }
  return { dtype, shape: shape as readonly number[], elements, bytes };
}

function elementsOf(shape: unknown): number | undefined {
  if (!Array.isArray(shape) || shape.length > RANK_MAX) return undefined;
  let elements = 1;
  for (const size of shape) {
    if (!Number.isSafeInteger(size) || size < 0) return undefined;
    elements *= size;
    if (!Number.isSafeInteger(elements)) return undefined;
  }
  return elements;
}
