import { checksum, joinChecksums } from "./checksum/checksum.js";
import { PserverError } from "./errors.js";
import { PROTOCOL_VERSION } from "./limits.js";
import { checkWritable, MsgpackReader, readMsgpack, readUint32, writeMsgpack, writeUint32, } from "./msgpack.js";
/**
 * The envelope of every message: one msgpack map whose first entry is `crc`, whose second is `v`
 * (the protocol version) and whose last, if the message carries tensor bytes, is `data`.
 *
 *     byte  0      0x80 + number of entries (a fixmap: at most 15)
 *     bytes 1..4   a3 63 72 63             the key "crc"
 *     bytes 5..9   ce xx xx xx xx          uint32, big-endian
 *     then         the other entries; `data` is `a4 64 61 74 61 c6 <uint32 length> <bytes>`
 *
 * The CRC-32 (IEEE, as in zlib) covers every byte but the four of its own value. So a sender can
 * write the header and then the bytes, and any msgpack decoder can read a recorded journal.
 */
const CRC_OFFSET = 6;
const CRC_END = 10;
const ENTRIES_MAX = 15;
/** msgpack's type byte of an empty fixmap; each entry adds 1. */
const FIXMAP = 0x80;
const CRC_KEY = [0xa3, 0x63, 0x72, 0x63, 0xce];
const DATA_KEY = [0xa4, 0x64, 0x61, 0x74, 0x61, 0xc6];
const NO_BYTES = new Uint8Array(0);
/** Checksums of the bytes before the checksum of a message, by its number of entries. */
const BEGINNING_CRCS = Array.from({ length: ENTRIES_MAX + 1 }, (_, entries) => checksum(Uint8Array.of(FIXMAP + entries, ...CRC_KEY)));
/**
 * Begins a message with room for `dataBytes` tensor bytes. Fill `data`, then call {@link sealMessage}. The
 * caller owns the bytes, which come from `allocate` if given. Undefined entries are left out.
 * @throws BAD_VALUE for text that is not well-formed, INTERNAL for what no message can carry.
 */
export function draftMessage(fields, dataBytes, allocate = Buffer.allocUnsafeSlow) {
    const withData = dataBytes !== undefined;
    const entries = toEntries(fields);
    const names = Object.keys(entries);
    const total = names.length + 1 + (withData ? 1 : 0);
    if (total > ENTRIES_MAX) {
        throw new PserverError("INTERNAL", `a message takes at most ${ENTRIES_MAX} entries`, {
            entries: names,
        });
    }
    const packed = writeMsgpack(entries);
    const headerBytes = CRC_END + packed.length - 1;
    const dataStart = headerBytes + (withData ? DATA_KEY.length + 4 : 0);
    // Not zeroed: every byte is written, the tensor's by the caller.
    const buffer = allocate(dataStart + (dataBytes ?? 0));
    // A Uint8Array: `slice` of a Buffer would share memory instead of copying it.
    const bytes = new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.length);
    // The last byte of the checksum overwrites the type byte with which the packed map begins.
    bytes.set(packed, CRC_END - 1);
    bytes[0] = FIXMAP + total;
    writeBytes(bytes, 1, CRC_KEY);
    if (withData) {
        writeBytes(bytes, headerBytes, DATA_KEY);
        writeUint32(bytes, dataStart - 4, dataBytes);
    }
    return { bytes, data: bytes.subarray(dataStart) };
}
/**
 * Writes the checksum into a drafted message and returns its bytes. `dataCrc`: the checksum of the
 * tensor bytes alone, if it is known already.
 */
export function sealMessage(draft, dataCrc) {
    const { bytes, data } = draft;
    const crc = dataCrc === undefined
        ? messageCrc(bytes)
        : joinChecksums(messageCrc(bytes.subarray(0, bytes.length - data.length)), dataCrc, data.length);
    writeUint32(bytes, CRC_OFFSET, crc);
    return bytes;
}
/** Makes a whole message; `data` is copied. */
export function encodeMessage(fields, data) {
    const draft = draftMessage(fields, data?.length);
    if (data !== undefined)
        draft.data.set(data);
    return sealMessage(draft);
}
/**
 * Reads one message. Only its form is checked; see `fields.ts` for its values. `headerBytesMax`: as in
 * {@link decodeSealed}.
 * @throws BAD_MESSAGE if it is malformed or truncated, BAD_CHECKSUM if a bit has changed,
 * BAD_VERSION if it is of another protocol version.
 */
