import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { PserverError } from "../../protocol/errors.js";
import { defined } from "../../protocol/fields.js";
import { asksForTls, badBrokerAddress, connectionOptions, parseBrokerAddresses, } from "../../transport/connection.js";
import { findLocalToken } from "../../transport/local-token.js";
import { parseDuration } from "../calls/calls.js";
/** Returns the name of the context that is selected in the `nats` command; undefined if there is none. */
function selectedContext(env) {
    try {
        const name = readFileSync(join(configDirectory(env), "context.txt"), "utf8").trim();
        return name === "" ? undefined : name;
    }
    catch {
        // Without the file no context is selected.
        return undefined;
    }
}
/**
 * Reads the settings of a context of the `nats` command; unknown entries are ignored.
 * @throws BAD_VALUE if there is no such context, it cannot be read, or it needs `nsc`.
 */
function readContext(name, env) {
    if (name.includes("..") || name.includes("/") || name === "") {
        throw badContext(name, "a name without .. and /");
    }
    const path = join(configDirectory(env), "context", `${name}.json`);
    const entries = readJson(name, path);
    const text = (key) => {
        const value = entries[key];
        return typeof value === "string" && value !== "" ? value : undefined;
    };
    if (text("nsc") !== undefined) {
        throw badContext(name, "one with creds, because this client does not run nsc");
    }
    return defined({
        url: text("url"),
        user: text("user"),
        password: text("password"),
        token: text("token"),
        creds: expand(text("creds"), env),
        nkey: expand(text("nkey"), env),
        tlsCert: expand(text("cert"), env),
        tlsKey: expand(text("key"), env),
        tlsCa: expand(text("ca"), env),
    });
}
function configDirectory(env) {
    const base = env["XDG_CONFIG_HOME"] || join(env["HOME"] || homedir(), ".config");
    return join(base, "nats");
}
function readJson(name, path) {
    try {
        const value = JSON.parse(readFileSync(path, "utf8"));
        if (typeof value === "object" && value !== null)
            return value;
    }
    catch (cause) {
        throw new PserverError("BAD_VALUE", `NATS context ${JSON.stringify(name)}: cannot read ${path}`, { context: name, path }, { cause });
    }
    throw badContext(name, "a JSON object");
}
function expand(path, env) {
    return path?.startsWith("~/") ? join(env["HOME"] || homedir(), path.slice(2)) : path;
}
function badContext(name, expected) {
    return new PserverError("BAD_VALUE", `NATS context ${JSON.stringify(name)}: expected ${expected}`, { context: name, expected });
}
export const DEFAULT_URL = "nats://127.0.0.1:4222";
const AUTH = ["user", "password", "token", "creds", "nkey"];
const TLS = ["tlsCert", "tlsKey", "tlsCa"];
/** How long one attempt to connect takes at most, as with the `nats` command. */
const CONNECT_ATTEMPT_MS = 5_000;
/**
 * Makes the options of nats.js for the broker that {@link resolveSettings} finds.
 * @throws BAD_VALUE for an invalid setting, IO for a file that cannot be read.
 * @internal
 */
export function resolveConnection(overrides, env = process.env) {
    const { name = "pserver", inboxPrefix = "_INBOX" } = overrides;
    return connectionOptions(resolveSettings(overrides, env), { name, inboxPrefix });
}
/**
 * Finds out how to reach the broker: what the caller gives, else `PSERVER_URL` and the `NATS_…` variables
 * that the `nats` command knows, else a NATS context, else localhost. nats.js itself reads none.
 *
 * The address, the credentials and the TLS files are each taken from the first source that has any
 * of them; credentials in the address win. Only the password of a caller's user may be left to
 * `NATS_PASSWORD`, unless `NATS_USER` says that it is another user's. A context that is named (by
 * the caller or `NATS_CONTEXT`) fills in what is missing; the one the `nats` command has selected is
 * used only if nothing else gives an address, so that its credentials never go to another broker. Without any
 * credentials, a broker of this machine that this user has started gets its token from the user's file.
 *
 * @throws BAD_VALUE for an invalid setting, IO for a token that cannot be read.
 */
