import { pipeline, Readable } from "node:stream";
import { crc32, createInflateRaw } from "node:zlib";
import { PserverError } from "../protocol/errors.js";
import { quoteName } from "../protocol/names.js";
import { badFile, decodeFileText } from "./file-text.js";
import { DESCRIPTION_BYTES_MAX, TENSORS_MAX } from "./tensor-headers.js";
/**
 * Yields the unpacked bytes of a member from `skip` on, in chunks that belong to the receiver. Memory stays
 * bounded whatever the archive claims. The checksum is checked after the last byte.
 * @throws BAD_FILE if the length or checksum is not the one of the directory; IO; CLOSED.
 */
export async function* unpack(file, entry, skip) {
    const what = quoteName(entry.name);
    let received = 0;
    let crc = 0;
    for await (const chunk of unchecked(file, entry)) {
        const before = received;
        received += chunk.byteLength;
        if (received > entry.bytes)
            break;
        crc = crc32(chunk, crc);
        const rest = chunk.subarray(Math.max(0, skip - before));
        if (rest.byteLength > 0)
            yield rest;
    }
    if (received !== entry.bytes) {
        throw badFile(file.path, `unpacked bytes of ${what}`, entry.bytes, received);
    }
    if (crc !== entry.crc)
        throw badFile(file.path, `checksum of ${what}`, entry.crc, crc);
}
/**
 * Reads the first `length` unpacked bytes of a member, or all if it has fewer. No checksum is checked.
 * @throws BAD_FILE if they cannot be unpacked; IO; CLOSED.
 */
export async function unpackBeginning(file, entry, length) {
    const wanted = Math.min(length, entry.bytes);
    if (!entry.deflated)
        return await file.read(entry.packedAt, wanted, quoteName(entry.name));
    const beginning = new Uint8Array(wanted);
    let filled = 0;
    for await (const chunk of unchecked(file, entry)) {
        const part = chunk.subarray(0, wanted - filled);
        beginning.set(part, filled);
        filled += part.byteLength;
        if (filled === wanted)
            return beginning;
    }
    throw badFile(file.path, `unpacked bytes of ${quoteName(entry.name)}`, entry.bytes, filled);
}
async function* unchecked(file, entry) {
    const what = quoteName(entry.name);
    const packed = file.stream(entry.packedAt, entry.packedBytes, what);
    if (!entry.deflated) {
        yield* packed;
        return;
    }
    const inflate = createInflateRaw();
    // Every error reaches the loop below through `inflate`, which the pipeline destroys with it.
    pipeline(Readable.from(packed, { objectMode: true, highWaterMark: 1 }), inflate, () => undefined);
    try {
        for await (const chunk of inflate)
            yield chunk;
    }
    catch (error) {
        if (error instanceof PserverError)
            throw error;
        throw badFile(file.path, `packed bytes of ${what}`, "deflated data", "other bytes", error);
    }
    finally {
        inflate.destroy();
    }
}
/** The parts of the zip format that the writer and the reader share. */
/** First four bytes of each structure, as little-endian numbers. */
export const ZIP_SIGNATURES = {
    local: 0x04034b50,
    descriptor: 0x08074b50,
    central: 0x02014b50,
    end: 0x06054b50,
    end64: 0x06064b50,
    end64Locator: 0x07064b50,
};
/** Lengths of the structures, without names, extra fields and comments. */
export const ZIP_BYTES = {
    local: 30,
    central: 46,
    end: 22,
    end64: 56,
    end64Locator: 20,
};
/** How a member is packed. */
export const ZIP_METHODS = { stored: 0, deflated: 8 };
/** Bits of a member's flags. */
export const ZIP_FLAGS = { encrypted: 0x0001, descriptor: 0x0008, utf8: 0x0800 };
/** The version of the zip format that supports zip64. */
export const ZIP64_VERSION = 45;
/** Id of the extra field that holds 8-byte sizes. */
export const ZIP64_EXTRA = 0x0001;
/** Stands in a 4-byte field if the value is in the zip64 extra field. */
export const IN_EXTRA_32 = 0xffffffff;
/** Stands in a 2-byte count if the value is in the zip64 end record. */
export const IN_EXTRA_16 = 0xffff;
/** Bytes of a name, an extra field or the comment, at most. */
export const ZIP_TEXT_BYTES_MAX = 0xffff;
/**
 * Reads the end of a zip archive. The central directory must end where the end records begin.
 * @throws BAD_FILE, IO.
 */
