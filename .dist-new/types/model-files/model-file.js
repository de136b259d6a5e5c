import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { PserverError } from "../protocol/errors.js";
import { io } from "../system/file-errors.js";
import { badFile } from "./file-text.js";
/** Bytes read at a time: a multiple of every element's size. */
const READ_BYTES = 1024 * 1024;
/** A file open for reading at any position; every range is checked against its size. */
export class ModelFile {
    path;
    /** Size of the file when it was opened. */
    bytes;
    #handle;
    #closed = false;
    constructor(path, bytes, handle) {
        this.path = path;
        this.bytes = bytes;
        this.#handle = handle;
    }
    /**
     * Opens a regular file.
     * @throws IO if it cannot be opened; BAD_FILE if it is something else, such as a pipe.
     */
    static async open(path) {
        // Without O_NONBLOCK, opening a pipe would wait for a writer.
        const flags = constants.O_RDONLY | constants.O_NONBLOCK;
        const handle = await io("open", path, open(path, flags));
        try {
            return await ModelFile.ofHandle(path, handle);
        }
        catch (error) {
            await io("close", path, handle.close());
            throw error;
        }
    }
    /**
     * Takes an open file over; messages name it `path`. The caller closes the handle if this fails.
     * @throws BAD_FILE if it is not a regular file; IO.
     */
    static async ofHandle(path, handle) {
        const stats = await io("examine", path, handle.stat());
        if (!stats.isFile())
            throw badFile(path, "kind", "a regular file", "another kind of file");
        return new ModelFile(path, stats.size, handle);
    }
    /**
     * Reads the `length` bytes at `position` into a buffer of their own.
     * @throws BAD_FILE naming `what` if the file ends before; IO; CLOSED.
     */
    async read(position, length, what) {
        this.checkRange(position, length, what);
        const target = new Uint8Array(length);
        let filled = 0;
        while (filled < length) {
            if (this.#closed) {
                throw new PserverError("CLOSED", `${this.path} has been closed`, { path: this.path });
            }
            const { bytesRead } = await io("read", this.path, this.#handle.read(target, filled, length - filled, position + filled));
            if (bytesRead === 0) {
                throw badFile(this.path, what, `${length} bytes at ${position}`, `${filled} bytes`);
            }
            filled += bytesRead;
        }
        return target;
    }
    /**
     * Yields the `length` bytes at `position`, in chunks of at most 1 MiB that belong to the receiver.
     * @throws as {@link ModelFile.read}.
     */
    async *stream(position, length, what) {
        this.checkRange(position, length, what);
        for (let done = 0; done < length; done += READ_BYTES) {
            yield await this.read(position + done, Math.min(READ_BYTES, length - done), what);
        }
    }
    /**
     * Refuses a range that does not lie in the file.
     * @throws BAD_FILE naming `what`.
     */
    checkRange(position, length, what) {
        const valid = Number.isSafeInteger(position) && Number.isSafeInteger(length);
        if (valid && position >= 0 && length >= 0 && length <= this.bytes - position)
            return;
        throw badFile(this.path, what, `a range within the file's ${this.bytes} bytes`, `${length} bytes at ${position}`);
    }
    /** Closes the file; later reads fail with CLOSED. May be called again. */
    async close() {
        if (this.#closed)
            return;
        this.#closed = true;
        await io("close", this.path, this.#handle.close());
    }
}
//# sourceMappingURL=model-file.js.map