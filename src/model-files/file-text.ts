import { mismatch, type PserverError } from "../protocol/errors.ts";

/** Makes a BAD_FILE for `what` in a file that is not as expected. */
export function badFile(
  path: string,
  what: string,
  expected: string | number,
  received: string | number,
  cause?: unknown,
): PserverError {
  const options = cause === undefined ? undefined : { cause };
  return mismatch("BAD_FILE", `${path}: ${what}`, expected, received, { path, what }, options);
}

/** Makes a BAD_DTYPE for an element type of a file that no parameter has. */
export function badFileDtype(
  path: string,
  what: string,
  expected: string,
  received: string,
): PserverError {
  return mismatch("BAD_DTYPE", `${path}: dtype of ${what}`, expected, received, { path, what });
}

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * Decodes the text of a file.
 * @throws BAD_FILE naming `what` if they are not UTF-8.
 */
export function decodeFileText(path: string, what: string, bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes);
  } catch (cause) {
    throw badFile(path, `text of ${what}`, "UTF-8", "other bytes", cause);
  }
}

/**
 * Parses the JSON text of a file.
 * @throws BAD_FILE naming `what` if it is not JSON.
 */
export function parseFileJson(path: string, what: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw badFile(path, what, "JSON", JSON.stringify(text.slice(0, 60)), cause);
  }
}

/** Limits of JSON text, checked before it is parsed. */
export interface JsonBounds {
  /** Objects and lists inside one another. */
  readonly depth: number;
  /** Objects and lists in all. */
  readonly containers: number;
  /** Commas outside of strings, which bound the values in all containers. */
  readonly commas: number;
}

/** JSON text of a file and its parsed value. */
export interface BoundedJson {
  readonly text: string;
  readonly value: unknown;
  /** Colons outside of strings: the number of keys in all objects, repeated ones included. */
  readonly colons: number;
}

const CODES = {
  quote: 0x22,
  backslash: 0x5c,
  colon: 0x3a,
  comma: 0x2c,
  list: 0x5b,
  listEnd: 0x5d,
  object: 0x7b,
  objectEnd: 0x7d,
} as const;

/**
 * Reads JSON of a file whose size was checked before. For nested brackets a parser may need a
 * hundred times the memory of the text; within the bounds it needs a small multiple.
 * @throws BAD_FILE naming `what` if it is not UTF-8, not JSON, or holds more than `bounds` allow.
 */
export function parseBoundedJson(
  path: string,
  what: string,
  bytes: Uint8Array,
  bounds: JsonBounds,
): BoundedJson {
  const colons = checkBounds(path, what, bytes, bounds);
  const text = decodeFileText(path, what, bytes);
  return { text, value: parseFileJson(path, what, text), colons };
}

/** Checks the bounds; returns the number of colons outside of strings. */
function checkBounds(path: string, what: string, bytes: Uint8Array, bounds: JsonBounds): number {
  const refuse = (name: string, limit: number): never => {
    throw badFile(path, `${name} in the ${what}`, `at most ${limit}`, "more");
  };
  let [depth, containers, commas, colons] = [0, 0, 0, 0];
  let isQuoted = false;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i];
    if (byte === CODES.quote) isQuoted = !isQuoted;
    else if (isQuoted) {
      if (byte === CODES.backslash) i++;
    } else if (byte === CODES.colon) colons++;
    else if (byte === CODES.comma) {
      if (++commas > bounds.commas) refuse("values", bounds.commas);
    } else if (byte === CODES.list || byte === CODES.object) {
      if (++depth > bounds.depth) refuse("lists and objects inside one another", bounds.depth);
      if (++containers > bounds.containers) refuse("lists and objects", bounds.containers);
    } else if (byte === CODES.listEnd || byte === CODES.objectEnd) depth--;
  }
  return colons;
}

/** Returns whether a parsed JSON value is an object. */
export function isJsonObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Returns a parsed JSON value if it is an object, else an object without fields. */
export function jsonObjectOf(value: unknown): Readonly<Record<string, unknown>> {
  return isJsonObject(value) ? value : {};
}
