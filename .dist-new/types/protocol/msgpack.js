import { Packr, RESET_BUFFER_MODE } from "msgpackr/pack";
import { PserverError } from "./errors.js";
// Numbers whose highest byte comes first, read without a DataView: each message would need another,
// which costs more than the few numbers in it.
/** Scratch memory in which a floating-point number is put together from its bytes. */
const scratch = new DataView(new ArrayBuffer(8));
/** Reads an unsigned 32-bit whole number. */
export function readUint32(bytes, at) {
    const high = (bytes[at] << 24) | (bytes[at + 1] << 16);
    return (high | (bytes[at + 2] << 8) | bytes[at + 3]) >>> 0;
}
/** Reads an unsigned 64-bit whole number, rounded to the nearest number of JavaScript. */
export function readUint64(bytes, at) {
    return readUint32(bytes, at) * 2 ** 32 + readUint32(bytes, at + 4);
}
/** Reads a signed 64-bit whole number, rounded as {@link readUint64} rounds. */
export function readInt64(bytes, at) {
    return (readUint32(bytes, at) | 0) * 2 ** 32 + readUint32(bytes, at + 4);
}
/** Reads a 32-bit floating-point number. */
export function readFloat32(bytes, at) {
    scratch.setUint32(0, readUint32(bytes, at));
    return scratch.getFloat32(0);
}
/** Reads a 64-bit floating-point number. */
export function readFloat64(bytes, at) {
    scratch.setUint32(0, readUint32(bytes, at));
    scratch.setUint32(4, readUint32(bytes, at + 4));
    return scratch.getFloat64(0);
}
/** Writes an unsigned 32-bit whole number. */
export function writeUint32(bytes, at, value) {
    bytes[at] = value >>> 24;
    bytes[at + 1] = value >>> 16;
    bytes[at + 2] = value >>> 8;
    bytes[at + 3] = value;
}
/**
 * Bytes of the longest text that a table keeps. Most reply subjects, the longest texts that recur in every
 * message, are shorter. Length and text fill a slot of 128 bytes.
 */
export const KEPT_TEXT_BYTES_MAX = 124;
const WORD_BYTES = 4;
const WORD_BITS = 8 * WORD_BYTES;
const SLOT_WORDS = 1 + KEPT_TEXT_BYTES_MAX / WORD_BYTES;
/**
 * An odd multiplier with many bits set. It carries every bit of a word into the highest bits, which select
 * the slot.
 */
const SPREADER = 0x9e3779b1;
/** Longest text that is read byte by byte, which for short texts costs less than calling a decoder. */
const SHORT_TEXT_BYTES = 24;
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
/**
 * Reads texts and caches short ones: the same bytes give the same string again, without decoding or
 * allocating. Messages consist of few texts, which recur in every one.
 *
 * Each text has one slot, shared with other texts, and replaces the text that is there. Memory is
 * therefore bounded, and a sender of many texts only costs the time to decode them.
 */
export class TextTable {
    #texts;
    /** For each slot, the text's length in bytes and then its bytes, four in a word. A free slot holds "". */
    #slots;
    #shift;
    /** The text that is being read, in the form of a slot. */
    #wanted = new Int32Array(SLOT_WORDS);
    /** A table of 2^`slotBits` slots, at least two. */
    constructor(slotBits) {
        const slots = 2 ** slotBits;
        this.#texts = new Array(slots).fill("");
        this.#slots = new Int32Array(slots * SLOT_WORDS);
        this.#shift = WORD_BITS - slotBits;
    }
    /** Reads the text of `length` bytes that begins at `start`; undefined if they are not UTF-8. */
    read(bytes, start, length) {
        const end = start + length;
        if (length > KEPT_TEXT_BYTES_MAX)
            return decode(bytes, start, end);
        const wanted = this.#wanted;
        wanted[0] = length;
        let words = 1;
        let hash = length;
        let at = start;
        for (; at + WORD_BYTES <= end; at += WORD_BYTES) {
            const word = readUint32(bytes, at) | 0;
            wanted[words++] = word;
            hash = Math.imul(hash ^ word, SPREADER);
        }
        if (at < end) {
            let word = 0;
            for (; at < end; at++)
                word = (word << 8) | bytes[at];
            wanted[words++] = word;
            hash = Math.imul(hash ^ word, SPREADER);
        }
        const slot = hash >>> this.#shift;
        if (this.#holds(slot, words))
            return this.#texts[slot];
        const text = decode(bytes, start, end);
        if (text !== undefined)
            this.#keep(slot, words, text);
        return text;
    }
    #holds(slot, words) {
        const first = slot * SLOT_WORDS;
        for (let i = 0; i < words; i++) {
            if (this.#slots[first + i] !== this.#wanted[i])
                return false;
        }
        return true;
    }
    #keep(slot, words, text) {
        const first = slot * SLOT_WORDS;
        for (let i = 0; i < words; i++)
            this.#slots[first + i] = this.#wanted[i];
        this.#texts[slot] = text;
    }
}
function decode(bytes, start, end) {
    if (end - start <= SHORT_TEXT_BYTES) {
        let text = "";
        let at = start;
        for (; at < end; at++) {
            const byte = bytes[at];
            if (byte >= 0x80)
                break;
            text += String.fromCharCode(byte);
        }
        if (at === end)
            return text;
    }
    try {
        return decoder.decode(bytes.subarray(start, end));
    }
    catch {
        return undefined;
    }
}
/** Nesting limit of lists and maps: far more than any message needs, far less than a stack takes. */
const NESTING_MAX = 16;
/**
 * Slots for texts, as a power of two: enough for the about forty words of the protocol and the reply subjects
 * of a hundred trainers. The table takes 256 KiB per thread.
 */
