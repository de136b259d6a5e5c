import { Command, Option } from "commander";
import type { HostOptions } from "../../actors/host/host.ts";
import { defined } from "../../protocol/defined.ts";
import { SHARDS_DEFAULT, SHARDS_MAX } from "../../protocol/limits.ts";
import { addEtcdOptions, type EtcdFlags, toEtcdSetting } from "./etcd-options.ts";
import { parseSize, sizeOfAtLeast, wholeNumber } from "./parse-values.ts";
import { addQuotaOptions, type QuotaFlags } from "./quota-options.ts";
import {
  addSynchronizationOptions,
  type SynchronizationFlags,
  toSynchronizationSetting,
} from "./synchronization-options.ts";

const WORKERS_MAX = 256;

/** Room for a record of a large block, and for the records stored during a snapshot. */
const JOURNAL_LIMIT_MIN_MIB = 16;

/** Settings of a host and, on its first start, of its job; each is undefined unless given. */
export interface HostFlags extends SynchronizationFlags, EtcdFlags, QuotaFlags {
  readonly workers?: number;
  readonly shards?: number;
  readonly journal?: "file" | "memory";
  readonly journalLimit?: number;
  readonly tape?: "on" | "off";
  readonly retain?: number;
  readonly memoryLimit?: number;
  readonly modelDir?: string;
  readonly acrossAccounts?: boolean;
}

/** Adds the flags of a host. The host knows their defaults, so flags that are not given are not passed on. */
export function addHostOptions(command: Command, modelDirectory: string): Command {
  return addJobHostOptions(addEtcdOptions(command), modelDirectory);
}

/** As {@link addHostOptions}, for hosts that keep their leases in the broker. */
export function addJobHostOptions(command: Command, modelDirectory: string): Command {
  return addSynchronizationOptions(addQuotaOptions(command))
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
        "whether a new job keeps a line about every update for good, for log, find and plot (default: on)",
      ).choices(["on", "off"]),
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
    .option("--across-accounts", "also answer trainers in other accounts of the broker");
}

/** The flags as arguments for a child process. */
export function hostArguments(flags: HostFlags): string[] {
  return addHostOptions(new Command(), "").options.flatMap((option) => {
    const value = flags[option.attributeName() as keyof HostFlags];
    if (value === undefined) return [];
    return value === true ? [option.flags] : [option.long ?? "", String(value)];
  });
}

/** The flags as settings. The host chooses those that are not given. */
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
      retainBytes: flags.retain,
      memoryLimitBytes: flags.memoryLimit,
      modelDirectory: flags.modelDir,
      acrossAccounts: flags.acrossAccounts,
      synchronization: toSynchronizationSetting(flags),
      etcd: toEtcdSetting(flags),
      parametersMax: flags.quotaParameters,
      heldBytesMax: flags.quotaBytes,
      trainerParametersMax: flags.trainerQuotaParameters,
      trainerHeldBytesMax: flags.trainerQuotaBytes,
    }),
  };
}
