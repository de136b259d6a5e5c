import { homedir } from "node:os";
import { join } from "node:path";

/**
 * Where `pserver setup` puts a broker for this user: `nats-pserver/bin` below `XDG_DATA_HOME`, or below
 * `~/.local/share` where that is not set.
 */
export function userBrokerDirectory(
  environment: Readonly<Record<string, string | undefined>>,
): string {
  const { XDG_DATA_HOME: data, HOME: home } = environment;
  // By the XDG specification a relative path counts as none.
  const base = data?.startsWith("/") ? data : join(home || homedir(), ".local", "share");
  return join(base, "nats-pserver", "bin");
}
