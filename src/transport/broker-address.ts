import { PserverError } from "../protocol/index.ts";
import { mismatch } from "../protocol/mismatch.ts";
import { showListed } from "./show-url.ts";

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
 * The addresses of one broker or cluster, from a list or from text with commas. Without a scheme an
 * address is `nats://`; in text with several, one with credentials must have its scheme.
 * @throws BAD_VALUE for anything else; the message shows no part of the credentials.
 */
export function parseBrokerAddresses(given: string | readonly string[]): BrokerAddress[] {
  const list = typeof given === "string" ? given.split(",") : given;
  return list.map((entry) => {
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
  const known = scheme === undefined || /^(?:nats|tls)$/i.test(scheme);
  if (match === null || !known || Number(port) > PORT_MAX) return undefined;
  return {
    server: scheme === undefined ? address : `${scheme}://${address}`,
    isTls: scheme?.toLowerCase() === "tls",
    ...(userInfo === "" ? {} : { userInfo }),
  };
}

/**
 * Whether the addresses of one broker or cluster ask for TLS.
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

/** The error for an invalid address; `shown`: the address without credentials. */
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
