import { PserverError } from "../protocol/errors.ts";

/** Support for a broker's version: the best choice, fully supported, or working with gaps. */
export type BrokerSupport = "recommended" | "supported" | "warned";

/** Major, minor and patch number. */
type Version = readonly [major: number, minor: number, patch: number];

const VERSION = /^v?(\d+)\.(\d+)\.(\d+)(?:[-+].*)?$/;

/** First version with the consumer API that nats.js uses. */
const OLDEST: Version = [2, 9, 4];

/** First version with the setting that syncs each record. */
const SYNC_INTERVAL: Version = [2, 10, 0];

/** Gaps of old brokers and the versions that have them; the reasons are in docs/operations.md. */
const GAPS: readonly { readonly lacks: (version: Version) => boolean; readonly text: string }[] = [
  {
    lacks: (version) => isBelow(version, [2, 9, 12]),
    text: "a filtered purge makes consumers of a wider filter skip messages",
  },
  {
    lacks: (version) => isBelow(version, [2, 9, 15]),
    text: "a purge forgets which delivered messages wait for their acknowledgement",
  },
  {
    lacks: (version) => isBelow(version, [2, 9, 21]),
    text: "compare-and-swap races in a cluster: run a single node only",
  },
  {
    lacks: (version) => isBelow(version, SYNC_INTERVAL),
    text: "no sync_interval, and filled files are never synced: acknowledged updates survive the crash of a process, not a power loss",
  },
  {
    lacks: lacksRecordLimit,
    text: "a record above 32 MiB is acknowledged and then lost",
  },
  {
    lacks: (version) => isBelow(version, [2, 10, 28]),
    text: "security fixes of later releases",
  },
];

/**
 * Whether a broker of this version may be used: 2.12 is recommended; 2.10.28 and later of 2.10,
 * 2.11.2 and later are supported; any other from 2.9.4 on is `"warned"`: {@link brokerLacks}
 * names why.
 * @throws BROKER_TOO_OLD below 2.9.4, or if `version` is not a version.
 */
export function checkBrokerVersion(version: string): BrokerSupport {
  const parsed = parseVersion(version);
  if (parsed === undefined || isBelow(parsed, OLDEST)) {
    const expected = `nats-server ${OLDEST.join(".")} or newer, 2.12 recommended`;
    throw new PserverError(
      "BROKER_TOO_OLD",
      `expected ${expected}; received ${parsed === undefined ? JSON.stringify(version) : version}`,
      { expected, received: version },
    );
  }
  if (lacksRecordLimit(parsed)) return "warned";
  return parsed[0] === 2 && parsed[1] === 12 ? "recommended" : "supported";
}

/**
 * Checks that a broker of this version can sync each record to disk before it acknowledges it.
 * @throws BROKER_TOO_OLD below 2.10.
 */
export function checkDurable(version: string): void {
  const parsed = parseVersion(version);
  if (parsed !== undefined && !isBelow(parsed, SYNC_INTERVAL)) return;
  const expected = `nats-server ${SYNC_INTERVAL.join(".")} or newer for durable storage`;
  throw new PserverError("BROKER_TOO_OLD", `expected ${expected}; received ${version}`, {
    expected,
    received: version,
  });
}

/** Known gaps of a broker of this version, one clause each. */
export function brokerLacks(version: string): readonly string[] {
  const parsed = parseVersion(version);
  if (parsed === undefined) return [];
  return GAPS.filter((gap) => gap.lacks(parsed)).map((gap) => gap.text);
}

/** Whether the limit of a record's size is missing; it was added in two release lines. */
function lacksRecordLimit(version: Version): boolean {
  if (isBelow(version, [2, 10, 28])) return true;
  return !isBelow(version, [2, 11, 0]) && isBelow(version, [2, 11, 2]);
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
