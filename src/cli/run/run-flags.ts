import { setTimeout as delay } from "node:timers/promises";
import { InvalidArgumentError } from "commander";
import { mismatch, PserverError } from "../../protocol/errors.ts";
import type { BrokerFlags } from "../options/broker-options.ts";
import type { ConnectionFlags } from "../options/connection-options.ts";
import type { EtcdFlags, HostFlags } from "../options/host-options.ts";
import type { HttpFlags } from "../options/http-options.ts";
import type { OutputFlags } from "../output/output.ts";

/** Where trainers can be started. */
export const LAUNCHERS = ["local", "ssh", "slurm", "pbs"] as const;

/** One of {@link LAUNCHERS}. */
export type LauncherName = (typeof LAUNCHERS)[number];

/** Flags of `pserver run`. */
export interface RunFlags
  extends Omit<HostFlags, keyof EtcdFlags>,
    BrokerFlags,
    HttpFlags,
    ConnectionFlags,
    OutputFlags {
  readonly job: string;
  readonly instances: number;
  readonly trainer: string;
  readonly restarts: number;
  /** Values by name; undefined for a variable that trainers shall not have. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly torchEnv?: boolean;
  readonly devices?: readonly string[];
  readonly save?: string;
  /** Seconds. */
  readonly walltime?: number;

  readonly hosts?: number;
  readonly port?: number;
  readonly store?: string;
  readonly noToken?: boolean;

  readonly launcher: LauncherName;
  readonly advertise?: string;
  readonly machines?: string;
  readonly account?: string;
  readonly queue?: string;
  readonly constraint?: string;
  readonly gpus?: number;
  readonly maxSimultaneous?: number;
  readonly dryRun?: boolean;
}

/** Writes a flag as on the command line. */
export function flagOf(name: keyof RunFlags): string {
  return `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/** @throws BAD_VALUE if one of these flags is given, which the launcher does not have. */
export function refuseFlags(flags: RunFlags, names: readonly (keyof RunFlags)[]): void {
  const flagName = names.find((name) => flags[name] !== undefined);
  if (flagName === undefined) return;
  throw mismatch("BAD_VALUE", flagOf(flagName), "another --launcher with it", flags.launcher);
}

/** The longest delay of a timer of Node.js. */
const TIMER_MS_MAX = 2 ** 31 - 1;

const WALL_TIME = /^(?:(\d{1,3})-)?(\d{1,4}):([0-5]\d):([0-5]\d)$/;

/** Parses a wall time as batch systems write it: `12:00:00`, or `1-12:00:00` with days; returns seconds. */
export function parseWallTime(text: string): number {
  const match = WALL_TIME.exec(text);
  const [days = 0, hours = 0, minutes = 0, seconds = 0] = (match ?? []).slice(1).map((part) => {
    return Number(part ?? 0);
  });
  const total = ((days * 24 + hours) * 60 + minutes) * 60 + seconds;
  if (total > 0) return total;
  const expected = "a wall time such as 12:00:00 or 1-12:00:00";
  throw new InvalidArgumentError(`expected ${expected}; received ${JSON.stringify(text)}`);
}

/** Writes seconds as `HH:MM:SS`, which every batch system accepts; hours may be more than 24. */
export function formatWallTime(seconds: number): string {
  const parts = [seconds / 3600, (seconds / 60) % 60, seconds % 60];
  return parts.map((part) => String(Math.floor(part)).padStart(2, "0")).join(":");
}

/** Settles with ABORTED once the wall time has passed; never if there is none, or `signal` is aborted first. */
export async function wallTimeOver(
  seconds: number | undefined,
  signal: AbortSignal,
): Promise<PserverError> {
  if (seconds === undefined) return await new Promise(() => {});
  const endMs = performance.now() + seconds * 1000;
  try {
    for (let leftMs = seconds * 1000; leftMs > 0; leftMs = endMs - performance.now()) {
      await delay(Math.min(leftMs, TIMER_MS_MAX), undefined, { signal });
    }
  } catch {
    // Aborted: the trainers have ended before.
    return await new Promise(() => {});
  }
  return new PserverError("ABORTED", `the wall time of ${formatWallTime(seconds)} is over`);
}
