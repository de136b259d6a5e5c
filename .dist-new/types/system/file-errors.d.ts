import { PserverError } from "../protocol/errors.ts";
/**
 * Runs a file operation; errors of the operating system become errors of the project.
 * @throws DISK_FULL if the device or quota is full, else IO; both name `path`, with the cause kept.
 */
export declare function io<T>(action: string, path: string, operation: Promise<T>): Promise<T>;
/** Reads the text of a file. @throws IO; `action` completes "cannot …". */
export declare function readText(action: string, path: string): string;
/**
 * Turns an error of the operating system into an error of the project: DISK_FULL if no space or quota is
 * left, else IO. `action` completes "cannot …".
 */
export declare function fileError(action: string, path: string, cause: unknown): PserverError;
/** Returns the operating system's name of an error, such as `ENOENT`; undefined for other errors. */
export declare function errnoCode(error: unknown): string | undefined;
//# sourceMappingURL=file-errors.d.ts.map