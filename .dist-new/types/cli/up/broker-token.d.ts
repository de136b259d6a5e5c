import type { Command } from "commander";
import type { CliContext } from "../context.ts";
import type { Output } from "../output/output.ts";
/**
 * Adds `--no-token`, read as the flag `noToken`. Commander would store it as a value of `--token`, the flag of a
 * connection, which may be there beside it.
 */
export declare function addNoTokenOption(command: Command): Command;
/** Returns the file in a broker's directory that holds its token. */
export declare function keptTokenFile(directory: string): string;
/**
 * Returns the token of a broker, from the file in its directory: made at the first start, so that clients
 * which are connected come back after a restart.
 * @throws BAD_VALUE if others can read the file; IO, DISK_FULL.
 */
export declare function keepToken(directory: string): Promise<string>;
/**
 * Puts the token where this user's programs look for that of the broker on this port, until `remove` is called. A
 * home that cannot be written to is only warned of: programs can be given the token.
 */
export declare function publishToken({ environment }: Pick<CliContext, "environment">, output: Output, { port, token }: {
    readonly port: number;
    readonly token: string;
}): Promise<{
    remove(): Promise<void>;
}>;
//# sourceMappingURL=broker-token.d.ts.map