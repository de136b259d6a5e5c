import { draftMessage, encodeMessage, } from "../codec.js";
import { toConfig } from "../config/index.js";
import { DTYPES, encodedBytes } from "../dtypes.js";
import { PserverError } from "../errors.js";
import { dtypeField, encodingField, integerField, listField, mapField, numberField, textField, wordField, } from "../fields.js";
import { checkWritable, writeMsgpack } from "../msgpack.js";
import { checkShape, elementCount } from "../tensor.js";
import { parsePartEntry, partEntry } from "./parts.js";
/** Begins a record with room for its tensor bytes; fill and seal it as {@link DraftMessage} says. */
export function draftRecord(record, dataBytes, allocate) {
    if (record.verb === "push")
        return draftMessage(pushFields(record), dataBytes, allocate);
    const { verb: _verb, ...fields } = record;
    return draftMessage(fields, dataBytes, allocate);
}
/**
 * Returns the entries of a push. Written without object spread, which is slow in V8, because it runs for
 * every push.
 */
function pushFields(record) {
    const { session, n, done, reply, epoch, dtype, norm, encoding, operation } = record;
    const part = record.part && partEntry(record.part);
    const { op } = operation;
    if (op === "mix") {
        const { alpha, beta } = operation;
        return { session, n, done, reply, epoch, dtype, encoding, norm, op, alpha, beta, part };
    }
    const { lr, step, seen } = operation;
    return { session, n, done, reply, epoch, dtype, encoding, norm, op, lr, step, seen, part };
}
/** Writes a trainer's clock as a message. */
export function encodeClock(record) {
    const { verb: _verb, ...entries } = record;
    return encodeMessage(entries);
}
/**
 * Reads the header of a trainer's record. By it the fold decides whether the record counts.
 * @throws BAD_MESSAGE if one is missing or not a number.
 */
export function parseRecordHeader(fields) {
    const n = integerField(fields, "n", 1);
    return {
        session: integerField(fields, "session", 1),
        n,
        done: integerField(fields, "done", 0, n - 1),
        reply: textField(fields, "reply", 512),
    };
}
/**
 * Reads a trainer's record of a verb and checks its values. Whether it fits its block is checked by the fold.
 * @throws BAD_MESSAGE, BAD_DTYPE, BAD_SHAPE, BAD_LENGTH or BAD_CONFIG naming what is wrong.
 */
export function parseTrainerRecord(verb, { session, n, done, reply }, message) {
    const { fields, data } = message;
    const epoch = integerField(fields, "epoch", 1);
    // Every object has the same shape, and none is spread, which is slow in V8: this runs for every record.
    const header = { session, n, done, reply, epoch, dtype: dtypeField(fields) };
    if (verb === "push")
        return parsePush(header, message);
    checkWholeElements(data, DTYPES[header.dtype].bytes);
    if (verb === "set")
        return { verb, ...header };
    const shape = checkShape(listField(fields, "shape", 64));
    const elements = elementCount(shape);
    const start = integerField(fields, "start", 0, elements - 1);
    const count = integerField(fields, "count", 1, elements - start);
    const expected = count * DTYPES[header.dtype].bytes;
    if (data.length !== expected)
        throw badLength(String(expected), data.length);
    return { verb, ...header, shape, start, count, config: toConfig(mapField(fields, "config")) };
}
/** Reads a clock; @throws BAD_MESSAGE if the fields are not a valid clock. */
export function parseClock(fields) {
    return { verb: "clock", ...parseRecordHeader(fields), step: integerField(fields, "step", 1) };
}
function parsePush(header, { fields, data }) {
    const { session, n, done, reply, epoch, dtype } = header;
    const encoding = encodingField(fields);
    const part = parsePartEntry(fields);
    if (part === undefined)
        checkWholeElements(data, encodedBytes(dtype, encoding, 1));
    const norm = fields["norm"] === undefined ? undefined : numberField(fields, "norm");
    const operation = parseOperation(fields, fields["step"], fields["seen"]);
    return { verb: "push", session, n, done, reply, epoch, dtype, encoding, norm, operation, part };
}
/** @throws BAD_LENGTH unless the bytes are whole elements, at least one. */
export function checkWholeElements(data, elementBytes) {
    if (data.length === 0 || data.length % elementBytes !== 0) {
        throw badLength(`a positive multiple of ${elementBytes}`, data.length);
    }
}
/**
 * Reads the operation of a push, with a gradient's step and the version that the gradient was made from.
 * @throws BAD_MESSAGE or BAD_VALUE
 */
