import { Command, InvalidArgumentError, Option } from "commander";
import type { HostOptions } from "../../actors/host/host.ts";
import { SAVES_MAX, TRAINER_SAVES_MAX } from "../../actors/host/save-quotas.ts";
import type { EtcdSettings } from "../../actors/job/etcd-space.ts";
import {
  CONTRIBUTION_WEIGHTS,
  DILOCO_PRESETS,
  type DilocoInput,
  GRACE_STEPS_MAX,
  type Guard,
  LATE_DIVISORS,
  LATE_RULES,
  LATE_VERSIONS_MAX,
  MERGES,
  ROUND_MS_MAX,
  SYNCHRONIZATION_ENTRIES,
  type Synchronization,
  toSynchronization,
} from "../../protocol/config/index.ts";
import { ensureError, mismatch, PserverError } from "../../protocol/errors.ts";
import { defined } from "../../protocol/fields.ts";
import { DECLARED_MAX, MEMBERS_MAX, SHARDS_DEFAULT, SHARDS_MAX } from "../../protocol/limits.ts";
import {
  finiteNumber,
  parseAdvertised,
  parseEndpoints,
  parseGuard,
  parsePrefix,
  parseSize,
  sizeOfAtLeast,
  wholeNumber,
} from "./parse-values.ts";

/** Flags of a host that keeps its leases in etcd; each is undefined unless given. */
export interface EtcdFlags {
  readonly etcd?: readonly string[];
  readonly etcdPrefix?: string;
  readonly advertise?: readonly string[];
}

/** Adds the flags for the address of etcd and what is published there. */
function addEtcdOptions(command: Command): Command {
  return addEtcdPlaceOptions(command).option(
    "--advertise <urls>",
    "addresses of the broker for trainers, published in etcd (default: those of this host)",
    parseAdvertised,
  );
}

/** Adds the flags for the address of etcd. */
export function addEtcdPlaceOptions(command: Command): Command {
  return command
    .option(
      "--etcd <urls>",
      "keep the leases of the job in this etcd, http://host:2379,…, and publish its hosts there",
      parseEndpoints,
    )
    .option(
      "--etcd-prefix <prefix>",
      "prefix of all keys in etcd, a different one for each job (default: none)",
      parsePrefix,
    );
}

/**
 * Reads the flags as a host's setting; returns undefined without `--etcd`.
 * @throws BAD_VALUE for the other flags without it.
 */
export function toEtcdSetting(flags: EtcdFlags): EtcdSettings | undefined {
  const { etcd, etcdPrefix, advertise } = flags;
  if (etcd !== undefined) {
    return { endpoints: etcd, ...defined({ prefix: etcdPrefix, advertise }) };
  }
  const name = etcdPrefix === undefined ? "--advertise" : "--etcd-prefix";
  if (etcdPrefix === undefined && advertise === undefined) return undefined;
  throw mismatch("BAD_VALUE", name, "--etcd with it", "none");
}

/** Quotas of a new job and of each of its trainers; each is undefined unless given. */
interface QuotaFlags {
  readonly quotaParameters?: number;
  readonly quotaBytes?: number;
  readonly trainerQuotaParameters?: number;
  readonly trainerQuotaBytes?: number;
}

/** Adds the flags of the quotas. */
function addQuotaOptions(command: Command): Command {
  return command
    .option(
      "--quota-parameters <n>",
      `most parameters that may be declared in a new job (default: ${DECLARED_MAX})`,
      wholeNumber(1, DECLARED_MAX),
    )
    .option(
      "--quota-bytes <size>",
      "most values and optimizer state that may be declared in a new job (default: 1TiB)",
      parseSize,
    )
    .option(
      "--trainer-quota-parameters <n>",
      `the same for each trainer (default: ${DECLARED_MAX / 4}, if the job may have as many)`,
      wholeNumber(1, DECLARED_MAX),
    )
    .option(
      "--trainer-quota-bytes <size>",
      "the same for each trainer (default: three quarters of what the shards can hold, if the job may have as much)",
      parseSize,
    );
}

const STALENESS_MAX = 1_000_000;

