import { open } from "node:fs/promises";
import { checksum } from "../../protocol/checksum/checksum.js";
import { ensureError, PserverError, readCrc } from "../../protocol/index.js";
import { readUint32, writeUint32 } from "../../protocol/msgpack.js";
import { io } from "../../system/file-errors.js";
import { decodeFrame, encodeFrame, messageBytesMax, } from "./frames.js";
/** Makes the BAD_ARCHIVE for damage at a byte of an archive's file or a recorded file. */
export function badArchive(path, offset, problem, cause) {
    return new PserverError("BAD_ARCHIVE", `${path}, byte ${offset}: ${problem}`, { path, offset }, cause === undefined ? undefined : { cause });
}
/*
 * A file is a preamble and frames, the last of which is the end. All numbers are big-endian.
 *
 *     preamble  8 bytes  89 70 73 61 72 63 68 0a   "\x89psarch\n"
 *               4 bytes  version of the format
 *               4 bytes  CRC-32 of the 12 bytes before
 *     frame     4 bytes  length of the message
 *               4 bytes  CRC-32 of these 4 bytes
 *               n bytes  a message, with its own checksum
 */
/** Version of the format. */
const CONTAINER_VERSION = 1;
const MAGIC = Buffer.from("\x89psarch\n", "latin1");
const VERSION_AT = MAGIC.length;
const PREAMBLE_CRC_AT = VERSION_AT + 4;
/** Bytes of a preamble; the first frame follows. */
export const PREAMBLE_BYTES = PREAMBLE_CRC_AT + 4;
/** Bytes of a frame's header, which is before its message. */
export const HEADER_BYTES = 8;
/** Longest message: as long as a broker can take one (64 MiB), and some more for the entries. */
const FRAME_BYTES_MAX = 80 * 1024 ** 2;
/** Makes the preamble of a new file. */
function makePreamble() {
    const bytes = new Uint8Array(PREAMBLE_BYTES);
    bytes.set(MAGIC);
    writeUint32(bytes, VERSION_AT, CONTAINER_VERSION);
    writeUint32(bytes, PREAMBLE_CRC_AT, checksum(bytes.subarray(0, PREAMBLE_CRC_AT)));
    return bytes;
}
/**
 * Checks that the preamble is that of a file that can be read here.
 * @throws BAD_ARCHIVE if it is none or damaged, BAD_VERSION for a file of another version.
 */
function checkPreamble(path, bytes) {
    if (!MAGIC.equals(bytes.subarray(0, MAGIC.length))) {
        throw badArchive(path, 0, "expected a file of an archive; received something else");
    }
    if (bytes.length < PREAMBLE_BYTES)
        throw badArchive(path, bytes.length, "the file is cut off");
    if (checksum(bytes.subarray(0, PREAMBLE_CRC_AT)) !== readUint32(bytes, PREAMBLE_CRC_AT)) {
        throw badArchive(path, VERSION_AT, "the preamble is damaged");
    }
    const version = readUint32(bytes, VERSION_AT);
    if (version === CONTAINER_VERSION)
        return;
    const text = `expected format version ${CONTAINER_VERSION}; received ${version}`;
    throw new PserverError("BAD_VERSION", `${path}: ${text}. A newer pserver may read it.`, {
        path,
        expected: CONTAINER_VERSION,
        received: version,
    });
}
/** Makes the header of a frame with a message of so many bytes. */
export function makeHeader(messageBytes) {
    const header = new Uint8Array(HEADER_BYTES);
    writeUint32(header, 0, messageBytes);
    writeUint32(header, 4, checksum(header.subarray(0, 4)));
    return header;
}
/**
 * Returns the length of the message after a header.
 * @throws BAD_ARCHIVE if the header, which is at `offset`, is damaged.
 */
