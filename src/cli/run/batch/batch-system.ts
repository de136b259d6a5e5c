import { PserverError } from "../../../protocol/errors.ts";
import type { RunFlags } from "../run-flags.ts";
import type { ProgramAnswer } from "../run-program.ts";

/** A batch system: how it is asked for a job of trainers, and of one. */
export interface BatchSystem {
  /** The program that submits. */
  readonly submitProgram: string;
  /** Shell expression for the rank of a task. */
  readonly rank: string;
  /** Lines of the script that ask for what the flags say; `version` is what the program says of itself. */
  header(flags: RunFlags, version: string): string[];
  /** Arguments that submit a script, with the whole environment of the submission. */
  submitArguments(script: string): string[];
  /** The id of a job, from what the program printed; undefined if there is none in it. */
  jobId(printed: string): string | undefined;
  cancelCommand(jobId: string): readonly [program: string, ...args: string[]];
  queueCommand(jobId: string): readonly [program: string, ...args: string[]];
  /** Whether a job still waits or runs; undefined if the answer of `queueCommand` does not say. */
  isQueued(answer: ProgramAnswer): boolean | undefined;
}

const OPTION_VALUE = /^[A-Za-z0-9_.,:=@&|*()+-]{1,200}$/;

/**
 * A value as it may stand in a line of options, where nothing can be quoted in all systems.
 * @throws BAD_VALUE for anything that could be read as more than one value.
 */
export function optionValue(flag: string, value: string): string {
  if (OPTION_VALUE.test(value)) return value;
  const expected = "letters, digits and _ . , : = @ & | * ( ) + -";
  const message = `${flag}: expected ${expected}; received ${JSON.stringify(value)}`;
  throw new PserverError("BAD_VALUE", message, { expected, received: value });
}

/** The tasks of the array, `0-3%2` with a throttle; undefined for a single one, which needs no array. */
export function arrayRange({ instances, maxSimultaneous }: RunFlags): string | undefined {
  if (instances === 1) return undefined;
  const throttle = maxSimultaneous === undefined ? "" : `%${maxSimultaneous}`;
  return `0-${instances - 1}${throttle}`;
}
