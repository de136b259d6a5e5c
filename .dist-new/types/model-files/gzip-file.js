import { randomUUID } from "node:crypto";
import { open, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGunzip } from "node:zlib";
import { PserverError } from "../protocol/errors.js";
import { io } from "../system/file-errors.js";
import { badFile } from "./file-text.js";
import { ModelFile } from "./model-file.js";
/** First bytes of what gzip writes. No tar begins so: they are not UTF-8, and a tar begins with a name. */
const GZIP_MAGIC = [0x1f, 0x8b];
/** Returns whether a file is packed by gzip. @throws IO. */
export async function isGzip(file) {
    if (file.bytes < GZIP_MAGIC.length)
        return false;
    const start = await file.read(0, GZIP_MAGIC.length, "first bytes");
    return GZIP_MAGIC.every((byte, i) => start[i] === byte);
}
/**
 * Unpacks a file that gzip has packed into a temporary one, because tensors are read at any place and again:
 * in `TMPDIR`, for this user alone, and without a name, so that it goes with the process. Messages name the
 * packed file. The caller closes both.
 * @throws BAD_FILE if it is damaged or cut short; DISK_FULL or IO if there is no room for it; the reason of
 * `signal`.
 */
export async function openUnpacked(packed, signal) {
    const temporary = join(tmpdir(), `pserver-unpack-${randomUUID()}`);
    const handle = await io("make", temporary, open(temporary, "wx+", 0o600));
    try {
        await io("remove the name of", temporary, rm(temporary));
        await unpackInto(handle, temporary, packed, signal);
        return await ModelFile.ofHandle(packed.path, handle);
    }
    catch (error) {
        await handle.close();
        throw error;
    }
}
async function unpackInto(handle, temporary, packed, signal) {
    const source = Readable.from(packed.stream(0, packed.bytes, "packed bytes"), {
        objectMode: true,
        highWaterMark: 1,
    });
    const write = async (unpacked) => {
        for await (const chunk of unpacked) {
            for (let written = 0; written < chunk.byteLength;) {
                const part = await io("write", temporary, handle.write(chunk, written));
                written += part.bytesWritten;
            }
        }
    };
    try {
        await pipeline(source, createGunzip(), write, signal === undefined ? {} : { signal });
    }
    catch (error) {
        signal?.throwIfAborted();
        if (error instanceof PserverError)
            throw error;
        throw badFile(packed.path, "packed bytes", "what gzip has written", "other bytes", error);
    }
}
//# sourceMappingURL=gzip-file.js.map