import { Packr } from "msgpackr";
import { PserverError } from "./errors.ts";
import { NESTING_MAX } from "./msgpack-reader.ts";

// Without records every map is a plain msgpack map that any decoder can read; `undefined` would
// otherwise become an extension type.
const packr = new Packr({ useRecords: false, variableMapSize: true, encodeUndefinedAsNil: true });

/** The value as msgpack. The bytes may share a buffer with later ones: copy them before keeping. */
export function writeMsgpack(value: unknown): Uint8Array {
  return packr.pack(value);
}

/**
 * Passes if {@link writeMsgpack} writes the value as what it is: nil, booleans, numbers, text,
 * `Uint8Array`, lists and maps of those. The encoder does not check: of another typed array it
 * writes wrong bytes, of a class its fields, and of half a surrogate pair bytes that are no UTF-8.
 * @throws BAD_VALUE for text that is not well-formed, INTERNAL for anything else, naming the entry.
 */
export function checkWritable(value: unknown, what: string, depth = 0): void {
  switch (typeof value) {
    case "number":
    case "boolean":
    case "undefined":
      return;
    case "string":
      if (value.isWellFormed()) return;
      throw new PserverError("BAD_VALUE", `${what}: expected text; received half a surrogate pair`);
    case "object":
      if (value === null || value instanceof Uint8Array) return;
      if (depth < NESTING_MAX && (Array.isArray(value) || isPlain(value))) {
        for (const [key, entry] of Object.entries(value)) {
          checkWritable(key, `a key of ${what}`);
          checkWritable(entry, key, depth + 1);
        }
        return;
      }
  }
  throw new PserverError("INTERNAL", `${what}: a message cannot carry ${nameOf(value)}`);
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

function nameOf(value: unknown): string {
  return typeof value === "object" ? `such a ${value?.constructor?.name}` : `a ${typeof value}`;
}
