/**
 * Returns the job name.
 * @throws BAD_NAME unless it is 1 to 40 of `[A-Za-z0-9-]`.
 */
export declare function checkJobName(job: string): string;
/**
 * Writes a name as one subject token: `[A-Za-z0-9_-]` stay, every other byte of its UTF-8 form becomes `=HH`.
 * Valid in subjects and in KV keys; different names have different tokens.
 * @throws BAD_NAME if it is empty, has a lone surrogate, or takes more than `bytesMax` bytes.
 */
export declare function escapeName(name: string, what?: string, bytesMax?: number): string;
/** Writes a trainer's or host's id as one subject token, as {@link escapeName} does. */
export declare function escapeId(id: string): string;
/**
 * Reads the name in a token of {@link escapeName}.
 * @throws BAD_NAME if no name has this token.
 */
export declare function unescapeName(token: string, bytesMax?: number): string;
/** Reads the trainer's or host's id in a token of {@link escapeId}; @throws BAD_NAME if none. */
export declare function unescapeId(token: string): string;
/** Quotes a name for messages; a long one is cut. */
export declare function quoteName(name: unknown): string;
//# sourceMappingURL=names.d.ts.map