/** How the trainers of a new job keep step; each is undefined unless given. */
export interface SynchronizationFlags extends DilocoInput {
  readonly sync?: Synchronization["mode"];
  readonly trainers?: number;
  readonly backups?: number;
  readonly reduce?: "mean" | "sum";
  readonly staleness?: number;
}

/** Flags that each mode of `--sync` requires. */
const NEEDED = {
  async: [],
  sync: ["trainers"],
  ssp: ["trainers", "staleness"],
  diloco: [],
} as const satisfies Record<Synchronization["mode"], readonly (keyof SynchronizationFlags)[]>;
const FLAGS = [...new Set(Object.values(SYNCHRONIZATION_ENTRIES).flat())];

/** Adds the flags that say how trainers keep step; they are checked before the command starts. */
function addSynchronizationOptions(command: Command): Command {
  return command
    .addOption(
      new Option(
        "--sync <mode>",
        "how trainers of a new job keep step: async: not at all; sync: one gradient of each is " +
          "applied together; ssp: the fastest waits for the slowest; diloco: they train by themselves " +
          "and contribute to fragments, whose rounds close with a quorum (default: async)",
      ).choices(Object.keys(NEEDED)),
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
    .addOption(
      new Option(
        "--preset <name>",
        "for diloco: fill the settings that are not given for federated averaging: fedavg waits for all that " +
          "were drawn, fedbuff for any that are first",
      ).choices(DILOCO_PRESETS),
    )
    .option(
      "--quorum <n>",
      "for diloco: trainers that must have contributed before a round closes, or all that may if these are fewer (default: 1)",
      wholeNumber(1, MEMBERS_MAX),
    )
    .option(
      "--grace-margin <x>",
      "for diloco: share of the time left to trainers after a quorum for which a round waits for others (default: 1)",
      finiteNumber,
    )
    .option(
      "--grace-steps <n>",
      "for diloco: inner steps until a trainer adopts the result of its contribution (default: 2)",
      wholeNumber(0, GRACE_STEPS_MAX),
    )
    .option(
      "--grace-cap-ms <ms>",
      "for diloco: the longest grace, and the grace while no trainer has told its step time (default: 1000)",
      wholeNumber(0, ROUND_MS_MAX),
    )
    .option(
      "--min-interval-ms <ms>",
      "for diloco: the least time between two rounds of a fragment (default: 0)",
      wholeNumber(0, ROUND_MS_MAX),
    )
    .addOption(
      new Option(
        "--weights <what>",
        "for diloco: what a contribution weighs (default: tokens2/steps)",
      ).choices(CONTRIBUTION_WEIGHTS),
    )
    .addOption(
      new Option(
        "--merge <how>",
        "for diloco: the weighted mean, the radial-directional one, or a merge that bears wrong contributions: " +
          "median, trimmed-mean or krum (default: rda)",
      ).choices(MERGES),
    )
    .option(
      "--trim <x>",
      "for diloco: share of the contributions that trimmed-mean leaves out at each end, below 0.5 (default: 0.1)",
      finiteNumber,
    )
    .option(
      "--krum-faults <n>",
      "for diloco: wrong contributions that krum assumes in a round (default: as many as it can bear)",
      wholeNumber(0, MEMBERS_MAX),
    )
    .option(
      "--krum-keep <n>",
      "for diloco: contributions that krum takes the mean of (default: 1)",
      wholeNumber(1, MEMBERS_MAX),
    )
    .option(
      "--sample <x>",
      "for diloco: members drawn for each round of a fragment: below 1 a share, else a number (default: all)",
      finiteNumber,
    )
    .addOption(
      new Option(
        "--late <what>",
        "for diloco: whether contributions from an earlier version are left out, carried into the open round, or also " +
          "compared with that version's values, which are kept (default: drop)",
      ).choices(LATE_RULES),
    )
    .option(
      "--late-decay <x>",
      "for diloco with --late carry or rebase: divides a late weight by 1 + x · versions behind (default: 1)",
      finiteNumber,
    )
    .addOption(
      new Option(
        "--late-divisor <how>",
        "for diloco with --late carry or rebase: divide by that, or by its square root (default: linear)",
      ).choices(LATE_DIVISORS),
    )
    .option(
      "--late-versions <n>",
      "for diloco with --late rebase: earlier versions whose values are kept (default: 1)",
      wholeNumber(1, LATE_VERSIONS_MAX),
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
 * Reads the flags as a setting of the job; returns undefined if none is given.
 * @throws BAD_CONFIG for flags that do not belong together.
 */
function toSynchronizationSetting(flags: SynchronizationFlags): Synchronization | undefined {
  const { sync: mode } = flags;
  const givenFlags = FLAGS.filter((flag) => flags[flag] !== undefined);
  if (mode === undefined) {
    if (givenFlags.length === 0) return undefined;
    const modes = Object.entries(SYNCHRONIZATION_ENTRIES).filter(([, entries]) => {
      const all: readonly string[] = entries;
      return givenFlags.every((flag) => all.includes(flag));
    });
    const mode = modes.map(([name]) => name).join(" or ");
    throw wrong(
      `expected --sync${mode && ` ${mode}`} with ${list(givenFlags)}; received no --sync`,
    );
  }
  const known: readonly string[] = SYNCHRONIZATION_ENTRIES[mode];
  const missing = NEEDED[mode].filter((flag) => flags[flag] === undefined);
  if (missing.length > 0) throw wrong(`--sync ${mode}: expected ${list(missing)}; received none`);
  const foreign = givenFlags.filter((flag) => !known.includes(flag));
  if (foreign.length > 0) {
    const expected = known.length === 0 ? "no other flag" : `only ${list(known)}`;
    throw wrong(`--sync ${mode}: expected ${expected}; received ${list(foreign)}`);
  }
  const given = Object.fromEntries(givenFlags.map((flag) => [flag, flags[flag]]));
  return toSynchronization({ mode, ...given });
}

function list(flags: readonly string[]): string {
  const names = flags.map((flag) => flag.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`));
  return names.map((name) => `--${name}`).join(" and ");
}

function wrong(message: string): PserverError {
  return new PserverError("BAD_CONFIG", message);
}

const WORKERS_MAX = 256;

/** The most that the quotas of saved models accept: each save looks at all of them. */
const SAVES_QUOTA_MAX = 1_000_000;

/**
 * Minimum of `--journal-limit` in MiB: room for a record of a large block, and for the records stored during a
 * snapshot.
 */
const JOURNAL_LIMIT_MIN_MIB = 16;

/** The least that `--tape-limit` accepts: some messages for each of the most shards. */
const TAPE_LIMIT_MIN_MIB = 64;

/** Settings of a host and, on its first start, of its job; each is undefined unless given. */
export interface HostFlags extends SynchronizationFlags, EtcdFlags, QuotaFlags {
  /** A guard as text. */
  readonly guard?: string;
  readonly workers?: number;
  readonly shards?: number;
  readonly journal?: "file" | "memory";
  readonly journalLimit?: number;
  readonly tape?: "on" | "off";
  readonly tapeLimit?: number;
  readonly retain?: number;
  readonly memoryLimit?: number;
  readonly modelDir?: string;
  readonly quotaSaves?: number;
  readonly quotaSaveBytes?: number;
  readonly trainerQuotaSaves?: number;
  readonly trainerQuotaSaveBytes?: number;
  readonly acrossAccounts?: boolean;
}

/** Adds the flags of a host. The host knows their defaults, so flags that are not given are not passed on. */
export function addHostOptions(command: Command, modelDirectory: string): Command {
  return addJobHostOptions(addEtcdOptions(command), modelDirectory);
}

/** Adds the flags of a host that keeps its leases in the broker. */
export function addJobHostOptions(command: Command, modelDirectory: string): Command {
  return addSynchronizationOptions(addQuotaOptions(command))
    .option(
      "--guard <settings>",
      'what a new job does with gradients and contributions of unusual norm, as {"deviations":6,"action":"clip"}, ' +
        "unless a parameter says otherwise (default: apply them)",
      guardFlag,
    )
    .option(
      "--workers <n>",
      "worker threads of a host (default: the number of processors less one)",
      wholeNumber(1, WORKERS_MAX),
    )
    .option(
      "--shards <n>",
      `number of shards of a new job, which cannot be changed later (default: ${SHARDS_DEFAULT})`,
      wholeNumber(1, SHARDS_MAX),
    )
    .addOption(
      new Option(
        "--journal <kind>",
        "where a new job keeps its journals; those in memory are lost with the broker (default: file)",
      ).choices(["file", "memory"]),
    )
    .option(
      "--journal-limit <size>",
      "size limit of each journal of a new job (default: 2GiB, 256MiB in memory; less if the broker has less storage)",
      sizeOfAtLeast(JOURNAL_LIMIT_MIN_MIB),
    )
    .addOption(
      new Option(
        "--tape <on|off>",
        "whether a new job keeps a line about every update, for log, find and plot (default: on)",
      ).choices(["on", "off"]),
    )
    .option(
      "--tape-limit <size>",
      "size of these lines beyond which a new job drops the oldest (default: a quarter of all its journals' limits)",
      sizeOfAtLeast(TAPE_LIMIT_MIN_MIB),
    )
    .option(
      "--retain <size>",
      "history kept in the journal of each shard (default: 1GiB, 64MiB in memory)",
      parseSize,
    )
    .option(
      "--memory-limit <size>",
      "most memory for values in a host (default: what the system has free)",
      parseSize,
    )
    .option("--model-dir <dir>", `where models are saved (default: ${modelDirectory})`)
    .option(
      "--quota-saves <n>",
      `most models of the job below that directory (default: ${SAVES_MAX})`,
      wholeNumber(1, SAVES_QUOTA_MAX),
    )
    .option(
      "--quota-save-bytes <size>",
      "most bytes of these models (default: three quarters of what they take and the disk has free)",
      parseSize,
    )
    .option(
      "--trainer-quota-saves <n>",
      `most models that one trainer has saved there (default: ${TRAINER_SAVES_MAX}, if the job may have as many)`,
      wholeNumber(1, SAVES_QUOTA_MAX),
    )
    .option(
      "--trainer-quota-save-bytes <size>",
      "most bytes of these (default: half of what all take and the disk has free, if the job may have as much)",
      parseSize,
    )
    .option("--across-accounts", "also answer trainers in other accounts of the broker");
}

/** Checks a guard, and returns its text, which child processes get. */
function guardFlag(text: string): string {
  if (parseGuard(text) === "off")
    throw new InvalidArgumentError("expected the settings of a guard");
  return text;
}

/** Reads a flag that {@link guardFlag} has checked. */
function toGuardFlag(text: string | undefined): Guard | undefined {
  const guard = text === undefined ? undefined : parseGuard(text);
  return guard === "off" ? undefined : guard;
}

/** Writes the flags as arguments for a child process. */
export function hostArguments(flags: HostFlags): string[] {
  return addHostOptions(new Command(), "").options.flatMap((option) => {
    const value = flags[option.attributeName() as keyof HostFlags];
    if (value === undefined) return [];
    return value === true ? [option.flags] : [option.long ?? "", String(value)];
  });
}

/** Reads the flags as settings. The host chooses those that are not given. */
export function toHostSettings(
  flags: HostFlags & { readonly job: string },
): Omit<HostOptions, "connection"> {
  return {
    job: flags.job,
    ...defined({
      workers: flags.workers,
      shards: flags.shards,
      journal: flags.journal,
      journalBytesMax: flags.journalLimit,
      tape: flags.tape === undefined ? undefined : flags.tape === "on",
      tapeBytesMax: flags.tapeLimit,
      retainBytes: flags.retain,
      memoryLimitBytes: flags.memoryLimit,
      modelDirectory: flags.modelDir,
      savesMax: flags.quotaSaves,
      saveBytesMax: flags.quotaSaveBytes,
      trainerSavesMax: flags.trainerQuotaSaves,
      trainerSaveBytesMax: flags.trainerQuotaSaveBytes,
      acrossAccounts: flags.acrossAccounts,
      synchronization: toSynchronizationSetting(flags),
      guard: toGuardFlag(flags.guard),
      etcd: toEtcdSetting(flags),
      parametersMax: flags.quotaParameters,
      heldBytesMax: flags.quotaBytes,
      trainerParametersMax: flags.trainerQuotaParameters,
      trainerHeldBytesMax: flags.trainerQuotaBytes,
    }),
  };
}
