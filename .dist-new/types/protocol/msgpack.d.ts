import { PserverError } from "./errors.ts";
/** Reads an unsigned 32-bit whole number. */
export declare function readUint32(bytes: Uint8Array, at: number): number;
/** Reads an unsigned 64-bit whole number, rounded to the nearest number of JavaScript. */
export declare function readUint64(bytes: Uint8Array, at: number): number;
/** Reads a signed 64-bit whole number, rounded as {@link readUint64} rounds. */
export declare function readInt64(bytes: Uint8Array, at: number): number;
/** Reads a 32-bit floating-point number. */
export declare function readFloat32(bytes: Uint8Array, at: number): number;
/** Reads a 64-bit floating-point number. */
export declare function readFloat64(bytes: Uint8Array, at: number): number;
/** Writes an unsigned 32-bit whole number. */
export declare function writeUint32(bytes: Uint8Array, at: number, value: number): void;
/**
 * Bytes of the longest text that a table keeps. Most reply subjects, the longest texts that recur in every
 * message, are shorter. Length and text fill a slot of 128 bytes.
 */
export declare const KEPT_TEXT_BYTES_MAX = 124;
/**
 * Reads texts and caches short ones: the same bytes give the same string again, without decoding or
 * allocating. Messages consist of few texts, which recur in every one.
 *
 * Each text has one slot, shared with other texts, and replaces the text that is there. Memory is
 * therefore bounded, and a sender of many texts only costs the time to decode them.
 */
export declare class TextTable {
    #private;
    /** A table of 2^`slotBits` slots, at least two. */
    constructor(slotBits: number);
    /** Reads the text of `length` bytes that begins at `start`; undefined if they are not UTF-8. */
    read(bytes: Uint8Array, start: number, length: number): string | undefined;
}
/**
 * Reads one msgpack value; byte strings are views of `bytes`. Takes only what the protocol uses: nil,
 * booleans, numbers, text, bytes, lists, and maps with text keys. Refuses what readers of other languages
 * could read differently: extensions, text that is not UTF-8, repeated keys and bytes after the value. Time
 * and memory are bounded by the number of bytes, whatever lengths they declare.
 *
 * @throws BAD_MESSAGE naming the place and what is wrong there.
 */
export declare function readMsgpack(bytes: Uint8Array): unknown;
/**
 * Reads msgpack value by value, as strictly as {@link readMsgpack}. With it a map can be read whose entries
 * go to different places. Every method advances past what it has read, and throws BAD_MESSAGE for what it
 * refuses.
 */
export declare class MsgpackReader {
    #private;
    /** Position of the next value. */
    position: number;
    /** `valuesEnd`: the last position at which a value may begin. */
    constructor(bytes: Uint8Array, valuesEnd?: number);
    /** Reads the next value; `depth` is the number of lists and maps around it. */
    value(depth: number): unknown;
    /** Reads the next key of a map. */
    key(): string;
    /** Reads the value of a key that was just read into a map. */
    entry(map: Record<string, unknown>, key: string, depth: number): void;
    /** Makes the error for a repeated key; call it just after the key was read. */
    repeated(key: string): PserverError;
    /** Refuses a list or map that is nested too deeply, or declares more values than there are bytes. */
    enter(values: number, depth: number): void;
    /** Refuses bytes after the last value. */
    end(): void;
}
/** Writes a value as msgpack. The next call overwrites the bytes: copy them before keeping them. */
export declare function writeMsgpack(value: unknown): Uint8Array;
/**
 * Checks that {@link writeMsgpack} encodes the value correctly: nil, booleans, numbers, text,
 * `Uint8Array`, lists and maps of those. The encoder does not check: for another typed array it
 * writes wrong bytes, for a class its fields, for half a surrogate pair bytes that are not UTF-8. Lists
 * and maps nested more deeply than readers take are refused, too; `depth`: those that hold the value.
 * @throws BAD_VALUE for text that is not well-formed, INTERNAL for anything else, naming the entry.
 */
export declare function checkWritable(value: unknown, what: string | number, depth: number): void;
//# sourceMappingURL=msgpack.d.ts.map