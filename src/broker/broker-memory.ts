import { readFileSync } from "node:fs";
import { PserverError } from "../protocol/errors.ts";
import { totalMemoryBytes } from "../system/memory.ts";

/** Environment of a broker, or of the command that starts it. */
type Environment = Readonly<Record<string, string | undefined>>;

/** Share of the memory that there is which a broker keeps to by default. */
const MEMORY_SHARE = 1 / 4;

/** The least that a broker may be limited to: below it, it collects garbage all the time even without load. */
export const BROKER_MEMORY_MIN_MIB = 128;
const MIN_BYTES = BROKER_MEMORY_MIN_MIB * 1024 ** 2;

/**
 * By how many percent the broker's memory grows between two collections of garbage; Go's default is 100. Most of it are
 * blocks of streams, which cost a collection nothing.
 */
const GROWTH_PERCENT = 25;

/** What decides how much memory a broker uses. */
export interface BrokerMemory {
  /** The environment that the broker inherits: its `GOMEMLIMIT` and `GOGC` are kept. */
  readonly environment: Environment;
  /** The most that the broker shall use, whatever the environment says. */
  readonly limitBytes?: number | undefined;
  /** How many brokers the share of one is for: those of a cluster on this machine; 1 by default. */
  readonly brokers?: number | undefined;
  /** Bytes of memory that the broker shares with other processes; found out by default. */
  readonly totalBytes?: number;
}

/**
 * Makes the environment of a broker: nats-server is a Go program, whose runtime keeps to the limit in it. Without one
 * of the caller's it is a quarter of the memory that the machine or the control group has.
 * @throws BAD_VALUE for a limit of more than there is, or below {@link BROKER_MEMORY_MIN_MIB}.
 */
export function limitMemory({
  environment,
  limitBytes,
  brokers = 1,
  totalBytes = totalMemoryBytes(),
}: BrokerMemory): Environment {
  if (limitBytes !== undefined) checkLimit(limitBytes, totalBytes);
  const { GOMEMLIMIT: limit = "", GOGC: growth = "" } = environment;
  const share = Math.max(MIN_BYTES, Math.floor((totalBytes * MEMORY_SHARE) / brokers));
  const chosen = limitBytes ?? (limit === "" ? share : undefined);
  return {
    ...environment,
    GOGC: growth === "" ? String(GROWTH_PERCENT) : growth,
    GOMEMLIMIT: chosen === undefined ? limit : String(chosen),
  };
}

function checkLimit(limitBytes: number, totalBytes: number): void {
  if (limitBytes >= MIN_BYTES && limitBytes <= totalBytes) return;
  const expected = `${MIN_BYTES} to ${totalBytes} bytes, which the machine or its control group has`;
  throw new PserverError(
    "BAD_VALUE",
    `the broker's memory: expected ${expected}; received ${limitBytes}`,
    { expected: totalBytes, received: limitBytes },
  );
}

const UNITS: Readonly<Record<string, number>> = {
  "": 1,
  B: 1,
  KiB: 1024,
  MiB: 1024 ** 2,
  GiB: 1024 ** 3,
  TiB: 1024 ** 4,
};

/** Reads a limit as Go does; returns undefined for none, and for one that Go would not accept. */
export function parseGoLimit(text: string): number | undefined {
  const [, digits, unit = ""] = /^(\d+)([KMGT]iB|B)?$/.exec(text) ?? [];
  return digits === undefined ? undefined : Number(digits) * (UNITS[unit] ?? 1);
}

/** Memory of a process that was started earlier. */
export interface ProcessMemory {
  /** The limit that it keeps to; undefined for none. */
  readonly limitBytes: number | undefined;
  /** What it shares with other processes. */
  readonly totalBytes: number;
}

/** Reads what limits the memory of a broker on this machine; undefined if it belongs to another user, or has ended. */
export function brokerMemoryOf(pid: number): ProcessMemory | undefined {
  let variables: string[];
  try {
    variables = readFileSync(`/proc/${pid}/environ`, "utf8").split("\0");
  } catch {
    return undefined;
  }
  const limit = variables.find((variable) => variable.startsWith("GOMEMLIMIT="));
  return {
    limitBytes: parseGoLimit(limit?.slice("GOMEMLIMIT=".length) ?? ""),
    totalBytes: totalMemoryBytes(pid),
  };
}
