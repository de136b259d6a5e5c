import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { hostname, networkInterfaces } from "node:os";
import { mismatch } from "../../protocol/mismatch.ts";

/** The address at which others reach this machine, and the one to listen on for it. */
export interface ReachableAddress {
  readonly advertised: string;
  readonly listen: string;
}

const LOOPBACK = /^(?:127\.|::1$|localhost$)/;
const ADDRESS = /^[A-Za-z0-9.-]{1,255}$/;

/**
 * The address for other machines: the one given, else this machine's name if it resolves to more than
 * loopback, else its first address.
 * @throws BAD_VALUE if there is none, or the given one is neither a name nor an address.
 */
export async function reachableAddress(given: string | undefined): Promise<ReachableAddress> {
  const advertised = given ?? (await ownAddress());
  if (isIP(advertised) === 0 && !ADDRESS.test(advertised)) {
    const expected = "a name or an address without a port";
    throw mismatch("BAD_VALUE", "--advertise", expected, JSON.stringify(advertised));
  }
  if (isLoopback(advertised)) return { advertised, listen: advertised };
  return { advertised, listen: isIP(advertised) === 6 ? "::" : "0.0.0.0" };
}

/** Whether an address means the machine on which it is used. */
export function isLoopback(address: string): boolean {
  return LOOPBACK.test(address);
}

async function ownAddress(): Promise<string> {
  const name = hostname();
  const addresses = await lookup(name, { all: true }).catch(() => []);
  if (addresses.some(({ address }) => !isLoopback(address))) return name;
  const outer = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  const address = outer.find(({ internal, family }) => !internal && family === "IPv4")?.address;
  if (address !== undefined) return address;
  const expected = "the address at which other machines reach this one";
  throw mismatch("BAD_VALUE", "--advertise", expected, "none, and found none");
}
