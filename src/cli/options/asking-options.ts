import type { Command } from "commander";
import type { OutputFlags } from "../output/output.ts";
import { addJobOptions, addTrainerOption, type TrainerFlags } from "./connection-options.ts";
import { addOutputOptions } from "./output-options.ts";

/** Flags of a command that asks the hosts of a job and prints the answer. */
export interface AskingFlags extends TrainerFlags, OutputFlags {}

/** Adds the flags of such a command; `timeoutMs` is the default of `--timeout`. */
export function addAskingOptions(command: Command, timeoutMs: number): Command {
  return addOutputOptions(addTrainerOption(addJobOptions(command, timeoutMs)));
}