export function decodeMessage(bytes, headerBytesMax = bytes.length) {
    if (!hasEnvelope(bytes)) {
        throw new PserverError("BAD_MESSAGE", `expected a msgpack map that begins with "crc"; received ${bytes.length} bytes that do not`, { receivedBytes: bytes.length });
    }
    const expected = readCrc(bytes);
    const received = messageCrc(bytes);
    if (expected !== received) {
        throw new PserverError("BAD_CHECKSUM", `checksum: the message says ${hex(expected)}, its bytes give ${hex(received)}`, { expected, received });
    }
    return decodeSealed(bytes, headerBytesMax);
}
/**
 * Returns whether bytes have the envelope of a message with a matching checksum. For junk it makes no error,
 * which would cost more than the check.
 */
export function isSealed(bytes) {
    return hasEnvelope(bytes) && readCrc(bytes) === messageCrc(bytes);
}
/**
 * Reads one message for which {@link isSealed} holds. `headerBytesMax`: bytes after which no value may
 * begin, which bounds the work.
 * @throws BAD_MESSAGE if it is malformed, BAD_VERSION if it is of another protocol version.
 */
export function decodeSealed(bytes, headerBytesMax = bytes.length) {
    const { v, data, fields } = readEntries(bytes, headerBytesMax);
    if (v !== PROTOCOL_VERSION) {
        throw new PserverError("BAD_VERSION", `protocol version: expected ${PROTOCOL_VERSION}; received ${String(v)}`, { expected: PROTOCOL_VERSION, received: String(v) });
    }
    if (data === undefined)
        return { fields, data: NO_BYTES };
    if (!(data instanceof Uint8Array)) {
        throw new PserverError("BAD_MESSAGE", `data: expected bytes; received a ${typeof data}`);
    }
    if (data.byteOffset + data.length !== bytes.byteOffset + bytes.length) {
        throw new PserverError("BAD_MESSAGE", "data: expected the last entry; received more after it");
    }
    return { fields, data };
}
/** Reads the checksum in a message that has the envelope; it identifies a journal record. */
export function readCrc(bytes) {
    return readUint32(bytes, CRC_OFFSET);
}
/** Writes any plain value as msgpack, such as the state in a snapshot. The caller owns the bytes. */
export function packValue(value) {
    return Uint8Array.from(writeMsgpack(value));
}
/**
 * Reads a value that {@link packValue} has written.
 * @throws BAD_MESSAGE if the bytes are not valid msgpack.
 */
export function unpackValue(bytes) {
    return readMsgpack(bytes);
}
/** Reads the fields of a sealed message, and apart from them the entries of the envelope. */
function readEntries(bytes, headerBytesMax) {
    const count = bytes[0] - FIXMAP;
    const reader = new MsgpackReader(bytes, headerBytesMax);
    reader.position = 1;
    reader.enter(2 * count, 0);
    // The first entry is the checksum, which has been compared already.
    reader.position = CRC_END;
    const fields = {};
    let v;
    let data;
    for (let i = 1; i < count; i++) {
        const key = reader.key();
        if (key === "v") {
            if (v !== undefined)
                throw reader.repeated(key);
            v = reader.value(1);
        }
        else if (key === "data") {
            if (data !== undefined)
                throw reader.repeated(key);
            data = reader.value(1);
        }
        else if (key === "crc") {
            throw reader.repeated(key);
        }
        else {
            reader.entry(fields, key, 0);
        }
    }
    reader.end();
    return { v, data, fields };
}
function messageCrc(bytes) {
    const beginning = hasEnvelope(bytes)
        ? BEGINNING_CRCS[bytes[0] - FIXMAP]
        : checksum(bytes.subarray(0, CRC_OFFSET));
    return checksum(bytes.subarray(CRC_END), beginning);
}
function hasEnvelope(bytes) {
    const first = bytes[0] ?? 0;
    return (bytes.length > CRC_END &&
        first >= FIXMAP + 2 &&
        first <= FIXMAP + ENTRIES_MAX &&
        bytes[1] === CRC_KEY[0] &&
        bytes[2] === CRC_KEY[1] &&
        bytes[3] === CRC_KEY[2] &&
        bytes[4] === CRC_KEY[3] &&
        bytes[5] === CRC_KEY[4]);
}
/** Returns the entries to write, in order: the version first, undefined ones left out. */
function toEntries(fields) {
    const entries = { v: PROTOCOL_VERSION };
    for (const key of Object.keys(fields)) {
        const value = fields[key];
        if (value === undefined)
            continue;
        if (key === "crc" || key === "v" || key === "data") {
            throw new PserverError("INTERNAL", `the entry ${key} is the envelope's own`, { key });
        }
        checkWritable(value, key, 1);
        entries[key] = value;
    }
    return entries;
}
function writeBytes(target, start, bytes) {
    for (let i = 0; i < bytes.length; i++)
        target[start + i] = bytes[i];
}
function hex(crc) {
    return `0x${crc.toString(16).padStart(8, "0")}`;
}
//# sourceMappingURL=codec.js.map