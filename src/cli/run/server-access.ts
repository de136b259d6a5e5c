import { resolve } from "node:path";
import { resolveSettings } from "../../client/wire/settings.ts";
import { defined } from "../../protocol/defined.ts";
import type { ConnectionSettings } from "../../transport/connection.ts";
import { type ConnectionFlags, toOverrides } from "../options/connection-options.ts";

/** How trainers reach the broker. */
export interface ServerAccess {
  /** Addresses without credentials, with commas between them. */
  readonly url: string;
  /** `NATS_…` variables of the credentials and certificates. */
  readonly credentials: Readonly<Record<string, string>>;
}

const PORT_DEFAULT = "4222";

/** Access to the broker that flags, environment or a NATS context name. */
export function accessOf(
  flags: ConnectionFlags,
  environment: Readonly<Record<string, string | undefined>>,
): ServerAccess {
  const settings = resolveSettings(toOverrides(flags), environment);
  return { url: settings.servers.join(","), credentials: credentialVariables(settings) };
}

/** Host and port of the first address, as Legion's scripts want them. */
export function firstAddress(url: string): { readonly host: string; readonly port: string } {
  const [first = ""] = url.split(",");
  const address = first.replace(/^[a-z]+:\/\//i, "");
  const match = /^(?:\[(?<v6>[^\]]+)\]|(?<host>[^:]+))(?::(?<port>\w+))?$/.exec(address);
  const { v6, host = address, port = PORT_DEFAULT } = match?.groups ?? {};
  return { host: v6 ?? host, port };
}

/** Variables of the credentials; files by absolute paths, because a trainer may run in another directory. */
function credentialVariables(settings: ConnectionSettings): Record<string, string> {
  const { user, password, token, credsFile, nkeyFile, tls } = settings;
  const path = (file: string | undefined): string | undefined =>
    file === undefined ? undefined : resolve(file);
  return defined({
    NATS_USER: user,
    NATS_PASSWORD: password,
    NATS_TOKEN: token,
    NATS_CREDS: path(credsFile),
    NATS_NKEY: path(nkeyFile),
    NATS_CERT: path(tls?.certFile),
    NATS_KEY: path(tls?.keyFile),
    NATS_CA: path(tls?.caFile),
  });
}
