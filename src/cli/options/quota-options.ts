import type { Command } from "commander";
import { DECLARED_MAX } from "../../protocol/limits.ts";
import { parseSize, wholeNumber } from "./parse-values.ts";

/** Quotas of a new job and of each of its trainers; each is undefined unless given. */
export interface QuotaFlags {
  readonly quotaParameters?: number;
  readonly quotaBytes?: number;
  readonly trainerQuotaParameters?: number;
  readonly trainerQuotaBytes?: number;
}

/** Adds the flags of the quotas. */
export function addQuotaOptions(command: Command): Command {
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
      "the same for each trainer (default: as for the job)",
      wholeNumber(1, DECLARED_MAX),
    )
    .option(
      "--trainer-quota-bytes <size>",
      "the same for each trainer (default: as for the job)",
      parseSize,
    );
}
