import { closeSync, fstatSync, openSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";
import { mismatch } from "../protocol/errors.js";
import { errnoCode, fileError } from "../system/file-errors.js";
/** Ports of brokers whose address names none. */
const PORT_DEFAULT = "4222";
const LOOPBACK = /^(?:nats:\/\/)?(?:127(?:\.\d{1,3}){3}|localhost|\[::1\])(?::(\d+))?\/?$/i;
/** Bits of a file's mode that let its group or others read or change it. */
const OTHERS = 63n;
/** Longer than any token, and short enough to read. */
const TOKEN_BYTES_MAX = 1_024;
/** Returns the directory of a user's tokens. */
export function tokenDirectory(env) {
    const { XDG_STATE_HOME: given = "", HOME: home } = env;
    // The XDG specification has relative paths ignored.
    const base = isAbsolute(given) ? given : join(home || homedir(), ".local", "state");
    return join(base, "pserver");
}
/** Returns the file that holds the token of the broker on a port of this machine. */
export function tokenFile(env, port) {
    return join(tokenDirectory(env), `token-${port}`);
}
/**
 * Finds the token of the first of these addresses that is one of this machine and has a file; undefined if none has,
 * or if an address is elsewhere: a token is never sent to another machine.
 * @throws BAD_VALUE for a file that belongs to another user or that others may read; IO if it cannot be read.
 */
export function findLocalToken(servers, env) {
    const ports = servers
        .map((server) => LOOPBACK.exec(server))
        .map((match) => match && (match[1] ?? PORT_DEFAULT));
    if (ports.includes(null))
        return undefined;
    for (const port of ports) {
        const token = readToken(tokenFile(env, port ?? PORT_DEFAULT));
        if (token !== undefined)
            return token;
    }
    return undefined;
}
/** Reads a token that only its owner can read; undefined without the file. @throws BAD_VALUE, IO. */
export function readToken(path) {
    let descriptor;
    try {
        descriptor = openSync(path, "r");
    }
    catch (cause) {
        if (errnoCode(cause) === "ENOENT" || errnoCode(cause) === "ENOTDIR")
            return undefined;
        throw fileError("read the broker's token from", path, cause);
    }
    try {
        checkOwner(path, fstatSync(descriptor, { bigint: true }));
        return readFileSync(descriptor, "latin1").trim();
    }
    finally {
        closeSync(descriptor);
    }
}
/** @throws BAD_VALUE unless the file is this user's alone. */
function checkOwner(path, { uid, mode, size }) {
    const own = BigInt(process.getuid?.() ?? 0);
    const what = `the broker's token in ${path}`;
    if (uid !== own)
        throw mismatch("BAD_VALUE", what, `a file of user ${own}`, `one of user ${uid}`);
    if ((mode & OTHERS) !== 0n) {
        const received = (mode & 511n).toString(8);
        throw mismatch("BAD_VALUE", what, "mode 600, for its owner only", received);
    }
    if (size > TOKEN_BYTES_MAX) {
        throw mismatch("BAD_VALUE", what, `at most ${TOKEN_BYTES_MAX} bytes`, `${size}`);
    }
}
//# sourceMappingURL=local-token.js.map