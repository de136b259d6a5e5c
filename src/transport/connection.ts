import { accessSync, constants, readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import {
  ConnectionError,
  credsAuthenticator,
  type NatsConnection,
  nkeyAuthenticator,
} from "@nats-io/transport-node";
import { mismatch, visible } from "../protocol/errors.ts";
import { defined } from "../protocol/fields.ts";
import { PserverError } from "../protocol/index.ts";
import { fileError } from "../system/file-errors.ts";
import { type BulkConnectionOptions, connectForBulk } from "./bulk-transport.ts";
import type { Drops, Lending } from "./frame-assembler.ts";

const SCHEME = /^[a-z]{1,8}:\/\//i;
const HOST_PORT = /^(?:\[[0-9a-f:.]+\]|[^\s:@/?#[\],]{1,255})(?::\d{1,5})?\/?$/i;

/**
 * Shows an address in messages without its credentials, whatever their form: the scheme, `…@` for anything
 * before the last `@`, and the rest if it is host and port, else `…`. A password that is not escaped could
 * continue in that rest as a path or a port.
 */
export function showUrl(url: string): string {
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
export function showListed(list: string | readonly string[], entry: string): string {
  return showUrl(typeof list === "string" && list.includes("@") ? list : entry);
}

/** One address of a broker, as given by a user. */
export interface BrokerAddress {
  /** `host:port`, `nats://host:port` or `tls://host:port`, without credentials. */
  readonly server: string;
  /** Whether the scheme is `tls`: then nothing is sent without TLS. */
  readonly isTls: boolean;
  /** The part before the `@`, still escaped; absent if it is empty. */
  readonly userInfo?: string;
}

const ADDRESS =
  /^(?:([a-z]+):\/\/)?(?:([^@/?#\s]*)@)?((?:\[[0-9a-f:.]+\]|[^\s:@/?#[\],]{1,255})(?::(\d{1,5}))?)\/?$/i;
const PORT_MAX = 65_535;
const EXPECTED =
  "nats://host:port or tls://host:port, / @ ? # % , in a password as %2F %40 %3F %23 %25 %2C";

/**
 * Parses the addresses of one broker or cluster, from a list or from text with commas. An address without a
 * scheme is `nats://`. In text with several addresses, one with credentials must have its scheme; nothing
 * between two commas, or after the last one, is no address.
 * @throws BAD_VALUE for anything else; the message shows no part of the credentials.
 */
export function parseBrokerAddresses(given: string | readonly string[]): BrokerAddress[] {
  const list = typeof given === "string" ? given.split(",") : given;
  const isText = typeof given === "string";
  const entries = isText ? list.filter((entry) => entry.trim() !== "") : list;
  if (isText && entries.length === 0) throw badBrokerAddress(given);
  return entries.map((entry) => {
    // A comma in a password splits an address: its second half must not be accepted as an address.
    const isTail = list !== given && list.length > 1 && /@/.test(entry) && !/:\/\//.test(entry);
    const address = isTail ? undefined : parseBrokerAddress(entry);
    if (address === undefined) throw badBrokerAddress(showListed(given, entry));
    return address;
  });
}

function parseBrokerAddress(entry: string): BrokerAddress | undefined {
  const match = ADDRESS.exec(entry.trim());
  const [, scheme, userInfo = "", address = "", port = "4222"] = match ?? [];
  const isKnownScheme = scheme === undefined || /^(?:nats|tls)$/i.test(scheme);
  if (match === null || !isKnownScheme || Number(port) > PORT_MAX) return undefined;
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
export function asksForTls(addresses: readonly BrokerAddress[]): boolean {
  const secure = addresses.filter(({ isTls }) => isTls).length;
  if (secure > 0 && secure < addresses.length) {
    const received = addresses.map(({ server }) => server).join(",");
    const expected = "tls:// before all of them, or before none";
    throw mismatch("BAD_VALUE", "broker addresses", expected, received);
  }
  return secure > 0;
}

/** Makes the error for an invalid address; `shown` is the address without credentials. */
export function badBrokerAddress(shown: string): PserverError {
  const received = JSON.stringify(shown.trim());
  return new PserverError(
    "BAD_VALUE",
    `broker address: expected ${EXPECTED}; received ${received}`,
    {
      expected: "nats://host:port",
      received,
    },
  );
}

/** The longest interval of a timer. */
const PING_MS = 2 ** 31 - 1;

/** How to reach a broker: plain data, so that it can be passed to worker threads and child processes. */
export interface ConnectionSettings {
  /**
   * `nats://`, `tls://` or `host:port`, of one broker or cluster. With `tls://`, which all have or
   * none, or with TLS files, nothing is sent to a broker that offers no TLS, now or later.
   */
  readonly servers: readonly string[];
  readonly user?: string;
  readonly password?: string;
  readonly token?: string;
  /** Path of a `.creds` file. */
  readonly credsFile?: string;
  /** Path of a file that holds an nkey seed. */
  readonly nkeyFile?: string;
  /** Files for TLS. Without `caFile` the broker's certificate must be one that this machine trusts. */
  readonly tls?: {
    readonly certFile?: string;
    readonly keyFile?: string;
    readonly caFile?: string;
  };
  /** How long connecting, and each request to the broker itself, may take. */
  readonly timeoutMs: number;
}

/** The role of one connection: its name at the broker, and where its replies go. */
export interface ConnectionRole {
  readonly name: string;
  /** Prefix of the subjects of replies, without a final dot. The broker's permissions name it. */
  readonly inboxPrefix: string;
  /** As in {@link BulkConnectionOptions}. */
  readonly lending?: Lending;
  /** As in {@link BulkConnectionOptions}. */
  readonly drops?: Drops;
}

/** Pause before an address at which nothing listens is tried again. */
const REFUSED_MS = 250;

/**
 * Connects to the broker, which may be started later, in the settings' time; the connection reconnects for ever and must
 * be closed by the caller.
 * @throws NO_BROKER if none answers in time, DENIED if it refuses the credentials, NO_TLS if it
 * offers no TLS or its certificate is not trusted, BAD_VALUE for an invalid address.
 * @internal
 */
export async function openConnection(
  settings: ConnectionSettings,
  role: ConnectionRole,
): Promise<NatsConnection> {
  const endsAtMs = performance.now() + settings.timeoutMs;
  for (;;) {
    try {
      const timeout = Math.max(1, endsAtMs - performance.now());
      return await connectForBulk({ ...connectionOptions(settings, role), timeout });
    } catch (cause) {
      const isNobodyThere =
        cause instanceof ConnectionError && cause.message === "connection refused";
      if (!isNobodyThere || performance.now() + REFUSED_MS >= endsAtMs)
        throw failure(settings, cause);
      await delay(REFUSED_MS);
    }
  }
}

function failure(settings: ConnectionSettings, cause: unknown): PserverError {
  if (cause instanceof PserverError) return cause;
  const servers = settings.servers.map(showUrl);
  const brokers = servers.join(", ");
  const text = visible(cause instanceof Error ? cause.message : String(cause));
  const isDenied = /authorization|authentication|permission/i.test(text);
  const message = isDenied
    ? `${brokers}: the broker refused the credentials: ${text}`
    : `no broker answers at ${brokers} within ${settings.timeoutMs} ms: ${text}`;
  return new PserverError(isDenied ? "DENIED" : "NO_BROKER", message, { servers }, { cause });
}

/**
 * Makes the options of nats.js for these settings and this role.
 * @throws BAD_VALUE for an invalid address, IO for a file with credentials or certificates that cannot be read.
 * @internal
 */
export function connectionOptions(
  settings: ConnectionSettings,
  role: ConnectionRole,
): BulkConnectionOptions {
  const { user, password: pass, token } = settings;
  const options: BulkConnectionOptions = {
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
  } else if (settings.nkeyFile !== undefined) {
    options.authenticator = nkeyAuthenticator(trimmed(readSecret(settings.nkeyFile)));
  }
  for (const path of Object.values(settings.tls ?? {})) checkReadable(path);
  const isSecure = asksForTls(parseBrokerAddresses(settings.servers));
  // Even empty, this option makes nats.js refuse a broker without TLS, also when it reconnects.
  if (isSecure || settings.tls !== undefined) options.tls = { ...settings.tls };
  return options;
}

function trimmed(bytes: Uint8Array): Uint8Array {
  return new TextEncoder().encode(new TextDecoder().decode(bytes).trim());
}

/** @throws IO, before anything is sent: a missing file would show only once a broker asks for TLS. */
function checkReadable(path: string): void {
  try {
    accessSync(path, constants.R_OK);
  } catch (cause) {
    throw fileError("read the TLS file", path, cause);
  }
}

function readSecret(path: string): Uint8Array {
  try {
    return readFileSync(path);
  } catch (cause) {
    throw new PserverError("IO", `cannot read the credentials file ${path}`, { path }, { cause });
  }
}