const TEXT_SLOT_BITS = 11;
const texts = new TextTable(TEXT_SLOT_BITS);
/**
 * Reads one msgpack value; byte strings are views of `bytes`. Takes only what the protocol uses: nil,
 * booleans, numbers, text, bytes, lists, and maps with text keys. Refuses what readers of other languages
 * could read differently: extensions, text that is not UTF-8, repeated keys and bytes after the value. Time
 * and memory are bounded by the number of bytes, whatever lengths they declare.
 *
 * @throws BAD_MESSAGE naming the place and what is wrong there.
 */
export function readMsgpack(bytes) {
    const reader = new MsgpackReader(bytes);
    const value = reader.value(0);
    reader.end();
    return value;
}
/**
 * Reads msgpack value by value, as strictly as {@link readMsgpack}. With it a map can be read whose entries
 * go to different places. Every method advances past what it has read, and throws BAD_MESSAGE for what it
 * refuses.
 */
export class MsgpackReader {
    /** Position of the next value. */
    position = 0;
    #bytes;
    #valuesEnd;
    /** `valuesEnd`: the last position at which a value may begin. */
    constructor(bytes, valuesEnd = bytes.length) {
        this.#bytes = bytes;
        this.#valuesEnd = valuesEnd;
    }
    /** Reads the next value; `depth` is the number of lists and maps around it. */
    value(depth) {
        if (this.position > this.#valuesEnd)
            throw this.#refusal(`a value after ${this.#valuesEnd}`);
        const type = this.#bytes[this.#take(1)];
        if (type < 0x80)
            return type;
        if (type >= 0xe0)
            return type - 0x100;
        if (type < 0x90)
            return this.#map(type & 0x0f, depth);
        if (type < 0xa0)
            return this.#list(type & 0x0f, depth);
        if (type < 0xc0)
            return this.#text(type & 0x1f);
        switch (type) {
            case 0xc0:
                return null;
            case 0xc2:
                return false;
            case 0xc3:
                return true;
            case 0xc4:
            case 0xc5:
            case 0xc6:
                return this.#binary(this.#length(type - 0xc4));
            case 0xca:
                return readFloat32(this.#bytes, this.#take(4));
            case 0xcb:
                return readFloat64(this.#bytes, this.#take(8));
            case 0xcc:
            case 0xcd:
            case 0xce:
                return this.#length(type - 0xcc);
            case 0xcf:
                return readUint64(this.#bytes, this.#take(8));
            case 0xd0:
                return (this.#length(0) << 24) >> 24;
            case 0xd1:
                return (this.#length(1) << 16) >> 16;
            case 0xd2:
                return this.#length(2) | 0;
            case 0xd3:
                return readInt64(this.#bytes, this.#take(8));
            case 0xd9:
            case 0xda:
            case 0xdb:
                return this.#text(this.#length(type - 0xd9));
            case 0xdc:
            case 0xdd:
                return this.#list(this.#length(type - 0xdc + 1), depth);
            case 0xde:
            case 0xdf:
                return this.#map(this.#length(type - 0xde + 1), depth);
            default:
                throw this.#unused(type);
        }
    }
    /** Reads the next key of a map. */
    key() {
        const type = this.#bytes[this.position] ?? 0;
        const isText = (type >= 0xa0 && type < 0xc0) || (type >= 0xd9 && type <= 0xdb);
        const key = isText ? this.value(0) : undefined;
        // Assigned to, `__proto__` would change what the map is.
        if (typeof key === "string" && key !== "__proto__")
            return key;
        throw this.#refusal(isText ? "the key __proto__" : "a key that is no text");
    }
    /** Reads the value of a key that was just read into a map. */
    entry(map, key, depth) {
        if (Object.hasOwn(map, key))
            throw this.repeated(key);
        map[key] = this.value(depth + 1);
    }
    /** Makes the error for a repeated key; call it just after the key was read. */
    repeated(key) {
        return this.#refusal(`the key ${JSON.stringify(key)} again`);
    }
    /** Refuses a list or map that is nested too deeply, or declares more values than there are bytes. */
    enter(values, depth) {
        if (depth >= NESTING_MAX)
            throw this.#refusal(`a list or map ${depth + 1} deep`);
        const leftBytes = this.#bytes.length - this.position;
        if (values > leftBytes)
            throw this.#refusal(`${values} values announced in ${leftBytes} bytes`);
    }
    /** Refuses bytes after the last value. */
    end() {
        const leftBytes = this.#bytes.length - this.position;
        if (leftBytes !== 0)
            throw this.#refusal(`${leftBytes} bytes after the end of the value`);
    }
    /** Advances past the next `count` bytes and returns where they begin. */
    #take(count) {
        const start = this.position;
        const leftBytes = this.#bytes.length - start;
        if (count > leftBytes)
            throw this.#refusal(`${leftBytes} bytes where ${count} are announced`);
        this.position = start + count;
        return start;
    }
    /** Reads a length of 1, 2 or 4 bytes, for `size` 0, 1 and 2. */
    #length(size) {
        const bytes = this.#bytes;
        const at = this.#take(1 << size);
        if (size === 0)
            return bytes[at];
        return size === 1
            ? (bytes[at] << 8) | bytes[at + 1]
            : readUint32(bytes, at);
    }
    #binary(length) {
        const start = this.#take(length);
        return this.#bytes.subarray(start, start + length);
    }
    #text(length) {
        const start = this.#take(length);
        const text = texts.read(this.#bytes, start, length);
        if (text !== undefined)
            return text;
        this.position = start;
        throw this.#refusal("text that is not UTF-8");
    }
    #list(length, depth) {
        this.enter(length, depth);
        const list = [];
        for (let i = 0; i < length; i++)
            list.push(this.value(depth + 1));
        return list;
    }
    #map(length, depth) {
        this.enter(2 * length, depth);
        const map = {};
        for (let i = 0; i < length; i++)
            this.entry(map, this.key(), depth);
        return map;
    }
    /** Makes the error for a type that was just read. */
    #unused(type) {
        this.position -= 1;
        return this.#refusal(`the type 0x${type.toString(16)}, which the protocol does not use`);
    }
    #refusal(what) {
        const { position } = this;
        return new PserverError("BAD_MESSAGE", `msgpack, byte ${position}: received ${what}`, {
            position,
        });
    }
}
// This part of the package does not load its native add-on, which only speeds up reading.
// Without records every map is a plain msgpack map that any decoder can read; `undefined` would
// otherwise become an extension type.
const packr = new Packr({ useRecords: false, variableMapSize: true, encodeUndefinedAsNil: true });
/** Writes a value as msgpack. The next call overwrites the bytes: copy them before keeping them. */
export function writeMsgpack(value) {
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
export function checkWritable(value, what, depth) {
    switch (typeof value) {
        case "number":
        case "boolean":
        case "undefined":
            return;
        case "string":
            if (value.isWellFormed())
                return;
            throw malformed(String(what));
        case "object":
            if (value === null || value instanceof Uint8Array)
                return;
            if (depth < NESTING_MAX && checkEntries(value, what, depth))
                return;
    }
    throw new PserverError("INTERNAL", `${what}: a message cannot carry ${nameOf(value)}`);
}
/** Checks the values in a list or map; returns false if the value is neither. */
function checkEntries(value, what, depth) {
    if (Array.isArray(value)) {
        for (let i = 0; i < value.length; i++)
            checkWritable(value[i], i, depth + 1);
        return true;
    }
    if (!isPlain(value))
        return false;
    const map = value;
    for (const key of Object.keys(map)) {
        if (!key.isWellFormed())
            throw malformed(`a key of ${what}`);
        checkWritable(map[key], key, depth + 1);
    }
    return true;
}
function isPlain(value) {
    const prototype = Object.getPrototypeOf(value);
    return prototype === Object.prototype || prototype === null;
}
function malformed(what) {
    return new PserverError("BAD_VALUE", `${what}: expected text; received half a surrogate pair`);
}
function nameOf(value) {
    return typeof value === "object" ? `such a ${value?.constructor?.name}` : `a ${typeof value}`;
}
//# sourceMappingURL=msgpack.js.map