import { once } from "node:events";
import { mkdir, open, rename, rm, rmdir, stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { ensureError, PserverError } from "../protocol/errors.js";
import { errnoCode, io } from "../system/file-errors.js";
import { removeLeftTemporaries, temporaryNameBeside } from "./temporary-files.js";
/**
 * Makes a directory and the missing ones above it. (Node's recursive `mkdir` loops for ever if
 * creating a name in an existing directory fails with ENOENT, as below `/proc`.)
 * @returns the first that was made, undefined if all existed.
 * @throws the system's error.
 */
export async function makeDirectory(path) {
    const directory = resolve(path);
    try {
        await mkdir(directory);
        return directory;
    }
    catch (error) {
        if (errnoCode(error) === "ENOENT" && dirname(directory) !== directory) {
            const first = await makeDirectory(dirname(directory));
            await makeOneDirectory(directory);
            return first ?? directory;
        }
        if (!(await isDirectory(directory)))
            throw error;
        return undefined;
    }
}
/** Makes a directory, unless another process has just made it. */
async function makeOneDirectory(directory) {
    try {
        await mkdir(directory);
    }
    catch (error) {
        if (!(await isDirectory(directory)))
            throw error;
    }
}
async function isDirectory(path) {
    try {
        return (await stat(path)).isDirectory();
    }
    catch {
        // The caller reports its own error.
        return false;
    }
}
/** Error codes for a name that does not exist or is not possible. */
const ABSENT = ["ENOENT", "ENAMETOOLONG"];
/**
 * Permissions of a new file: `model` for models, which may be secret; `byUmask` leaves them to the
 * umask.
 */
export const FILE_MODES = { model: 0o600, byUmask: 0o666 };
/** Permissions of a directory that holds a model. */
export const MODEL_DIRECTORY_MODE = 0o700;
/**
 * Writes a file whole or not at all: into a temporary file beside it, which takes its name once it
 * is on disk. A file of this name is replaced in one step, its permissions too. Before that, files go that
 * processes which died have left in the directory. Returns the number of bytes.
 * @throws DISK_FULL, IO, and what `content` throws; the temporary file is gone then.
 */
export async function writeFileAtomically(file, content, mode) {
    await removeLeftTemporaries(dirname(file));
    const temporary = temporaryNameBeside(file);
    try {
        const bytes = await writeFileDurably(temporary, content, mode);
        await io("replace", file, rename(temporary, file));
        await syncDirectory(dirname(file));
        return bytes;
    }
    catch (error) {
        throw await discardTemporary(temporary, error);
    }
}
/**
 * Writes a new file and waits until it is on disk. Returns the number of bytes.
 * @throws DISK_FULL, IO (also if the file exists), and what `content` throws.
 */
export async function writeFileDurably(file, content, mode) {
    const handle = await io("create", file, open(file, "wx+", mode));
    try {
        if (typeof content === "function")
            await content(handle, file);
        else
            for await (const chunk of content)
                await writeAll(handle, file, chunk);
        await io("sync", file, handle.sync());
        return (await io("examine", file, handle.stat())).size;
    }
    finally {
        await io("close", file, handle.close());
    }
}
/** Syncs a directory, so that the names in it survive a power failure. @throws IO. */
export async function syncDirectory(directory) {
    const handle = await io("open", directory, open(directory, "r"));
    try {
        await io("sync", directory, handle.sync());
    }
    finally {
        await io("close", directory, handle.close());
    }
}
/**
 * Creates a directory and the missing ones above it, and syncs them to disk. Returns the topmost
 * that it has created, undefined if all existed.
 * @throws IO, DISK_FULL; the created ones are removed then.
 */
export async function makeDirectories(directory) {
    const top = await topmostMissing(resolve(directory));
    if (top === undefined)
        return undefined;
    try {
        await io("create", directory, makeDirectory(directory));
        for (let above = dirname(resolve(directory)); above.length >= dirname(top).length;) {
            await syncDirectory(above);
            if (above === dirname(above))
                break;
            above = dirname(above);
        }
        return top;
    }
    catch (error) {
        await removeEmptyDirectories(directory, top);
        throw error;
    }
}
/**
 * Removes a directory and those above it up to `top`, as far as they are empty; {@link makeDirectories} has
 * created them.
 */
export async function removeEmptyDirectories(directory, top) {
    for (let current = resolve(directory); current.length >= top.length; current = dirname(current)) {
        try {
            await rmdir(current);
        }
        catch (error) {
            // The first error is reported; a remaining empty directory does no harm.
            if (!ABSENT.includes(errnoCode(error)))
                return;
        }
    }
}
/** Finds the topmost missing directory of an absolute path; undefined if all exist. */
async function topmostMissing(path) {
    let missing;
    for (let current = path;; current = dirname(current)) {
        try {
            await stat(current);
            return missing;
        }
        catch (error) {
            if (!ABSENT.includes(errnoCode(error)))
                return missing ?? current;
            missing = current;
        }
    }
}
/** Removes what a failed save wrote. Returns `error`, with a note if that could not be removed. */
export async function discardTemporary(temporary, error) {
    const failure = ensureError(error);
    try {
        await io("remove", temporary, rm(temporary, { recursive: true, force: true }));
        return failure;
    }
    catch (removal) {
        return new PserverError(failure.code, `${failure.message}; and ${ensureError(removal).message}`, { ...failure.details, leftover: temporary }, { cause: error });
    }
}
async function writeAll(handle, file, chunk) {
    for (let written = 0; written < chunk.byteLength;) {
        const { bytesWritten } = await io("write", file, handle.write(chunk, written));
        written += bytesWritten;
    }
}
/**
 * Passes the chunks on until `signal` aborts. Then it throws at once, even while a chunk is
 * awaited, and tells the source to stop.
 * @throws ABORTED with the signal's reason as cause; what `chunks` throws.
 */
export async function* abortable(chunks, signal) {
    if (signal === undefined) {
        yield* chunks;
        return;
    }
    throwIfAborted(signal);
    const stop = new AbortController();
    const aborted = once(signal, "abort", { signal: stop.signal }).then(() => {
        throw abortedError(signal);
    });
    // The promise may reject between two races, when nobody listens; the next race sees it.
    aborted.catch(() => undefined);
    const iterator = chunks[Symbol.asyncIterator]();
    let finished = false;
    try {
        for (;;) {
            const result = await Promise.race([iterator.next(), aborted]);
            if (result.done === true)
                break;
            yield result.value;
        }
        finished = true;
    }
    finally {
        stop.abort();
        // Not awaited, because a source that hangs never returns. Its errors do not matter any more.
        if (!finished)
            iterator.return?.()?.catch(() => undefined);
    }
}
/** @throws ABORTED, with the signal's reason as cause, if it is aborted. */
export function throwIfAborted(signal) {
    if (signal?.aborted)
        throw abortedError(signal);
}
function abortedError(signal) {
    return new PserverError("ABORTED", "the caller aborted the save", {}, { cause: signal.reason });
}
//# sourceMappingURL=atomic-write.js.map