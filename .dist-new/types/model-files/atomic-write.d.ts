import { type FileHandle } from "node:fs/promises";
import { PserverError } from "../protocol/errors.ts";
/**
 * Makes a directory and the missing ones above it. (Node's recursive `mkdir` loops for ever if
 * creating a name in an existing directory fails with ENOENT, as below `/proc`.)
 * @returns the first that was made, undefined if all existed.
 * @throws the system's error.
 */
export declare function makeDirectory(path: string): Promise<string | undefined>;
/**
 * Permissions of a new file: `model` for models, which may be secret; `byUmask` leaves them to the
 * umask.
 */
export declare const FILE_MODES: {
    readonly model: 384;
    readonly byUmask: 438;
};
/** Permissions of a directory that holds a model. */
export declare const MODEL_DIRECTORY_MODE = 448;
/**
 * Content of a file: its bytes in order, or a function that writes them into the empty file, which is open.
 */
export type FileContent = AsyncIterable<Uint8Array> | ((handle: FileHandle, file: string) => Promise<void>);
/** One of {@link FILE_MODES}. */
export type FileMode = (typeof FILE_MODES)[keyof typeof FILE_MODES];
/**
 * Writes a file whole or not at all: into a temporary file beside it, which takes its name once it
 * is on disk. A file of this name is replaced in one step, its permissions too. Returns the number of
 * bytes.
 * @throws DISK_FULL, IO, and what `content` throws; the temporary file is gone then.
 */
export declare function writeFileAtomically(file: string, content: FileContent, mode: FileMode): Promise<number>;
/**
 * Writes a new file and waits until it is on disk. Returns the number of bytes.
 * @throws DISK_FULL, IO (also if the file exists), and what `content` throws.
 */
export declare function writeFileDurably(file: string, content: FileContent, mode: FileMode): Promise<number>;
/** Syncs a directory, so that the names in it survive a power failure. @throws IO. */
export declare function syncDirectory(directory: string): Promise<void>;
/**
 * Creates a directory and the missing ones above it, and syncs them to disk. Returns the topmost
 * that it has created, undefined if all existed.
 * @throws IO, DISK_FULL; the created ones are removed then.
 */
export declare function makeDirectories(directory: string): Promise<string | undefined>;
/**
 * Removes a directory and those above it up to `top`, as far as they are empty; {@link makeDirectories} has
 * created them.
 */
export declare function removeEmptyDirectories(directory: string, top: string): Promise<void>;
/** Makes a name in the same directory that nothing else has. */
export declare function temporaryNameBeside(file: string): string;
/**
 * Returns whether a file name is one of {@link temporaryNameBeside}: a process that died may have left such a
 * file.
 */
export declare function isTemporaryName(name: string): boolean;
/** Removes what a failed save wrote. Returns `error`, with a note if that could not be removed. */
export declare function discardTemporary(temporary: string, error: unknown): Promise<PserverError>;
/**
 * Passes the chunks on until `signal` aborts. Then it throws at once, even while a chunk is
 * awaited, and tells the source to stop.
 * @throws ABORTED with the signal's reason as cause; what `chunks` throws.
 */
export declare function abortable(chunks: AsyncIterable<Uint8Array>, signal: AbortSignal | undefined): AsyncGenerator<Uint8Array, void, undefined>;
/** @throws ABORTED, with the signal's reason as cause, if it is aborted. */
export declare function throwIfAborted(signal: AbortSignal | undefined): void;
//# sourceMappingURL=atomic-write.d.ts.map