export function resolveSettings(overrides, env = process.env) {
    const fromEnv = environmentSettings(env);
    const named = overrides.context ?? nonEmpty(env["NATS_CONTEXT"]);
    const hasUrl = overrides.url !== undefined || fromEnv.url !== undefined;
    const selected = named ?? (hasUrl ? undefined : selectedContext(env));
    const context = selected === undefined ? {} : readContext(selected, env);
    const sources = [overrides, fromEnv, context];
    const url = sources.find((source) => source.url !== undefined)?.url ?? DEFAULT_URL;
    const { servers, ...inUrl } = splitUrl(url);
    const auth = firstWith([inUrl, ...sources], AUTH);
    const { user, creds, nkey } = auth;
    const isGiven = AUTH.some((key) => auth[key] !== undefined);
    const token = isGiven ? auth.token : findLocalToken(servers, env);
    const password = auth.password ?? (auth === overrides ? passwordOf(user, fromEnv) : undefined);
    const { tlsCert, tlsKey, tlsCa } = firstWith(sources, TLS);
    const tls = defined({ certFile: tlsCert, keyFile: tlsKey, caFile: tlsCa });
    return {
        servers,
        timeoutMs: firstWith(sources, ["connectTimeoutMs"]).connectTimeoutMs ?? CONNECT_ATTEMPT_MS,
        ...defined({ user, password, token, credsFile: creds, nkeyFile: nkey }),
        ...(Object.keys(tls).length > 0 && { tls }),
    };
}
function environmentSettings(env) {
    const timeout = nonEmpty(env["NATS_TIMEOUT"]);
    return defined({
        url: nonEmpty(env["PSERVER_URL"]) ?? nonEmpty(env["NATS_URL"]),
        user: nonEmpty(env["NATS_USER"]),
        password: nonEmpty(env["NATS_PASSWORD"]),
        token: nonEmpty(env["NATS_TOKEN"]),
        creds: nonEmpty(env["NATS_CREDS"]),
        nkey: nonEmpty(env["NATS_NKEY"]),
        tlsCert: nonEmpty(env["NATS_CERT"]),
        tlsKey: nonEmpty(env["NATS_KEY"]),
        tlsCa: nonEmpty(env["NATS_CA"]),
        connectTimeoutMs: timeout === undefined ? undefined : parseDuration(timeout, "NATS_TIMEOUT"),
    });
}
/**
 * Splits addresses into addresses without credentials, and the credentials of the first address that has any.
 */
function splitUrl(url) {
    const addresses = parseBrokerAddresses(url);
    asksForTls(addresses);
    const userInfo = addresses.find((address) => address.userInfo !== undefined)?.userInfo;
    const credentials = userInfo === undefined ? {} : parseUserInfo(userInfo);
    return { servers: addresses.map(({ server }) => server), ...credentials };
}
/** Parses `user:password@` or `token@`, as other NATS clients do. */
function parseUserInfo(info) {
    try {
        const colon = info.indexOf(":");
        if (colon < 0)
            return { token: decodeURIComponent(info) };
        return {
            user: decodeURIComponent(info.slice(0, colon)),
            password: decodeURIComponent(info.slice(colon + 1)),
        };
    }
    catch {
        throw badBrokerAddress("…@…");
    }
}
/** Returns the password in the environment, unless the environment names another user. */
function passwordOf(user, fromEnv) {
    if (user === undefined)
        return undefined;
    return fromEnv.user === undefined || fromEnv.user === user ? fromEnv.password : undefined;
}
function firstWith(sources, keys) {
    return sources.find((source) => keys.some((key) => source[key] !== undefined)) ?? {};
}
/** Returns a variable's text; undefined if it is not set or empty. */
export function nonEmpty(text) {
    return text === "" ? undefined : text;
}
//# sourceMappingURL=broker-settings.js.map