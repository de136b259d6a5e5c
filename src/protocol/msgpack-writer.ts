// This part of the package does not load its native add-on, which only speeds up reading.
import { Packr, RESET_BUFFER_MODE } from "msgpackr/pack";
import { PserverError } from "./errors.ts";
import { NESTING_MAX } from "./msgpack-reader.ts";

// Without records every map is a plain msgpack map that any decoder can read; `undefined` would
// otherwise become an extension type.
const packr = new Packr({ useRecords: false, variableMapSize: true, encodeUndefinedAsNil: true });

/** The value as msgpack. The next call overwrites the bytes: copy them before keeping them. */
export function writeMsgpack(value: unknown): Uint8Array {
  // The same memory each time, so that it stays in the CPU's caches.
  return packr.pack(value, RESET_BUFFER_MODE);
}

/**
 * Checks that {@link writeMsgpack} encodes the value correctly: nil, booleans, numbers, text,
 * `Uint8Array`, lists and maps of those. The encoder does not check: for another typed array it
 * writes wrong bytes, for a class its fields, for half a surrogate pair bytes that are not UTF-8. Lists
 * and maps nested more deeply than readers take are refused, too; `depth`: those that hold the value.
 * @throws BAD_VALUE for text that is not well-formed, INTERNAL for anything else, naming the entry.
 */
export function checkWritable(value: unknown, what: string | number, depth: number): void {
  switch (typeof value) {
    case "number":
    case "boolean":
    case "undefined":
      return;
    case "string":
      if (value.isWellFormed()) return;
      throw malformed(String(what));
    case "object":
      if (value === null || value instanceof Uint8Array) return;
      if (depth < NESTING_MAX && checkEntries(value, what, depth)) return;
  }
  throw new PserverError("INTERNAL", `${what}: a message cannot carry ${nameOf(value)}`);
}

/** Checks the values in a list or map; false if the value is neither. */
function checkEntries(value: object, what: string | number, depth: number): boolean {
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) checkWritable(value[i], i, depth + 1);
    return true;
  }
  if (!isPlain(value)) return false;
  const map = value as Readonly<Record<string, unknown>>;
  for (const key of Object.keys(map)) {
    if (!key.isWellFormed()) throw malformed(`a key of ${what}`);
    checkWritable(map[key], key, depth + 1);
  }
  return true;
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

function malformed(what: string): PserverError {
  return new PserverError("BAD_VALUE", `${what}: expected text; received half a surrogate pair`);
}

function nameOf(value: unknown): string {
  return typeof value === "object" ? `such a ${value?.constructor?.name}` : `a ${typeof value}`;
}
