import { accessSync, constants, readFileSync } from "node:fs";
import { credsAuthenticator, nkeyAuthenticator, } from "@nats-io/transport-node";
import { mismatch, visible } from "../protocol/errors.js";
import { defined } from "../protocol/fields.js";
import { PserverError } from "../protocol/index.js";
import { fileError } from "../system/file-errors.js";
import { connectForBulk } from "./bulk-transport.js";
const SCHEME = /^[a-z]{1,8}:\/\//i;
const HOST_PORT = /^(?:\[[0-9a-f:.]+\]|[^\s:@/?#[\],]{1,255})(?::\d{1,5})?\/?$/i;
/**
 * Shows an address in messages without its credentials, whatever their form: the scheme, `…@` for anything
 * before the last `@`, and the rest if it is host and port, else `…`. A password that is not escaped could
 * continue in that rest as a path or a port.
 */
export function showUrl(url) {
    const scheme = SCHEME.exec(url)?.[0] ?? "";
    const rest = url.slice(scheme.length);
    const at = rest.lastIndexOf("@");
    const host = rest.slice(at + 1);
    return `${scheme}${at < 0 ? "" : "…@"}${HOST_PORT.test(host) ? host : "…"}`;
}
/**
 * Shows one address of a list in messages, as {@link showUrl} does. Of text with commas and an `@` the whole
 * text is shown that way, because a comma may be in a password.
 */
export function showListed(list, entry) {
    return showUrl(typeof list === "string" && list.includes("@") ? list : entry);
}
const ADDRESS = /^(?:([a-z]+):\/\/)?(?:([^@/?#\s]*)@)?((?:\[[0-9a-f:.]+\]|[^\s:@/?#[\],]{1,255})(?::(\d{1,5}))?)\/?$/i;
const PORT_MAX = 65_535;
const EXPECTED = "nats://host:port or tls://host:port, / @ ? # % , in a password as %2F %40 %3F %23 %25 %2C";
/**
 * Parses the addresses of one broker or cluster, from a list or from text with commas. An address without a
 * scheme is `nats://`. In text with several addresses, one with credentials must have its scheme; nothing
 * between two commas, or after the last one, is no address.
 * @throws BAD_VALUE for anything else; the message shows no part of the credentials.
 */
export function parseBrokerAddresses(given) {
    const list = typeof given === "string" ? given.split(",") : given;
    const isText = typeof given === "string";
    const entries = isText ? list.filter((entry) => entry.trim() !== "") : list;
    if (isText && entries.length === 0)
        throw badBrokerAddress(given);
    return entries.map((entry) => {
        // A comma in a password splits an address: its second half must not be accepted as an address.
        const isTail = list !== given && list.length > 1 && /@/.test(entry) && !/:\/\//.test(entry);
        const address = isTail ? undefined : parseBrokerAddress(entry);
        if (address === undefined)
            throw badBrokerAddress(showListed(given, entry));
        return address;
    });
}
function parseBrokerAddress(entry) {
    const match = ADDRESS.exec(entry.trim());
    const [, scheme, userInfo = "", address = "", port = "4222"] = match ?? [];
    const isKnownScheme = scheme === undefined || /^(?:nats|tls)$/i.test(scheme);
    if (match === null || !isKnownScheme || Number(port) > PORT_MAX)
        return undefined;
    return {
        server: scheme === undefined ? address : `${scheme}://${address}`,
        isTls: scheme?.toLowerCase() === "tls",
        ...(userInfo === "" ? {} : { userInfo }),
    };
}
/**
 * Returns whether the addresses of one broker or cluster ask for TLS.
 * @throws BAD_VALUE unless all do or none does: a lost connection may be made to any of them again, and
 * must not lose its protection.
 */
export function asksForTls(addresses) {
    const secure = addresses.filter(({ isTls }) => isTls).length;
    if (secure > 0 && secure < addresses.length) {
        const received = addresses.map(({ server }) => server).join(",");
        const expected = "tls:// before all of them, or before none";
        throw mismatch("BAD_VALUE", "broker addresses", expected, received);
    }
    return secure > 0;
}
/** Makes the error for an invalid address; `shown` is the address without credentials. */
export function badBrokerAddress(shown) {
    const received = JSON.stringify(shown.trim());
    return new PserverError("BAD_VALUE", `broker address: expected ${EXPECTED}; received ${received}`, {
        expected: "nats://host:port",
        received,
    });
}
/** The longest interval of a timer. */
const PING_MS = 2 ** 31 - 1;
/**
 * Connects to the broker; the connection reconnects for ever and must be closed by the caller.
 * @throws NO_BROKER if none answers in time, DENIED if it refuses the credentials, NO_TLS if it
 * offers no TLS or its certificate is not trusted, BAD_VALUE for an invalid address.
 * @internal
 */
export async function openConnection(settings, role) {
    try {
        return await connectForBulk(connectionOptions(settings, role));
    }
    catch (cause) {
        if (cause instanceof PserverError)
            throw cause;
        const servers = settings.servers.map(showUrl);
        const brokers = servers.join(", ");
        const text = visible(cause instanceof Error ? cause.message : String(cause));
        const isDenied = /authorization|authentication|permission/i.test(text);
        const message = isDenied
            ? `${brokers}: the broker refused the credentials: ${text}`
            : `no broker answers at ${brokers} within ${settings.timeoutMs} ms: ${text}`;
        throw new PserverError(isDenied ? "DENIED" : "NO_BROKER", message, { servers }, { cause });
    }
}
/**
 * Makes the options of nats.js for these settings and this role.
 * @throws BAD_VALUE for an invalid address, IO for a file with credentials or certificates that cannot be read.
 * @internal
 */
export function connectionOptions(settings, role) {
    const { user, password: pass, token } = settings;
    const options = {
        ...defined({ ...role, user, pass, token }),
        servers: [...settings.servers],
        timeout: settings.timeoutMs,
        // By default nats.js gives up after ten attempts and never reconnects.
        maxReconnectAttempts: -1,
        reconnectTimeWait: 250,
        reconnectJitter: 250,
        // Never: a watch of our own sends them, and counts all that comes as an answer.
        pingInterval: PING_MS,
        // By default each request records a stack trace, which takes half of its time.
        noAsyncTraces: true,
    };
    if (settings.credsFile !== undefined) {
        options.authenticator = credsAuthenticator(readSecret(settings.credsFile));
    }
    else if (settings.nkeyFile !== undefined) {
        options.authenticator = nkeyAuthenticator(trimmed(readSecret(settings.nkeyFile)));
    }
    for (const path of Object.values(settings.tls ?? {}))
        checkReadable(path);
    const isSecure = asksForTls(parseBrokerAddresses(settings.servers));
    // Even empty, this option makes nats.js refuse a broker without TLS, also when it reconnects.
    if (isSecure || settings.tls !== undefined)
        options.tls = { ...settings.tls };
    return options;
}
function trimmed(bytes) {
    return new TextEncoder().encode(new TextDecoder().decode(bytes).trim());
}
/** @throws IO, before anything is sent: a missing file would show only once a broker asks for TLS. */
function checkReadable(path) {
    try {
        accessSync(path, constants.R_OK);
    }
    catch (cause) {
        throw fileError("read the TLS file", path, cause);
    }
}
function readSecret(path) {
    try {
        return readFileSync(path);
    }
    catch (cause) {
        throw new PserverError("IO", `cannot read the credentials file ${path}`, { path }, { cause });
    }
}
//# sourceMappingURL=connection.js.map