async function readZipEnd(file) {
    const tailBytes = Math.min(file.bytes, ZIP_BYTES.end + ZIP_TEXT_BYTES_MAX);
    const tailAt = file.bytes - tailBytes;
    const tail = await file.read(tailAt, tailBytes, "end of the archive");
    const view = new DataView(tail.buffer);
    const at = findEndRecord(file.path, view);
    const endAt = tailAt + at;
    const end = {
        members: view.getUint16(at + 10, true),
        centralBytes: view.getUint32(at + 12, true),
        centralAt: view.getUint32(at + 16, true),
    };
    if (view.getUint16(at + 4, true) !== 0 ||
        view.getUint16(at + 6, true) !== 0 ||
        view.getUint16(at + 8, true) !== end.members) {
        throw badFile(file.path, "volumes of the archive", 1, "several");
    }
    const inEnd64 = end.members === IN_EXTRA_16 ||
        end.centralBytes === IN_EXTRA_32 ||
        end.centralAt === IN_EXTRA_32;
    const comment = Buffer.from(tail.subarray(at + ZIP_BYTES.end)).toString();
    if (inEnd64)
        return { ...(await readEnd64(file, endAt)), comment };
    checkCentral(file.path, end.centralAt, end.centralBytes, endAt);
    return { ...end, comment };
}
/** Finds the last end record whose comment ends exactly at the end of the file. */
function findEndRecord(path, view) {
    for (let at = view.byteLength - ZIP_BYTES.end; at >= 0; at--) {
        if (view.getUint32(at, true) !== ZIP_SIGNATURES.end)
            continue;
        if (at + ZIP_BYTES.end + view.getUint16(at + 20, true) === view.byteLength)
            return at;
    }
    throw badFile(path, "end of the archive", "the end record of a zip archive", "other bytes");
}
async function readEnd64(file, endAt) {
    const what = "8-byte end record";
    const locatorAt = endAt - ZIP_BYTES.end64Locator;
    const locator = await file.read(locatorAt, ZIP_BYTES.end64Locator, what);
    const locatorView = new DataView(locator.buffer);
    const at = Number(locatorView.getBigUint64(8, true));
    if (locatorView.getUint32(0, true) !== ZIP_SIGNATURES.end64Locator ||
        locatorView.getUint32(4, true) !== 0 ||
        at + ZIP_BYTES.end64 !== locatorAt) {
        throw badFile(file.path, what, `at ${locatorAt - ZIP_BYTES.end64}`, `a locator of ${at}`);
    }
    const view = new DataView((await file.read(at, ZIP_BYTES.end64, what)).buffer);
    const members = Number(view.getBigUint64(32, true));
    const centralBytes = Number(view.getBigUint64(40, true));
    const centralAt = Number(view.getBigUint64(48, true));
    if (view.getUint32(0, true) !== ZIP_SIGNATURES.end64 ||
        view.getUint32(16, true) !== 0 ||
        view.getUint32(20, true) !== 0 ||
        Number(view.getBigUint64(24, true)) !== members) {
        throw badFile(file.path, what, "that of an archive of one volume", "other values");
    }
    checkCentral(file.path, centralAt, centralBytes, at);
    return { members, centralAt, centralBytes };
}
function checkCentral(path, centralAt, centralBytes, endAt) {
    if (centralBytes > DESCRIPTION_BYTES_MAX) {
        throw badFile(path, "central directory", `at most ${DESCRIPTION_BYTES_MAX} bytes`, centralBytes);
    }
    if (centralAt + centralBytes !== endAt) {
        throw badFile(path, "end of the central directory", endAt, centralAt + centralBytes);
    }
}
/**
 * Reads the table of contents of a zip archive, which is the central directory, and compares each entry with
 * the header before its data.
 * @throws BAD_FILE for anything but stored and deflated members, once each; IO.
 */
