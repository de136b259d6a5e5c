import { homedir } from "node:os";
import { join } from "node:path";

/**
 * Directory where `pserver setup` installs a broker for this user: `nats-pserver/bin` in `XDG_DATA_HOME`,
 * or in `~/.local/share` if that is not set.
 */
export function userBrokerDirectory(
  environment: Readonly<Record<string, string | undefined>>,
): string {
  const { XDG_DATA_HOME: data, HOME: home } = environment;
  // The XDG specification says that a relative path is to be ignored.
  const base = data?.startsWith("/") ? data : join(home || homedir(), ".local", "share");
  return join(base, "nats-pserver", "bin");
}
