import { PserverError } from "../protocol/errors.ts";
import type { TensorHeader } from "./tensor-headers.ts";
/**
 * Resolves a path from a user to an absolute path inside `directory`, following symbolic links. The
 * last parts may not exist yet; nothing is created. Links may change after the check, so the model
 * directory must not be writable by people who may not write elsewhere.
 * @throws BAD_PATH if the path is empty, absolute, holds `..`, `\` or NUL, has more than 32 names
 * or 1,024 bytes, names the model directory itself, or meets a symbolic link that leaves it or
 * leads nowhere; IO if `directory` is absent.
 */
export declare function resolveModelPath(directory: string, path: string): Promise<string>;
/**
 * Returns the error with paths relative to the model directory, for readers who may not know where that
 * directory is.
 */
export declare function relativeError(thrown: unknown, directory: string): PserverError;
/** Makes a BAD_PATH about a path that a user gave. */
export declare function badPath(expected: string, received: string, path: unknown, cause?: unknown): PserverError;
/** Name of a tensor in an archive, and its true name if that differs. */
export interface MemberName {
    /** A name that every program unpacks below the chosen directory. */
    readonly name: string;
    /** The tensor's true name, stored beside the member; absent if it equals `name`. */
    readonly trueName?: string;
}
/**
 * Names a tensor's member in an archive: by the tensor's own name, as numpy and PaddlePaddle expect. The name
 * is escaped, as in subjects, if unpacking it could write elsewhere: if it is absolute, has `..`, `.` or
 * nothing between slashes, or has `\` or control characters. No two tensors get the same name.
 */
export declare function memberName(name: string): MemberName;
/**
 * Returns the true name of a member. `storedName` is the JSON text stored beside the member, undefined for a name
 * that was not escaped. The true name is used as a parameter's name only, never as a path.
 * @throws BAD_FILE if the member's name is not the escaped form of it.
 */
export declare function trueNameOf(path: string, member: string, storedName: string | undefined): string;
/** Checks that each name occurs once. @throws BAD_FILE. */
export declare function checkNamesApart(path: string, headers: Iterable<TensorHeader>): void;
/** How a model is laid out on disk. */
export type ModelFormat = "safetensors" | "npz" | "tar" | "directory";
/** The endings of files that hold a model. */
export declare const MODEL_ENDINGS: readonly [".safetensors", ".npz", ".tar"];
/**
 * Returns the format for a name, in upper or lower case: `*.safetensors`, `*.npz`, `*.tar`; a directory with
 * a file per parameter for a name that ends in `/` or holds no `.`; else undefined.
 */
export declare function formatOf(fileName: string): ModelFormat | undefined;
/** Makes the BAD_PATH for a name with an unknown ending. */
export declare function unknownFormat(path: string): PserverError;
/** Describes the name of a file of no known format, for messages; for HDF5 also names what writes it. */
export declare function unknownName(path: string): string;
//# sourceMappingURL=model-path.d.ts.map