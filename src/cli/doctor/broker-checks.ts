import { checkBrokerVersion } from "../../protocol/broker-version.ts";
import {
  HEADER_BYTES_MAX,
  PAYLOAD_BYTES_MIN,
  SINGLE_BLOCK_BYTES_MAX,
} from "../../protocol/limits.ts";
import { formatBytes } from "../output/amounts.ts";
import { type Check, fail, ok, warn } from "./check.ts";

/** With less, a parameter of 4 MiB is cut into blocks, so an update of it is no single transaction. */
const PAYLOAD_BYTES_WHOLE = SINGLE_BLOCK_BYTES_MAX + HEADER_BYTES_MAX;

/** The Node.js that runs this command; `needed` is the version of package.json's `engines`. */
export function checkNode(version: string, needed: readonly [number, number]): Check {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const enough = major > needed[0] || (major === needed[0] && minor >= needed[1]);
  if (enough) return ok("node", `Node.js ${version}`);
  const expected = needed.join(".");
  return fail(
    "node",
    `Node.js ${version}; ${expected} is needed`,
    `install Node.js ${expected} or newer`,
  );
}

/** The broker's version, which is new enough: else there is no connection to it. */
export function checkVersion(version: string): Check {
  return ok("broker version", `nats-server ${version}, ${checkBrokerVersion(version)}`);
}

/** The largest message the broker takes. */
export function checkMaxPayload(maxPayloadBytes: number): Check {
  const name = "max_payload";
  const size = formatBytes(maxPayloadBytes);
  const advice = "set max_payload: 8MB in the broker's configuration";
  if (maxPayloadBytes < PAYLOAD_BYTES_MIN) {
    return fail(name, `${size}; at least ${formatBytes(PAYLOAD_BYTES_MIN)} is needed`, advice);
  }
  if (maxPayloadBytes >= PAYLOAD_BYTES_WHOLE) return ok(name, size);
  const found = `${size}: parameters above ${formatBytes(maxPayloadBytes - HEADER_BYTES_MAX)} are cut`;
  return warn(name, `${found} into blocks, each updated by itself`, advice);
}
