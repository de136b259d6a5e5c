/** Environment variables that say where a user's files are. */
type Environment = Readonly<Record<string, string | undefined>>;
/** Returns the directory of a user's tokens. */
export declare function tokenDirectory(env: Environment): string;
/** Returns the file that holds the token of the broker on a port of this machine. */
export declare function tokenFile(env: Environment, port: number | string): string;
/**
 * Finds the token of the first of these addresses that is one of this machine and has a file; undefined if none has,
 * or if an address is elsewhere: a token is never sent to another machine.
 * @throws BAD_VALUE for a file that belongs to another user or that others may read; IO if it cannot be read.
 */
export declare function findLocalToken(servers: readonly string[], env: Environment): string | undefined;
/** Reads a token that only its owner can read; undefined without the file. @throws BAD_VALUE, IO. */
export declare function readToken(path: string): string | undefined;
export {};
//# sourceMappingURL=local-token.d.ts.map