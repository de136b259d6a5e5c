import { PserverError } from "./errors.js";
import { ID_BYTES_MAX, NAME_BYTES_MAX } from "./limits.js";
/** The job of whoever names none. */
export const JOB_DEFAULT = "default";
const encoder = new TextEncoder();
// A name may begin with U+FEFF, which a decoder drops unless told not to.
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const JOB_NAME = /^[A-Za-z0-9-]{1,40}$/;
const PLAIN = /^[A-Za-z0-9_-]+$/;
const TOKEN = /^(?:[A-Za-z0-9_-]|=[0-9A-F]{2})+$/;
/** Tokens by name: every message needs those of the same few names. */
const tokens = new Map();
const TOKENS_MAX = 4_096;
/**
 * Returns the job name.
 * @throws BAD_NAME unless it is 1 to 40 of `[A-Za-z0-9-]`.
 */
export function checkJobName(job) {
    if (typeof job === "string" && JOB_NAME.test(job))
        return job;
    throw badName("job name", "1 to 40 characters of A-Z a-z 0-9 -", job);
}
/**
 * Writes a name as one subject token: `[A-Za-z0-9_-]` stay, every other byte of its UTF-8 form becomes `=HH`.
 * Valid in subjects and in KV keys; different names have different tokens.
 * @throws BAD_NAME if it is empty, has a lone surrogate, or takes more than `bytesMax` bytes.
 */
export function escapeName(name, what = "parameter name", bytesMax = NAME_BYTES_MAX) {
    const known = tokens.get(name);
    if (known !== undefined && known.length <= bytesMax)
        return known;
    const token = makeToken(name, what, bytesMax);
    if (tokens.size >= TOKENS_MAX)
        tokens.clear();
    tokens.set(name, token);
    return token;
}
function makeToken(name, what, bytesMax) {
    if (typeof name !== "string" || name.length === 0 || !name.isWellFormed()) {
        throw badName(what, "well-formed text that is not empty", name);
    }
    if (name.length > bytesMax)
        throw badName(what, `at most ${bytesMax} bytes once escaped`, name);
    if (PLAIN.test(name))
        return name;
    let token = "";
    for (const byte of encoder.encode(name)) {
        const character = String.fromCharCode(byte);
        token += PLAIN.test(character)
            ? character
            : `=${byte.toString(16).toUpperCase().padStart(2, "0")}`;
    }
    if (token.length > bytesMax)
        throw badName(what, `at most ${bytesMax} bytes once escaped`, name);
    return token;
}
/** Writes a trainer's or host's id as one subject token, as {@link escapeName} does. */
export function escapeId(id) {
    return escapeName(id, "trainer id", ID_BYTES_MAX);
}
/**
 * Reads the name in a token of {@link escapeName}.
 * @throws BAD_NAME if no name has this token.
 */
export function unescapeName(token, bytesMax = NAME_BYTES_MAX) {
    if (token.length > bytesMax)
        throw badName("token", `at most ${bytesMax} bytes`, token);
    if (!TOKEN.test(token))
        throw badName("token", "letters, digits, _ - and =HH", token);
    if (!token.includes("="))
        return token;
    const bytes = [];
    for (let i = 0; i < token.length; i++) {
        if (token[i] === "=") {
            bytes.push(Number.parseInt(token.slice(i + 1, i + 3), 16));
            i += 2;
        }
        else {
            bytes.push(token.charCodeAt(i));
        }
    }
    let name;
    try {
        name = decoder.decode(Uint8Array.from(bytes));
    }
    catch (cause) {
        throw new PserverError("BAD_NAME", `token ${token} is not UTF-8`, { received: token }, { cause });
    }
    // Each name has one token: an unnecessary escape would be a second token of the same name.
    if (escapeName(name) !== token)
        throw badName("token", escapeName(name), token);
    return name;
}
/** Reads the trainer's or host's id in a token of {@link escapeId}; @throws BAD_NAME if none. */
export function unescapeId(token) {
    return unescapeName(token, ID_BYTES_MAX);
}
/** Quotes a name for messages; a long one is cut. */
export function quoteName(name) {
    if (typeof name !== "string")
        return name === undefined ? "nothing" : `a ${typeof name}`;
    return JSON.stringify(name.length > 60 ? `${name.slice(0, 60)}…` : name);
}
function badName(what, expected, received) {
    return new PserverError("BAD_NAME", `${what}: expected ${expected}; received ${quoteName(received)}`, { expected, received: quoteName(received) });
}
//# sourceMappingURL=names.js.map