import { readFileSync } from "node:fs";
import { PserverError } from "../protocol/errors.js";
/**
 * Runs a file operation; errors of the operating system become errors of the project.
 * @throws DISK_FULL if the device or quota is full, else IO; both name `path`, with the cause kept.
 */
export async function io(action, path, operation) {
    try {
        return await operation;
    }
    catch (cause) {
        throw fileError(action, path, cause);
    }
}
/** Reads the text of a file. @throws IO; `action` completes "cannot …". */
export function readText(action, path) {
    try {
        return readFileSync(path, "utf8");
    }
    catch (cause) {
        throw fileError(action, path, cause);
    }
}
/**
 * Turns an error of the operating system into an error of the project: DISK_FULL if no space or quota is
 * left, else IO. `action` completes "cannot …".
 */
export function fileError(action, path, cause) {
    if (cause instanceof PserverError)
        return cause;
    const errno = errnoCode(cause);
    const full = errno === "ENOSPC" || errno === "EDQUOT";
    // Node.js appends the call and the path, which are in our message already.
    const text = cause instanceof Error ? cause.message : String(cause);
    const reason = errno === undefined ? text : text.split(", ", 1)[0];
    return new PserverError(full ? "DISK_FULL" : "IO", `cannot ${action} ${path}: ${reason}`, { path, errno }, { cause });
}
/** Returns the operating system's name of an error, such as `ENOENT`; undefined for other errors. */
export function errnoCode(error) {
    if (!(error instanceof Error) || !("code" in error))
        return undefined;
    return typeof error.code === "string" ? error.code : undefined;
}
//# sourceMappingURL=file-errors.js.map