import { crc32 } from "node:zlib";
import { PserverError } from "../protocol/errors.js";
import { IN_EXTRA_16, IN_EXTRA_32, ZIP_BYTES, ZIP_FLAGS, ZIP_METHODS, ZIP_SIGNATURES, ZIP_TEXT_BYTES_MAX, ZIP64_EXTRA, ZIP64_VERSION, } from "./zip-reader.js";
const FLAGS = ZIP_FLAGS.descriptor | ZIP_FLAGS.utf8;
const PLAIN_VERSION = 20;
const MADE_BY_UNIX = 3 << 8;
const FILE_MODE = 0o100644;
// 1 January 1980, the first day in the format: no time of writing, so that equal models make equal
// files.
const DOS_DATE = (1 << 5) | 1;
/**
 * Yields the bytes of a zip archive. Members are stored, each followed by its checksum, which is known only
 * then. Sizes of 4 GiB and more take their 8-byte forms.
 * @throws TOO_LARGE for a name or comment above 65,535 bytes; what `chunks` throws.
 */
export async function* writeZip(members, comment) {
    const encoder = new TextEncoder();
    const commentBytes = encoder.encode(comment);
    checkTextBytes("comment of the archive", commentBytes.byteLength);
    const written = [];
    let offset = 0;
    for (const member of members) {
        const name = encoder.encode(member.name);
        checkTextBytes("name of a member", name.byteLength);
        const comment = encoder.encode(member.comment ?? "");
        checkTextBytes("comment of a member", comment.byteLength);
        const local = encodeLocal(name, member.bytes);
        yield local;
        let crc = 0;
        for await (const chunk of member.chunks()) {
            crc = crc32(chunk, crc);
            yield chunk;
        }
        const descriptor = encodeDescriptor(member.bytes, crc);
        yield descriptor;
        written.push({ name, comment, bytes: member.bytes, crc, offset });
        offset += local.byteLength + member.bytes + descriptor.byteLength;
    }
    let centralBytes = 0;
    for (const member of written) {
        const central = encodeCentral(member);
        centralBytes += central.byteLength;
        yield central;
    }
    yield encodeEnd(written.length, offset, centralBytes, commentBytes);
}
function checkTextBytes(what, bytes) {
    if (bytes <= ZIP_TEXT_BYTES_MAX)
        return;
    throw new PserverError("TOO_LARGE", `${what}: expected at most ${ZIP_TEXT_BYTES_MAX} bytes; received ${bytes}`, { what, expected: ZIP_TEXT_BYTES_MAX, received: bytes });
}
/**
 * Makes the header before a member's data. Sizes and checksum are zero in it, because they follow the data in
 * the descriptor.
 */