export async function readZip(file) {
    const { members, centralAt, centralBytes, comment } = await readZipEnd(file);
    if (members > TENSORS_MAX)
        throw badFile(file.path, "members", `at most ${TENSORS_MAX}`, members);
    const central = await file.read(centralAt, centralBytes, "central directory");
    const entries = [];
    const names = new Set();
    let at = 0;
    for (let i = 0; i < members; i++) {
        const { entry, next } = decodeCentral(file.path, central, at);
        if (names.has(entry.name)) {
            throw badFile(file.path, "members", "each name once", `${quoteName(entry.name)} again`);
        }
        names.add(entry.name);
        entries.push(await locate(file, entry, centralAt));
        at = next;
    }
    if (at !== centralBytes)
        throw badFile(file.path, "bytes of the central directory", at, centralBytes);
    checkApart(file.path, entries);
    return { entries, comment };
}
function decodeCentral(path, central, at) {
    const view = new DataView(central.buffer, central.byteOffset, central.byteLength);
    const what = `central directory entry at ${at}`;
    const leftBytes = central.byteLength - at;
    if (leftBytes < ZIP_BYTES.central || view.getUint32(at, true) !== ZIP_SIGNATURES.central) {
        throw badFile(path, what, "an entry", `${leftBytes} other bytes`);
    }
    const nameEnd = at + ZIP_BYTES.central + view.getUint16(at + 28, true);
    const extraEnd = nameEnd + view.getUint16(at + 30, true);
    const next = extraEnd + view.getUint16(at + 32, true);
    if (next > central.byteLength) {
        throw badFile(path, what, `at most ${leftBytes} bytes`, next - at);
    }
    const name = decodeFileText(path, what, central.subarray(at + ZIP_BYTES.central, nameEnd));
    const flags = view.getUint16(at + 8, true);
    const method = view.getUint16(at + 10, true);
    if ((flags & ZIP_FLAGS.encrypted) !== 0) {
        throw badFile(path, quoteName(name), "no encryption", `flags ${flags}`);
    }
    if (method !== ZIP_METHODS.stored && method !== ZIP_METHODS.deflated) {
        throw badFile(path, `method of ${quoteName(name)}`, "stored (0) or deflated (8)", method);
    }
    // The extra field holds, in this order, only the values whose 4-byte field is full.
    const large = readZip64Extra(path, name, central.subarray(nameEnd, extraEnd));
    const wide = (field) => {
        const value = view.getUint32(at + field, true);
        if (value !== IN_EXTRA_32)
            return value;
        const extended = large.shift();
        if (extended === undefined)
            throw badFile(path, quoteName(name), "an 8-byte size", "none");
        return extended;
    };
    const bytes = wide(24);
    const packedBytes = wide(20);
    const localAt = wide(42);
    const deflated = method === ZIP_METHODS.deflated;
    if (!deflated && packedBytes !== bytes) {
        throw badFile(path, `stored bytes of ${quoteName(name)}`, bytes, packedBytes);
    }
    const crc = view.getUint32(at + 16, true);
    const comment = Buffer.from(central.subarray(extraEnd, next)).toString();
    return {
        entry: { name, comment, deflated, bytes, packedBytes, crc, localAt, flags, method },
        next,
    };
}
/** Reads the 8-byte numbers of the zip64 extra field; none if it is absent. */
function readZip64Extra(path, name, extra) {
    const view = new DataView(extra.buffer, extra.byteOffset, extra.byteLength);
    for (let at = 0; at + 4 <= extra.byteLength;) {
        const id = view.getUint16(at, true);
        const end = at + 4 + view.getUint16(at + 2, true);
        if (end > extra.byteLength)
            break;
        if (id === ZIP64_EXTRA) {
            const values = [];
            for (let field = at + 4; field + 8 <= end; field += 8) {
                const value = Number(view.getBigUint64(field, true));
                if (!Number.isSafeInteger(value)) {
                    throw badFile(path, `sizes of ${quoteName(name)}`, "numbers below 2^53", value);
                }
                values.push(value);
            }
            return values;
        }
        at = end;
    }
    return [];
}
/** Finds the data of a member, and checks that its local header agrees with the directory. */
async function locate(file, entry, centralAt) {
    const { name, comment, deflated, bytes, packedBytes, crc, localAt } = entry;
    const what = `local header of ${quoteName(name)}`;
    const local = await file.read(localAt, ZIP_BYTES.local, what);
    const view = new DataView(local.buffer);
    const nameBytes = view.getUint16(26, true);
    const localName = await file.read(localAt + ZIP_BYTES.local, nameBytes, what);
    if (view.getUint32(0, true) !== ZIP_SIGNATURES.local ||
        view.getUint16(6, true) !== entry.flags ||
        view.getUint16(8, true) !== entry.method ||
        decodeFileText(file.path, what, localName) !== name) {
        throw badFile(file.path, what, "the flags, method and name of the directory", "others");
    }
    const packedAt = localAt + ZIP_BYTES.local + nameBytes + view.getUint16(28, true);
    if (packedAt + packedBytes > centralAt) {
        const leftBytes = centralAt - packedAt;
        throw badFile(file.path, `packed bytes of ${quoteName(name)}`, `at most ${leftBytes}`, packedBytes);
    }
    return { name, comment, deflated, bytes, packedBytes, crc, packedAt, localAt };
}
function checkApart(path, entries) {
    const inOrder = [...entries].sort((a, b) => a.localAt - b.localAt);
    let end = 0;
    for (const { name, localAt, packedAt, packedBytes } of inOrder) {
        if (localAt < end)
            throw badFile(path, `place of ${quoteName(name)}`, `from ${end} on`, localAt);
        end = packedAt + packedBytes;
    }
}
//# sourceMappingURL=zip-reader.js.map