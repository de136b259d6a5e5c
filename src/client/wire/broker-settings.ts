import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import type { NodeConnectionOptions } from "@nats-io/transport-node";
import { PserverError } from "../../protocol/errors.ts";
import { defined } from "../../protocol/fields.ts";
import {
  asksForTls,
  badBrokerAddress,
  type ConnectionSettings,
  connectionOptions,
  parseBrokerAddresses,
} from "../../transport/connection.ts";
import { findLocalToken } from "../../transport/local-token.ts";
import { parseDuration } from "../calls/calls.ts";

/** Returns the name of the context that is selected in the `nats` command; undefined if there is none. */
function selectedContext(env: Environment): string | undefined {
  try {
    const name = readFileSync(join(configDirectory(env), "context.txt"), "utf8").trim();
    return name === "" ? undefined : name;
  } catch {
    // Without the file no context is selected.
    return undefined;
  }
}

/**
 * Reads the settings of a context of the `nats` command; unknown entries are ignored.
 * @throws BAD_VALUE if there is no such context, it cannot be read, or it needs `nsc`.
 */
function readContext(name: string, env: Environment): BrokerSettings {
  if (name.includes("..") || name.includes("/") || name === "") {
    throw badContext(name, "a name without .. and /");
  }
  const path = join(configDirectory(env), "context", `${name}.json`);
  const entries = readJson(name, path);
  const text = (key: string): string | undefined => {
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

function configDirectory(env: Environment): string {
  const base = env["XDG_CONFIG_HOME"] || join(env["HOME"] || homedir(), ".config");
  return join(base, "nats");
}

function readJson(name: string, path: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(readFileSync(path, "utf8"));
    if (typeof value === "object" && value !== null) return value as Record<string, unknown>;
  } catch (cause) {
    throw new PserverError(
      "BAD_VALUE",
      `NATS context ${JSON.stringify(name)}: cannot read ${path}`,
      { context: name, path },
      { cause },
    );
  }
  throw badContext(name, "a JSON object");
}

function expand(path: string | undefined, env: Environment): string | undefined {
  return path?.startsWith("~/") ? join(env["HOME"] || homedir(), path.slice(2)) : path;
}

function badContext(name: string, expected: string): PserverError {
  return new PserverError(
    "BAD_VALUE",
    `NATS context ${JSON.stringify(name)}: expected ${expected}`,
    { context: name, expected },
  );
}

/** Settings given by a caller; those left out come from the environment or a NATS context. */
export interface ConnectionOverrides extends BrokerSettings {
  /** Name of a context of the `nats` command. */
  readonly context?: string;
}

/** {@link ConnectionOverrides} with the name and inbox of the connection. */
export interface NamedConnectionOverrides extends ConnectionOverrides {
  /** Name of the connection in the broker's monitoring. */
  readonly name?: string;
  /** Subject prefix of replies; the broker's permissions refer to it. */
  readonly inboxPrefix?: string;
}

export const DEFAULT_URL = "nats://127.0.0.1:4222";

const AUTH = ["user", "password", "token", "creds", "nkey"] as const;
const TLS = ["tlsCert", "tlsKey", "tlsCa"] as const;

/** How long one attempt to connect takes at most, as with the `nats` command. */
const CONNECT_ATTEMPT_MS = 5_000;

/**
 * Makes the options of nats.js for the broker that {@link resolveSettings} finds.
 * @throws BAD_VALUE for an invalid setting, IO for a file that cannot be read.
 * @internal
 */
export function resolveConnection(
  overrides: NamedConnectionOverrides,
  env: Environment = process.env,
): NodeConnectionOptions {
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
export function resolveSettings(
  overrides: ConnectionOverrides,
  env: Environment = process.env,
): ConnectionSettings {
  const fromEnv = environmentSettings(env);
  const named = overrides.context ?? nonEmpty(env["NATS_CONTEXT"]);
  const hasUrl = overrides.url !== undefined || fromEnv.url !== undefined;
  const selected = named ?? (hasUrl ? undefined : selectedContext(env));
  const context = selected === undefined ? {} : readContext(selected, env);
  const sources: readonly BrokerSettings[] = [overrides, fromEnv, context];

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

function environmentSettings(env: Environment): BrokerSettings {
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
function splitUrl(url: string | readonly string[]): {
  servers: string[];
  user?: string;
  password?: string;
  token?: string;
} {
  const addresses = parseBrokerAddresses(url);
  asksForTls(addresses);
  const userInfo = addresses.find((address) => address.userInfo !== undefined)?.userInfo;
  const credentials = userInfo === undefined ? {} : parseUserInfo(userInfo);
  return { servers: addresses.map(({ server }) => server), ...credentials };
}

/** Parses `user:password@` or `token@`, as other NATS clients do. */
function parseUserInfo(info: string): { user: string; password: string } | { token: string } {
  try {
    const colon = info.indexOf(":");
    if (colon < 0) return { token: decodeURIComponent(info) };
    return {
      user: decodeURIComponent(info.slice(0, colon)),
      password: decodeURIComponent(info.slice(colon + 1)),
    };
  } catch {
    throw badBrokerAddress("…@…");
  }
}

/** Returns the password in the environment, unless the environment names another user. */
function passwordOf(user: string | undefined, fromEnv: BrokerSettings): string | undefined {
  if (user === undefined) return undefined;
  return fromEnv.user === undefined || fromEnv.user === user ? fromEnv.password : undefined;
}

function firstWith(
  sources: readonly BrokerSettings[],
  keys: readonly (keyof BrokerSettings)[],
): BrokerSettings {
  return sources.find((source) => keys.some((key) => source[key] !== undefined)) ?? {};
}

/** Returns a variable's text; undefined if it is not set or empty. */
export function nonEmpty(text: string | undefined): string | undefined {
  return text === "" ? undefined : text;
}

/** Addresses and credentials of the broker; files are given by path. */
export interface BrokerSettings {
  /**
   * One address, several separated by commas, or a list; may hold `user:password@`. With `tls://`
   * nothing is sent to a broker that offers no TLS; all addresses have it, or none.
   */
  readonly url?: string | readonly string[];
  readonly user?: string;
  readonly password?: string;
  readonly token?: string;
  /** Credentials file of a JWT user. */
  readonly creds?: string;
  /** File with the seed of an nkey. */
  readonly nkey?: string;
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  readonly tlsCa?: string;
  /** How long one attempt to connect may take. */
  readonly connectTimeoutMs?: number;
}

/** Environment variables to read settings from; `process.env` by default. */
export type Environment = Readonly<Record<string, string | undefined>>;