function encodeLocal(name, bytes) {
    const large = bytes >= IN_EXTRA_32;
    const extraBytes = large ? 20 : 0;
    const view = new DataView(new ArrayBuffer(ZIP_BYTES.local + name.byteLength + extraBytes));
    view.setUint32(0, ZIP_SIGNATURES.local, true);
    view.setUint16(4, large ? ZIP64_VERSION : PLAIN_VERSION, true);
    view.setUint16(6, FLAGS, true);
    view.setUint16(8, ZIP_METHODS.stored, true);
    view.setUint16(12, DOS_DATE, true);
    view.setUint16(26, name.byteLength, true);
    view.setUint16(28, extraBytes, true);
    const target = bytesOfView(view);
    target.set(name, ZIP_BYTES.local);
    if (large) {
        view.setUint32(18, IN_EXTRA_32, true);
        view.setUint32(22, IN_EXTRA_32, true);
        view.setUint16(ZIP_BYTES.local + name.byteLength, ZIP64_EXTRA, true);
        view.setUint16(ZIP_BYTES.local + name.byteLength + 2, 16, true);
    }
    return target;
}
function encodeDescriptor(bytes, crc) {
    const large = bytes >= IN_EXTRA_32;
    const view = new DataView(new ArrayBuffer(large ? 24 : 16));
    view.setUint32(0, ZIP_SIGNATURES.descriptor, true);
    view.setUint32(4, crc, true);
    if (large) {
        view.setBigUint64(8, BigInt(bytes), true);
        view.setBigUint64(16, BigInt(bytes), true);
    }
    else {
        view.setUint32(8, bytes, true);
        view.setUint32(12, bytes, true);
    }
    return bytesOfView(view);
}
function encodeCentral({ name, comment, bytes, crc, offset }) {
    const large = bytes >= IN_EXTRA_32;
    const far = offset >= IN_EXTRA_32;
    const extra = [...(large ? [bytes, bytes] : []), ...(far ? [offset] : [])];
    const extraBytes = extra.length === 0 ? 0 : 4 + extra.length * 8;
    const commentAt = ZIP_BYTES.central + name.byteLength + extraBytes;
    const view = new DataView(new ArrayBuffer(commentAt + comment.byteLength));
    const version = extra.length === 0 ? PLAIN_VERSION : ZIP64_VERSION;
    view.setUint32(0, ZIP_SIGNATURES.central, true);
    view.setUint16(4, MADE_BY_UNIX | version, true);
    view.setUint16(6, version, true);
    view.setUint16(8, FLAGS, true);
    view.setUint16(10, ZIP_METHODS.stored, true);
    view.setUint16(14, DOS_DATE, true);
    view.setUint32(16, crc, true);
    view.setUint32(20, large ? IN_EXTRA_32 : bytes, true);
    view.setUint32(24, large ? IN_EXTRA_32 : bytes, true);
    view.setUint16(28, name.byteLength, true);
    view.setUint16(30, extraBytes, true);
    view.setUint16(32, comment.byteLength, true);
    view.setUint32(38, FILE_MODE * 0x10000, true);
    view.setUint32(42, far ? IN_EXTRA_32 : offset, true);
    const target = bytesOfView(view);
    target.set(name, ZIP_BYTES.central);
    target.set(comment, commentAt);
    let at = ZIP_BYTES.central + name.byteLength;
    if (extra.length > 0) {
        view.setUint16(at, ZIP64_EXTRA, true);
        view.setUint16(at + 2, extra.length * 8, true);
        at += 4;
    }
    for (const value of extra) {
        view.setBigUint64(at, BigInt(value), true);
        at += 8;
    }
    return target;
}
/**
 * Makes the end record and, if a number is too large for it, the zip64 end record and its locator, which come
 * before it.
 */
function encodeEnd(members, centralOffset, centralBytes, comment) {
    const large = members >= IN_EXTRA_16 || centralOffset >= IN_EXTRA_32 || centralBytes >= IN_EXTRA_32;
    const end64Bytes = large ? ZIP_BYTES.end64 + ZIP_BYTES.end64Locator : 0;
    const view = new DataView(new ArrayBuffer(end64Bytes + ZIP_BYTES.end + comment.byteLength));
    if (large) {
        view.setUint32(0, ZIP_SIGNATURES.end64, true);
        view.setBigUint64(4, BigInt(ZIP_BYTES.end64 - 12), true);
        view.setUint16(12, MADE_BY_UNIX | ZIP64_VERSION, true);
        view.setUint16(14, ZIP64_VERSION, true);
        view.setBigUint64(24, BigInt(members), true);
        view.setBigUint64(32, BigInt(members), true);
        view.setBigUint64(40, BigInt(centralBytes), true);
        view.setBigUint64(48, BigInt(centralOffset), true);
        view.setUint32(56, ZIP_SIGNATURES.end64Locator, true);
        view.setBigUint64(64, BigInt(centralOffset + centralBytes), true);
        view.setUint32(72, 1, true);
    }
    view.setUint32(end64Bytes, ZIP_SIGNATURES.end, true);
    view.setUint16(end64Bytes + 8, Math.min(members, IN_EXTRA_16), true);
    view.setUint16(end64Bytes + 10, Math.min(members, IN_EXTRA_16), true);
    view.setUint32(end64Bytes + 12, Math.min(centralBytes, IN_EXTRA_32), true);
    view.setUint32(end64Bytes + 16, Math.min(centralOffset, IN_EXTRA_32), true);
    view.setUint16(end64Bytes + 20, comment.byteLength, true);
    const target = bytesOfView(view);
    target.set(comment, end64Bytes + ZIP_BYTES.end);
    return target;
}
function bytesOfView(view) {
    return new Uint8Array(view.buffer);
}
//# sourceMappingURL=zip-writer.js.map