function readHeader(path, offset, header) {
    const messageBytes = readUint32(header, 0);
    const isSound = checksum(header.subarray(0, 4)) === readUint32(header, 4);
    if (isSound && messageBytes <= FRAME_BYTES_MAX)
        return messageBytes;
    throw badArchive(path, offset, "the head of a frame is damaged");
}
/** Returns the digest of the frames so far and one more. */
function addToDigest(digest, header, message) {
    const bytes = new Uint8Array(HEADER_BYTES + 4);
    bytes.set(header);
    writeUint32(bytes, HEADER_BYTES, readCrc(message));
    return checksum(bytes, digest);
}
/** Adds up the frames of a file as they are written or read. */
export class RunningTotals {
    #totals = { frames: 0, records: 0, pieces: 0, bytes: PREAMBLE_BYTES, digest: 0 };
    /** The sums so far. */
    get totals() {
        return this.#totals;
    }
    /** Adds a frame, with its header and its message. */
    add({ kind }, header, message) {
        const { frames, records, pieces, bytes, digest } = this.#totals;
        this.#totals = {
            frames: frames + 1,
            records: records + (kind === "record" ? 1 : 0),
            pieces: pieces + (kind === "piece" ? 1 : 0),
            bytes: bytes + HEADER_BYTES + message.length,
            digest: addToDigest(digest, header, message),
        };
    }
}
/** Bytes that are read at one time, unless a frame is longer. */
const CHUNK_BYTES = 1024 ** 2;
/** Reads the frames of one file, with constant memory. The caller closes it. */
export class ContainerReader {
    path;
    #handle;
    constructor(path, handle) {
        this.path = path;
        this.#handle = handle;
    }
    /**
     * Opens a file.
     * @throws BAD_ARCHIVE if it is no such file, BAD_VERSION for one of another version, IO.
     */
    static async open(path) {
        const reader = new ContainerReader(path, await io("open", path, open(path, "r")));
        try {
            checkPreamble(path, await reader.#read(0, PREAMBLE_BYTES));
            return reader;
        }
        catch (error) {
            await reader.close();
            throw error;
        }
    }
    /** Closes the file. */
    async close() {
        await this.#handle.close();
    }
    /** Closes the file. */
    async [Symbol.asyncDispose]() {
        await this.close();
    }
    /**
     * Reads all frames but the end, some at a time, and checks that the file is complete: that each frame is sound,
     * that none was removed, added or moved, and that the end is there. Frames before damage are given before the
     * error. The `data` of a frame belongs to the caller.
     * @throws BAD_ARCHIVE, IO.
     */
    async *frames() {
        const sums = new RunningTotals();
        let end;
        let reached = PREAMBLE_BYTES;
        const onCutOff = (offset) => {
            throw this.#cutOff(offset);
        };
        for await (const batch of this.#scan(PREAMBLE_BYTES, onCutOff, sums)) {
            const endAt = batch.findIndex(({ frame }) => frame.kind === "end");
            if (end !== undefined || (endAt >= 0 && endAt < batch.length - 1)) {
                throw badArchive(this.path, reached, "there is more after the end");
            }
            if (endAt !== 0)
                yield endAt < 0 ? batch : batch.slice(0, endAt);
            if (endAt >= 0)
                end = batch[endAt];
            reached = batch.at(-1)?.endOffset ?? reached;
        }
        if (end === undefined)
            throw badArchive(this.path, reached, "the file ends without its end frame");
        this.#checkEnd(end, sums.totals);
    }
    /**
     * Reads the whole frames of a file that is still being written, up to a part of one. Of a closed file it gives the
     * end frame, too. All other frames are added to `sums`.
     * @throws BAD_ARCHIVE if a frame is damaged, IO.
     */
    wholeFrames(sums) {
        return this.#scan(PREAMBLE_BYTES, () => undefined, sums);
    }
    /**
     * Reads a segment or a snapshot: the whole of a file of its own, as {@link frames} does, or the part of a recorded
     * file that begins with the job at `offset`.
     * @throws BAD_ARCHIVE, IO.
     */
    part(offset) {
        return offset === undefined ? this.frames() : this.#partAt(offset);
    }
    async *#partAt(offset) {
        for await (const batch of this.#scan(offset, () => undefined)) {
            const end = batch.findIndex(({ frame: { kind }, offset: at }) => kind === "end" || (kind === "job" && at > offset));
            yield end < 0 ? batch : batch.slice(0, end);
            if (end >= 0)
                return;
        }
    }
    /** Reads the bytes of the file up to `endOffset`, some at a time. @throws BAD_ARCHIVE if it is shorter, IO. */
    async *bytesTo(endOffset) {
        for (let offset = 0; offset < endOffset;) {
            const bytes = await this.#read(offset, Math.min(CHUNK_BYTES, endOffset - offset));
            if (bytes.length === 0)
                throw this.#cutOff(offset);
            yield bytes;
            offset += bytes.length;
        }
    }
    /** Reads the frame at `offset`. @throws BAD_ARCHIVE, IO. */
    async frameAt(offset) {
        const endOffset = await this.offsetAfter(offset);
        const message = await this.#read(offset + HEADER_BYTES, endOffset - offset - HEADER_BYTES);
        if (offset + HEADER_BYTES + message.length < endOffset)
            throw this.#cutOff(offset);
        return { frame: this.#decode(offset, message), offset, endOffset };
    }
    /**
     * Returns the offset of the frame after the one at `offset`, whose message is not read.
     * @throws BAD_ARCHIVE, IO.
     */
    async offsetAfter(offset) {
        const header = await this.#read(offset, HEADER_BYTES);
        if (header.length < HEADER_BYTES)
            throw this.#cutOff(offset);
        return offset + HEADER_BYTES + readHeader(this.path, offset, header);
    }
    /**
     * Reads the frames from `from` to the end of the file, and adds them to `sums`. Calls `onCutOff` with the offset of
     * a part of a frame at the end.
     */
    async *#scan(from, onCutOff, sums) {
        let offset = from;
        let bytes = new Uint8Array(0);
        for (;;) {
            const { frames, neededBytes, error } = this.#parse(offset, bytes, sums);
            if (frames.length > 0)
                yield frames;
            if (error !== undefined)
                throw error;
            const taken = (frames.at(-1)?.endOffset ?? offset) - offset;
            offset += taken;
            const rest = bytes.subarray(taken);
            const more = await this.#read(offset + rest.length, Math.max(CHUNK_BYTES, neededBytes - rest.length));
            if (more.length === 0) {
                if (rest.length > 0)
                    onCutOff(offset);
                return;
            }
            bytes = rest.length === 0 ? more : joinBytes(rest, more);
        }
    }
    /**
     * Parses the whole frames in bytes that begin at `offset`; returns them with the number of bytes that the next one
     * needs, or the error that ends them.
     */
    #parse(offset, bytes, sums) {
        const frames = [];
        let at = 0;
        let neededBytes = HEADER_BYTES;
        try {
            while (bytes.length - at >= HEADER_BYTES) {
                const header = bytes.subarray(at, at + HEADER_BYTES);
                neededBytes = HEADER_BYTES + readHeader(this.path, offset + at, header);
                if (bytes.length - at < neededBytes)
                    break;
                const message = bytes.subarray(at + HEADER_BYTES, at + neededBytes);
                const frame = this.#decode(offset + at, message);
                if (frame.kind !== "end")
                    sums?.add(frame, header, message);
                frames.push({ frame, offset: offset + at, endOffset: offset + at + neededBytes });
                at += neededBytes;
                neededBytes = HEADER_BYTES;
            }
        }
        catch (error) {
            return { frames, neededBytes, error };
        }
        return { frames, neededBytes };
    }
    #decode(offset, message) {
        try {
            return decodeFrame(message);
        }
        catch (cause) {
            const { message: text } = ensureError(cause);
            throw badArchive(this.path, offset, `the frame is damaged: ${text}`, cause);
        }
    }
    #checkEnd({ frame, offset }, sums) {
        const { frames, records, pieces, bytes, digest } = frame;
        const isSame = frames === sums.frames &&
            records === sums.records &&
            pieces === sums.pieces &&
            bytes === sums.bytes &&
            digest === sums.digest;
        if (isSame)
            return;
        throw badArchive(this.path, offset, "the end does not match the frames before it");
    }
    #cutOff(offset) {
        return badArchive(this.path, offset, "the file ends within a frame");
    }
    /** Reads bytes at `offset`; fewer where the file ends. */
    async #read(offset, length) {
        const buffer = Buffer.allocUnsafeSlow(length);
        let done = 0;
        while (done < length) {
            const read = this.#handle.read(buffer, done, length - done, offset + done);
            const { bytesRead } = await io("read", this.path, read);
            if (bytesRead === 0)
                break;
            done += bytesRead;
        }
        return new Uint8Array(buffer.buffer, buffer.byteOffset, done);
    }
}
function joinBytes(first, second) {
    const bytes = new Uint8Array(first.length + second.length);
    bytes.set(first);
    bytes.set(second, first.length);
    return bytes;
}
/** Makes the end frame of a file whose other frames were added up. */
export function makeEndFrame({ totals }) {
    const message = encodeFrame({ kind: "end", ...totals });
    return joinBytes(makeHeader(message.length), message);
}
/** Bytes that are collected before they are written to the file, unless a frame is longer. */
const BUFFER_BYTES = 1024 ** 2;
const NO_BUFFER = Buffer.alloc(0);
/**
 * Writes frames to an open file; the caller keeps the handle and closes it. After an error the file ends with whole
 * frames up to {@link ContainerWriter.writtenBytes}, perhaps with a part of one after them, and nothing more can be
 * written.
 */
