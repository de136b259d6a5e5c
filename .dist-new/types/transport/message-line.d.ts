import type { PserverError } from "../protocol/index.ts";
/**
 * Returns how many bytes follow the protocol line from `at` to its `newline`: payload and trailer after `MSG`
 * and `HMSG`, 0 after any other line.
 * @throws BAD_MESSAGE for a malformed line, which nats.js would print before it stops reading.
 */
export declare function bytesAfterLine(bytes: Buffer, at: number, newline: number): number;
/**
 * Checks the length of a line, whole or not, that begins at `at` and was received up to `end`.
 * @throws BAD_MESSAGE if it is too long.
 */
export declare function checkLineLength(bytes: Buffer, at: number, end: number): void;
/** @throws BAD_MESSAGE unless CR LF ends at a position. */
export declare function checkTrailer(bytes: Buffer, end: number): void;
/** Returns whether the line at a position is a greeting of the broker, `INFO`, the first or a later one. */
export declare function isGreeting(bytes: Buffer, at: number): boolean;
/** Returns whether the subject in the message line at a position begins with a prefix, which has no blank. */
export declare function hasSubjectPrefix(bytes: Buffer, at: number, prefix: Buffer): boolean;
/**
 * Returns the last but one token of the subject in the message line at a position; "" if there is none. In
 * requests it is the sender's id.
 */
export declare function senderToken(bytes: Buffer, at: number): string;
/** Makes the error for malformed input. */
export declare function malformed(expected: string, bytes: Buffer, at: number): PserverError;
//# sourceMappingURL=message-line.d.ts.map