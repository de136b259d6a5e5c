import { mismatch } from "../../../protocol/mismatch.ts";
import type { RunFlags } from "../run-flags.ts";
import type { ProgramAnswer } from "../run-program.ts";

/** Commands of a batch system. */
export interface BatchSystem {
  /** The program that submits. */
  readonly submitProgram: string;
  /** Shell expression for the rank of a task. */
  readonly rank: string;
  /** Lines of the script for the resources in the flags; `version` is the output of `--version`. */
  header(flags: RunFlags, version: string): string[];
  /** Arguments that submit a script, with the whole environment of the submission. */
  submitArguments(script: string): string[];
  /** The id of a job in the output of the submission; undefined if there is none. */
  jobId(printed: string): string | undefined;
  cancelCommand(jobId: string): readonly [program: string, ...args: string[]];
  queueCommand(jobId: string): readonly [program: string, ...args: string[]];
  /** Whether a job still waits or runs; undefined if the answer of `queueCommand` does not say. */
  isQueued(answer: ProgramAnswer): boolean | undefined;
}

const OPTION_VALUE = /^[A-Za-z0-9_.,:=@&|*()+-]{1,200}$/;

/**
 * Checks a value for a line of options, where quoting differs between the systems.
 * @throws BAD_VALUE for anything that could be read as more than one value.
 */
export function optionValue(flag: string, value: string): string {
  if (OPTION_VALUE.test(value)) return value;
  const expected = "letters, digits and _ . , : = @ & | * ( ) + -";
  throw mismatch("BAD_VALUE", flag, expected, JSON.stringify(value));
}

/** The tasks of the array, `0-3%2` with a throttle; undefined for a single one, which needs no array. */
export function arrayRange({ instances, maxSimultaneous }: RunFlags): string | undefined {
  if (instances === 1) return undefined;
  const throttle = maxSimultaneous === undefined ? "" : `%${maxSimultaneous}`;
  return `0-${instances - 1}${throttle}`;
}
