import { PserverError } from "./errors.ts";

/** Support for a broker's version: the best choice, or fully supported as well. */
export type BrokerSupport = "recommended" | "supported";

/** Major, minor and patch number. */
type Version = readonly [major: number, minor: number, patch: number];

const VERSION = /^v?(\d+)\.(\d+)\.(\d+)(?:[-+].*)?$/;

/**
 * First version that may be used. Before 2.10.28, and in 2.11.0 and 2.11.1, a record above 32 MiB is acknowledged and
 * lost; in a cluster of 2.10.28, a broker that was killed and started again may never catch up with its copies.
 */
const OLDEST: Version = [2, 11, 2];

/** The versions that may be used, for messages. */
const NEEDED = `nats-server ${OLDEST.join(".")} or newer, 2.12 recommended`;

/**
 * Returns how well a broker's version is supported: 2.12 is recommended; 2.11.2 and later are supported.
 * @throws BROKER_TOO_OLD for any other, or if `version` is not a version.
 */
export function checkBrokerVersion(version: string): BrokerSupport {
  const parsed = parseVersion(version);
  if (parsed === undefined || isBelow(parsed, OLDEST)) {
    throw new PserverError(
      "BROKER_TOO_OLD",
      `broker: expected ${NEEDED}; received ${parsed === undefined ? JSON.stringify(version) : version}`,
      { expected: NEEDED, received: version },
    );
  }
  return parsed[0] === 2 && parsed[1] === 12 ? "recommended" : "supported";
}

function parseVersion(text: string): Version | undefined {
  const match = VERSION.exec(text);
  if (match === null) return undefined;
  return [Number(match[1]), Number(match[2]), Number(match[3])];
}

function isBelow(version: Version, bound: Version): boolean {
  if (version[0] !== bound[0]) return version[0] < bound[0];
  if (version[1] !== bound[1]) return version[1] < bound[1];
  return version[2] < bound[2];
}
