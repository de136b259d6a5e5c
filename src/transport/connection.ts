import { readFileSync } from "node:fs";
import {
  credsAuthenticator,
  type NatsConnection,
  nkeyAuthenticator,
} from "@nats-io/transport-node";
import { PserverError } from "../protocol/index.ts";
import { type BulkConnectionOptions, connectForBulk } from "./bulk-transport.ts";
import type { Lending } from "./frame-assembler.ts";

/** How to reach a broker: plain data, so that worker threads and child processes can be told. */
export interface ConnectionSettings {
  /** `nats://`, `tls://` or `host:port`, tried in order. */
  readonly servers: readonly string[];
  readonly user?: string;
  readonly password?: string;
  readonly token?: string;
  /** Path of a `.creds` file. */
  readonly credsFile?: string;
  /** Path of a file that holds an nkey seed. */
  readonly nkeyFile?: string;
  readonly tls?: {
    readonly certFile?: string;
    readonly keyFile?: string;
    readonly caFile?: string;
  };
  /** How long connecting, and each request to the broker itself, may take. */
  readonly timeoutMs: number;
}

/** The role of one connection: what the broker shows of it and where its replies go. */
export interface ConnectionRole {
  readonly name: string;
  /** Without a final dot; permissions are given by it. */
  readonly inboxPrefix: string;
  /** As in {@link BulkConnectionOptions}. */
  readonly lending?: Lending;
}

/**
 * Connects to the broker; the connection reconnects for ever and must be closed by the caller.
 * @throws NO_BROKER if none answers in the time, DENIED if it refuses the credentials.
 */
export async function openConnection(
  settings: ConnectionSettings,
  role: ConnectionRole,
): Promise<NatsConnection> {
  try {
    return await connectForBulk(connectionOptions(settings, role));
  } catch (cause) {
    const where = settings.servers.join(", ");
    const text = cause instanceof Error ? cause.message : String(cause);
    if (/authorization|authentication|permission/i.test(text)) {
      throw new PserverError(
        "DENIED",
        `${where}: the broker refused the credentials: ${text}`,
        { servers: settings.servers },
        { cause },
      );
    }
    throw new PserverError(
      "NO_BROKER",
      `no broker answers at ${where} within ${settings.timeoutMs} ms: ${text}`,
      { servers: settings.servers },
      { cause },
    );
  }
}

/** The options of nats.js that settings and role stand for. */
export function connectionOptions(
  settings: ConnectionSettings,
  role: ConnectionRole,
): BulkConnectionOptions {
  const options: BulkConnectionOptions = {
    ...(role.lending === undefined ? {} : { lending: role.lending }),
    servers: [...settings.servers],
    name: role.name,
    inboxPrefix: role.inboxPrefix,
    timeout: settings.timeoutMs,
    // The default gives up after ten attempts, and then the connection is dead for good.
    maxReconnectAttempts: -1,
    reconnectTimeWait: 250,
    reconnectJitter: 250,
    // A dead broker is noticed after two missed pings.
    pingInterval: 10_000,
    // Otherwise each request records where it was made, at half of its price.
    noAsyncTraces: true,
  };
  if (settings.user !== undefined) options.user = settings.user;
  if (settings.password !== undefined) options.pass = settings.password;
  if (settings.token !== undefined) options.token = settings.token;
  if (settings.credsFile !== undefined) {
    options.authenticator = credsAuthenticator(readSecret(settings.credsFile));
  } else if (settings.nkeyFile !== undefined) {
    options.authenticator = nkeyAuthenticator(trimmed(readSecret(settings.nkeyFile)));
  }
  if (settings.tls !== undefined) options.tls = { ...settings.tls };
  return options;
}

function trimmed(bytes: Uint8Array): Uint8Array {
  return new TextEncoder().encode(new TextDecoder().decode(bytes).trim());
}

function readSecret(path: string): Uint8Array {
  try {
    return readFileSync(path);
  } catch (cause) {
    throw new PserverError("IO", `cannot read the credentials file ${path}`, { path }, { cause });
  }
}
