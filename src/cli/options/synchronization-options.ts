import { type Command, Option } from "commander";
import { type Synchronization, toSynchronization } from "../../protocol/config/index.ts";
import { defined } from "../../protocol/defined.ts";
import { ensureError, PserverError } from "../../protocol/errors.ts";
import { MEMBERS_MAX } from "../../protocol/limits.ts";
import { wholeNumber } from "./parse-values.ts";

const STALENESS_MAX = 1_000_000;

/** How the trainers of a new job keep step; each is undefined unless given. */
export interface SynchronizationFlags {
  readonly sync?: Synchronization["mode"];
  readonly trainers?: number;
  readonly backups?: number;
  readonly reduce?: "mean" | "sum";
  readonly staleness?: number;
}

/** Flags that each mode of `--sync` requires, and allows. */
const OTHERS = {
  async: { needed: [], possible: [] },
  sync: { needed: ["trainers"], possible: ["backups", "reduce"] },
  ssp: { needed: ["trainers", "staleness"], possible: [] },
} as const;
const ALL_OTHERS = ["trainers", "backups", "reduce", "staleness"] as const;

/** Adds the flags; they are checked before the command starts. */
export function addSynchronizationOptions(command: Command): Command {
  return command
    .addOption(
      new Option(
        "--sync <mode>",
        "how trainers of a new job keep step: async: not at all; sync: one gradient of each is " +
          "applied together; ssp: the fastest waits for the slowest (default: async)",
      ).choices(Object.keys(OTHERS)),
    )
    .option(
      "--trainers <n>",
      "for sync and ssp: trainers that must have entered before a step ends",
      wholeNumber(1, MEMBERS_MAX),
    )
    .option(
      "--backups <n>",
      "for sync: additional trainers; a step does not wait for so many of the slowest (default: 0)",
      wholeNumber(0, MEMBERS_MAX),
    )
    .addOption(
      new Option(
        "--reduce <how>",
        "for sync: whether a step applies the mean or the sum of its gradients (default: mean)",
      ).choices(["mean", "sum"]),
    )
    .option(
      "--staleness <n>",
      "for ssp: steps that a trainer may be ahead of the slowest",
      wholeNumber(0, STALENESS_MAX),
    )
    .hook("preAction", (_program, action) => {
      try {
        toSynchronizationSetting(action.opts<SynchronizationFlags>());
      } catch (error) {
        action.error(`error: ${ensureError(error).message}`);
      }
    });
}

/**
 * The flags as a setting of the job; undefined if none is given.
 * @throws BAD_CONFIG for flags that do not belong together.
 */
export function toSynchronizationSetting(flags: SynchronizationFlags): Synchronization | undefined {
  const { sync: mode, trainers, backups, reduce, staleness } = flags;
  const given = ALL_OTHERS.filter((flag) => flags[flag] !== undefined);
  if (mode === undefined) {
    if (given.length === 0) return undefined;
    throw wrong(`expected --sync sync or ssp with ${list(given)}; received no --sync`);
  }
  const { needed, possible } = OTHERS[mode];
  const known: readonly string[] = [...needed, ...possible];
  const missing = needed.filter((flag) => flags[flag] === undefined);
  if (missing.length > 0) throw wrong(`--sync ${mode}: expected ${list(missing)}; received none`);
  const foreign = given.filter((flag) => !known.includes(flag));
  if (foreign.length > 0) {
    const expected = known.length === 0 ? "no other flag" : `only ${list(known)}`;
    throw wrong(`--sync ${mode}: expected ${expected}; received ${list(foreign)}`);
  }
  return toSynchronization(defined({ mode, trainers, backups, reduce, staleness }));
}

function list(flags: readonly string[]): string {
  return flags.map((flag) => `--${flag}`).join(" and ");
}

function wrong(message: string): PserverError {
  return new PserverError("BAD_CONFIG", message);
}