export class ContainerWriter {
    #handle;
    #path;
    #sums = new RunningTotals();
    /** Begins with the frames that are not written yet; reused for frame after frame. */
    #buffer = NO_BUFFER;
    #bufferedBytes = 0;
    #writtenBytes = 0;
    constructor(handle, path) {
        this.#handle = handle;
        this.#path = path;
    }
    /** Begins an open, empty file. */
    static begin(handle, path) {
        const writer = new ContainerWriter(handle, path);
        const preamble = makePreamble();
        writer.#reserve(preamble.length);
        writer.#buffer.set(preamble);
        writer.#bufferedBytes = preamble.length;
        return writer;
    }
    /** Bytes of the file including those not written yet. */
    get bytes() {
        return this.#writtenBytes + this.#bufferedBytes;
    }
    /** Bytes of whole frames that are in the file. */
    get writtenBytes() {
        return this.#writtenBytes;
    }
    /** Adds a frame; its bytes may be reused afterwards. @throws DISK_FULL, IO. */
    async append(frame) {
        const bytesMax = HEADER_BYTES + messageBytesMax(frame);
        if (this.#bufferedBytes + bytesMax > this.#buffer.length) {
            await this.flush();
            this.#reserve(bytesMax);
        }
        const at = this.#bufferedBytes;
        const message = encodeFrame(frame, (bytes) => {
            const start = at + HEADER_BYTES;
            return this.#buffer.subarray(start, start + bytes);
        });
        const header = makeHeader(message.length);
        this.#buffer.set(header, at);
        this.#sums.add(frame, header, message);
        this.#bufferedBytes += HEADER_BYTES + message.length;
    }
    /** Adds the end. No frame may follow. @throws DISK_FULL, IO. */
    async end() {
        await this.append({ kind: "end", ...this.#sums.totals });
        await this.flush();
    }
    /** Writes what is buffered to the file. @throws DISK_FULL, IO. */
    async flush() {
        const bytes = this.#bufferedBytes;
        this.#bufferedBytes = 0;
        if (bytes === 0)
            return;
        await this.#write(this.#buffer.subarray(0, bytes));
        this.#writtenBytes += bytes;
    }
    /** Waits until everything is on disk. @throws DISK_FULL, IO. */
    async sync() {
        await this.flush();
        // A job can have many shards, each with a file that waits for records.
        this.#buffer = NO_BUFFER;
        await io("sync", this.#path, this.#handle.datasync());
    }
    /** Makes the empty buffer as large as a frame needs. */
    #reserve(bytes) {
        if (this.#buffer.length >= bytes)
            return;
        this.#buffer = Buffer.allocUnsafeSlow(Math.max(BUFFER_BYTES, bytes));
    }
    async #write(bytes) {
        for (let done = 0; done < bytes.length;) {
            const at = this.#writtenBytes + done;
            const write = this.#handle.write(bytes, done, bytes.length - done, at);
            const { bytesWritten } = await io("write", this.#path, write);
            // A full disk may take a part of the bytes first; a file that takes none would loop for ever.
            if (bytesWritten === 0)
                throw new PserverError("IO", `cannot write ${this.#path}`);
            done += bytesWritten;
        }
    }
}
//# sourceMappingURL=container.js.map