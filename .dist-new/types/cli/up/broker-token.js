import { randomBytes } from "node:crypto";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { FILE_MODES, makeDirectories, makeDirectory, writeFileAtomically, } from "../../model-files/atomic-write.js";
import { ensureError } from "../../protocol/errors.js";
import { io } from "../../system/file-errors.js";
import { readToken, tokenDirectory, tokenFile } from "../../transport/local-token.js";
const TOKEN_BYTES = 32;
/**
 * Adds `--no-token`, read as the flag `noToken`. Commander would store it as a value of `--token`, the flag of a
 * connection, which may be there beside it.
 */
export function addNoTokenOption(command) {
    command.hook("preAction", (_program, action) => {
        if (action.getOptionValue("token") !== false)
            return;
        action.setOptionValue("token", undefined).setOptionValue("noToken", true);
    });
    return command.option("--no-token", "let every user of this machine in, not only this one");
}
/** Returns the file in a broker's directory that holds its token. */
export function keptTokenFile(directory) {
    return join(directory, "token");
}
/**
 * Returns the token of a broker, from the file in its directory: made at the first start, so that clients
 * which are connected come back after a restart.
 * @throws BAD_VALUE if others can read the file; IO, DISK_FULL.
 */
export async function keepToken(directory) {
    const path = keptTokenFile(directory);
    const kept = readToken(path);
    if (kept !== undefined && kept !== "")
        return kept;
    const token = randomBytes(TOKEN_BYTES).toString("base64url");
    await io("make the directory", directory, makeDirectory(directory));
    await writeToken(path, token);
    return token;
}
/**
 * Puts the token where this user's programs look for that of the broker on this port, until `remove` is called. A
 * home that cannot be written to is only warned of: programs can be given the token.
 */
export async function publishToken({ environment }, output, { port, token }) {
    const path = tokenFile(environment, port);
    try {
        await makeDirectories(tokenDirectory(environment));
        await writeToken(path, token);
    }
    catch (error) {
        const { message } = ensureError(error);
        output.warning(`${message}: give clients the broker's token as NATS_TOKEN`);
    }
    return {
        async remove() {
            // Another broker may have taken the port since.
            if (readToken(path) === token)
                await rm(path, { force: true });
        },
    };
}
async function writeToken(path, token) {
    const write = async (handle) => handle.writeFile(`${token}\n`);
    await writeFileAtomically(path, write, FILE_MODES.model);
}
//# sourceMappingURL=broker-token.js.map