export function parseOperation(fields, step, seen) {
    const op = wordField(fields, "op", ["mix", "grad"]);
    if (op === "mix") {
        return { op, alpha: finiteField(fields, "alpha"), beta: finiteField(fields, "beta") };
    }
    const lr = fields["lr"] === undefined ? undefined : finiteField(fields, "lr");
    return {
        op,
        lr,
        step: step === undefined ? undefined : integerField({ step }, "step", 1),
        seen: seen === undefined ? undefined : integerField({ seen }, "seen", 1),
    };
}
function finiteField(fields, key) {
    const value = numberField(fields, key);
    if (Number.isFinite(value))
        return value;
    throw new PserverError("BAD_VALUE", `${key}: expected a finite number; received ${value}`);
}
function badLength(expected, received) {
    return new PserverError("BAD_LENGTH", `tensor bytes: expected ${expected}; received ${received}`, {
        expected,
        received,
    });
}
/** Bytes of the entries of a note as msgpack. */
export const NOTE_BYTES_MAX = 4096;
/** Entries of one note. */
export const NOTE_ENTRIES_MAX = 64;
/** Bytes of the name of an entry, in UTF-8. */
export const NOTE_NAME_BYTES_MAX = 128;
/** Bytes of a note record: its header and its entries. */
export const NOTE_RECORD_BYTES_MAX = NOTE_BYTES_MAX + 1536;
/** The shard whose journal takes a job's notes. */
export const NOTE_SHARD = 0;
/** Writes a trainer's note as a message. */
export function encodeNote({ verb: _verb, ...fields }) {
    return encodeMessage({ ...fields });
}
/**
 * Reads the note in a record's fields. Part of the fold: what it checks belongs to a version of the rules.
 * The size of the record bounds that of all entries.
 * @throws BAD_MESSAGE if they are not those of a note, BAD_VALUE or TOO_LARGE as {@link checkNote} does.
 */
export function parseNote(fields) {
    return {
        verb: "note",
        ...parseRecordHeader(fields),
        note: checkEntries(mapField(fields, "note")),
    };
}
/**
 * Returns the entries, if a note can carry them.
 * @throws BAD_VALUE for none, for a name that is empty or too long, and for a value that is neither a
 * finite number nor a text nor a boolean; TOO_LARGE for too many entries or bytes.
 */
export function checkNote(entries) {
    const note = checkEntries(entries);
    checkWritable(note, "note", 1);
    const bytes = writeMsgpack(note).length;
    if (bytes <= NOTE_BYTES_MAX)
        return note;
    throw tooLarge(`expected at most ${NOTE_BYTES_MAX} bytes as msgpack; received ${bytes}`);
}
function checkEntries(entries) {
    const names = Object.keys(entries);
    if (names.length === 0)
        throw badNote("expected at least one entry; received none");
    if (names.length > NOTE_ENTRIES_MAX) {
        throw tooLarge(`expected at most ${NOTE_ENTRIES_MAX} entries; received ${names.length}`);
    }
    for (const name of names)
        checkEntry(name, entries[name]);
    return entries;
}
function checkEntry(name, value) {
    const nameBytes = Buffer.byteLength(name);
    const shown = JSON.stringify(name.slice(0, 60));
    if (nameBytes === 0 || nameBytes > NOTE_NAME_BYTES_MAX || name === "__proto__") {
        throw badNote(`expected names of 1 to ${NOTE_NAME_BYTES_MAX} bytes; received ${shown}`);
    }
    if (typeof value === "string" || typeof value === "boolean")
        return;
    if (typeof value === "number" && Number.isFinite(value))
        return;
    const received = typeof value === "number" ? String(value) : kindOf(value);
    throw badNote(`${shown}: expected a finite number, text or boolean; received ${received}`);
}
function kindOf(value) {
    if (value === null)
        return "null";
    if (Array.isArray(value))
        return "a list";
    if (value instanceof Uint8Array)
        return "bytes";
    return typeof value === "object" ? "a map" : `a ${typeof value}`;
}
function badNote(message) {
    return new PserverError("BAD_VALUE", `note: ${message}`);
}
function tooLarge(message) {
    return new PserverError("TOO_LARGE", `note: ${message}`);
}
//# sourceMappingURL=records.js.map