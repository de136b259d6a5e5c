import { mismatch } from "../../protocol/mismatch.ts";
import type { ConnectionFlags } from "../options/connection-options.ts";
import type { EtcdFlags } from "../options/etcd-options.ts";
import type { HostFlags } from "../options/host-options.ts";
import type { OutputFlags } from "../output/output.ts";

/** Where trainers can be started. */
export const LAUNCHERS = ["local", "ssh", "slurm", "pbs"] as const;

/** One of {@link LAUNCHERS}. */
export type LauncherName = (typeof LAUNCHERS)[number];

/** Flags of `pserver run`. */
export interface RunFlags extends Omit<HostFlags, keyof EtcdFlags>, ConnectionFlags, OutputFlags {
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
  readonly durable?: boolean;

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

/** A flag as it is written on the command line. */
export function flagOf(name: keyof RunFlags): string {
  return `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/** @throws BAD_VALUE if one of these flags is given, which the launcher does not have. */
export function refuseFlags(flags: RunFlags, names: readonly (keyof RunFlags)[]): void {
  const given = names.find((name) => flags[name] !== undefined);
  if (given === undefined) return;
  throw mismatch("BAD_VALUE", flagOf(given), "another --launcher with it", flags.launcher);
}
