import type { Fields } from "./codec.ts";
import { DTYPES, type Dtype, ENCODINGS, type Encoding, isDtype, isEncoding } from "./dtypes.ts";
import { PserverError } from "./errors.ts";
import { PackedList } from "./msgpack.ts";

/** Returns the entries that are not undefined. */
export function defined<Entries extends object>(
  entries: Entries,
): { [Key in keyof Entries]?: Exclude<Entries[Key], undefined> } {
  return Object.fromEntries(Object.entries(entries).filter(([, value]) => value !== undefined)) as {
    [Key in keyof Entries]?: Exclude<Entries[Key], undefined>;
  };
}

/** Checked reading of a message's fields: external values are validated here and nowhere later. */

/**
 * The whole number under `key`.
 * @throws BAD_MESSAGE unless it is a safe integer in `min..max`.
 */
export function integerField(
  fields: Fields,
  key: string,
  min = 0,
  max: number = Number.MAX_SAFE_INTEGER,
): number {
  const value = fields[key];
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= min && value <= max) {
    return value;
  }
  throw badField(key, `a whole number from ${min} to ${max}`, value);
}

/** Reads the number under `key`, NaN and infinities included; @throws BAD_MESSAGE if it is not a number. */
export function numberField(fields: Fields, key: string): number {
  const value = fields[key];
  if (typeof value === "number") return value;
  throw badField(key, "a number", value);
}

/** Reads the text under `key`; @throws BAD_MESSAGE if it is not text or longer than `lengthMax`. */
export function textField(fields: Fields, key: string, lengthMax = 1024): string {
  const value = fields[key];
  if (typeof value === "string" && value.length <= lengthMax) return value;
  throw badField(key, `text of at most ${lengthMax} characters`, value);
}

/** Reads the word under `key`; @throws BAD_MESSAGE if it is not one of `words`. */
export function wordField<Word extends string>(
  fields: Fields,
  key: string,
  words: readonly Word[],
): Word {
  const value = fields[key];
  const word = words.find((known) => known === value);
  if (word !== undefined) return word;
  throw badField(key, words.join(" or "), value);
}

/** Reads the boolean under `key`, false if absent; @throws BAD_MESSAGE for a value of another type. */
export function flagField(fields: Fields, key: string): boolean {
  const value = fields[key];
  if (value === undefined || typeof value === "boolean") return value ?? false;
  throw badField(key, "true or false", value);
}

/** Reads the element type under `key`; @throws BAD_DTYPE if it names none. */
export function dtypeField(fields: Fields, key = "dtype"): Dtype {
  const value = fields[key];
  if (isDtype(value)) return value;
  const expected = Object.keys(DTYPES);
  throw new PserverError(
    "BAD_DTYPE",
    `${key}: expected ${expected.join(", ")}; received ${describe(value)}`,
    { expected, received: describe(value) },
  );
}

/** Reads the encoding under `encoding`, undefined if absent; @throws BAD_DTYPE if it names none. */
export function encodingField(fields: Fields): Encoding | undefined {
  const value = fields["encoding"];
  if (value === undefined || isEncoding(value)) return value;
  const expected = Object.keys(ENCODINGS);
  throw new PserverError(
    "BAD_DTYPE",
    `encoding: expected ${expected.join(", ")} or none; received ${describe(value)}`,
    { expected, received: describe(value) },
  );
}

/** Reads the list under `key`; @throws BAD_MESSAGE if it is not a list or longer than `lengthMax`. */
export function listField(fields: Fields, key: string, lengthMax: number): readonly unknown[] {
  const value: unknown = fields[key];
  if (Array.isArray(value) && value.length <= lengthMax) return value as readonly unknown[];
  throw badField(key, `a list of at most ${lengthMax}`, value);
}

/** Values in their order, read as they are asked for, and how many there are. */
export type Values = Iterable<unknown> & { readonly length: number };

/**
 * Reads the list under `key`, which may be a list that is still unread; @throws BAD_MESSAGE as {@link listField} does.
 * Iterating throws BAD_MESSAGE at an unread value that is malformed.
 */
export function valuesField(fields: Fields, key: string, lengthMax: number): Values {
  const value: unknown = fields[key];
  if (!(value instanceof PackedList)) return listField(fields, key, lengthMax);
  if (value.length <= lengthMax) return value;
  throw badField(key, `a list of at most ${lengthMax}`, value);
}

/** Reads the map under `key`; @throws BAD_MESSAGE if it is not a map. */
export function mapField(fields: Fields, key: string): Fields {
  return asMap(fields[key], key);
}

/** Returns `value` as a map; @throws BAD_MESSAGE if it is not a map. */
export function asMap(value: unknown, what: string): Fields {
  if (isMap(value)) return value;
  throw badField(what, "a map", value);
}

function isMap(value: unknown): value is Fields {
  return (
    typeof value === "object" &&
    value !== null &&
    !Array.isArray(value) &&
    !(value instanceof Uint8Array)
  );
}

function badField(key: string, expected: string, value: unknown): PserverError {
  const received = describe(value);
  return new PserverError("BAD_MESSAGE", `${key}: expected ${expected}; received ${received}`, {
    field: key,
    expected,
    received,
  });
}

function describe(value: unknown): string {
  if (value === undefined) return "nothing";
  if (typeof value === "string") return JSON.stringify(value.slice(0, 60));
  if (typeof value === "number" || typeof value === "boolean" || value === null) {
    return String(value);
  }
  if (Array.isArray(value)) return `a list of ${value.length}`;
  return value instanceof Uint8Array ? `${value.length} bytes` : `a ${typeof value}`;
}
