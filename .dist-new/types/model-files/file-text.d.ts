import { type PserverError } from "../protocol/errors.ts";
/** Makes a BAD_FILE for `what` in a file that is not as expected. */
export declare function badFile(path: string, what: string, expected: string | number, received: string | number, cause?: unknown): PserverError;
/** Makes a BAD_DTYPE for an element type of a file that no parameter has. */
export declare function badFileDtype(path: string, what: string, expected: string, received: string): PserverError;
/**
 * Decodes the text of a file.
 * @throws BAD_FILE naming `what` if they are not UTF-8.
 */
export declare function decodeFileText(path: string, what: string, bytes: Uint8Array): string;
/**
 * Parses the JSON text of a file.
 * @throws BAD_FILE naming `what` if it is not JSON.
 */
export declare function parseFileJson(path: string, what: string, text: string): unknown;
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
/**
 * Reads JSON of a file whose size was checked before. For nested brackets a parser may need a
 * hundred times the memory of the text; within the bounds it needs a small multiple.
 * @throws BAD_FILE naming `what` if it is not UTF-8, not JSON, or holds more than `bounds` allow.
 */
export declare function parseBoundedJson(path: string, what: string, bytes: Uint8Array, bounds: JsonBounds): BoundedJson;
/** Returns whether a parsed JSON value is an object. */
export declare function isJsonObject(value: unknown): value is Readonly<Record<string, unknown>>;
/** Returns a parsed JSON value if it is an object, else an object without fields. */
export declare function jsonObjectOf(value: unknown): Readonly<Record<string, unknown>>;
//# sourceMappingURL=file-text.d.ts.map