import { isIP, isIPv4 } from "node:net";
import { mismatch } from "../protocol/errors.ts";

/** Where an HTTP server listens. */
export interface HttpAddress {
  /** A name or an address, without brackets. */
  readonly host: string;
  /** 0 for any free port. */
  readonly port: number;
}

/** The address of this machine that only its own programs reach. */
export const LOOPBACK = "127.0.0.1";

const PORT_MAX = 65_535;
const ADDRESS = /^(?:(?:\[(?<v6>[0-9A-Fa-f:.]+)\]|(?<name>[A-Za-z0-9.-]+)):)?(?<port>\d{1,5})$/;

/**
 * Parses the address of an HTTP server: `9100` on loopback, `192.0.2.1:9100`, `[::1]:9100`.
 * @throws BAD_VALUE for any other text.
 */
export function parseHttpAddress(text: string): HttpAddress {
  const groups = ADDRESS.exec(text)?.groups;
  const port = Number(groups?.["port"]);
  const host = groups?.["v6"] ?? groups?.["name"] ?? LOOPBACK;
  const isAddress = groups?.["v6"] === undefined || isIP(host) === 6;
  if (groups !== undefined && port <= PORT_MAX && isAddress) return { host, port };
  const expected = "a port, or an address with one such as 192.0.2.1:9100 or [::1]:9100";
  throw mismatch("BAD_VALUE", "--http", expected, JSON.stringify(text));
}

/** Whether a name or address always means the machine on which it is used. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || (isIPv4(host) && host.startsWith("127."));
}

/** Writes an address as the beginning of a URL. */
export function urlOf({ host, port }: HttpAddress): string {
  return `http://${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
}
