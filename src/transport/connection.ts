import { readFileSync } from "node:fs";
import {
  credsAuthenticator,
  type NatsConnection,
  nkeyAuthenticator,
} from "@nats-io/transport-node";
import { defined } from "../protocol/defined.ts";
import { PserverError } from "../protocol/index.ts";
import { visible } from "../protocol/visible.ts";
import { asksForTls, parseBrokerAddresses } from "./broker-address.ts";
import { type BulkConnectionOptions, connectForBulk } from "./bulk-transport.ts";
import type { Drops, Lending } from "./frame-assembler.ts";
import { showUrl } from "./show-url.ts";

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
  /** Without `caFile`, the certificates that this machine trusts. */
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
  /** Without a final dot; permissions are given by it. */
  readonly inboxPrefix: string;
  /** As in {@link BulkConnectionOptions}. */
  readonly lending?: Lending;
  /** As in {@link BulkConnectionOptions}. */
  readonly drops?: Drops;
}

/**
 * Connects to the broker; the connection reconnects for ever and must be closed by the caller.
 * @throws NO_BROKER if none answers in time, DENIED if it refuses the credentials, NO_TLS if it
 * offers no TLS or its certificate is not trusted, BAD_VALUE for an invalid address.
 * @internal
 */
export async function openConnection(
  settings: ConnectionSettings,
  role: ConnectionRole,
): Promise<NatsConnection> {
  try {
    return await connectForBulk(connectionOptions(settings, role));
  } catch (cause) {
    if (cause instanceof PserverError) throw cause;
    const servers = settings.servers.map(showUrl);
    const where = servers.join(", ");
    const text = visible(cause instanceof Error ? cause.message : String(cause));
    const isDenied = /authorization|authentication|permission/i.test(text);
    const message = isDenied
      ? `${where}: the broker refused the credentials: ${text}`
      : `no broker answers at ${where} within ${settings.timeoutMs} ms: ${text}`;
    throw new PserverError(isDenied ? "DENIED" : "NO_BROKER", message, { servers }, { cause });
  }
}

/**
 * The options of nats.js for these settings and this role.
 * @throws BAD_VALUE for an invalid address, IO for a file with credentials that cannot be read.
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
    // Two unanswered pings end the connection.
    pingInterval: 10_000,
    // By default each request records a stack trace, which takes half of its time.
    noAsyncTraces: true,
  };
  if (settings.credsFile !== undefined) {
    options.authenticator = credsAuthenticator(readSecret(settings.credsFile));
  } else if (settings.nkeyFile !== undefined) {
    options.authenticator = nkeyAuthenticator(trimmed(readSecret(settings.nkeyFile)));
  }
  const isSecure = asksForTls(parseBrokerAddresses(settings.servers));
  // Even empty, this option makes nats.js refuse a broker without TLS, also when it reconnects.
  if (isSecure || settings.tls !== undefined) options.tls = { ...settings.tls };
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
