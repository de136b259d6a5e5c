import { accessSync, constants, statSync } from "node:fs";
import { basename, delimiter, join, resolve } from "node:path";
import type { PserverError } from "../../protocol/errors.ts";
import { mismatch } from "../../protocol/mismatch.ts";
import { quoteName } from "../../protocol/names.ts";
import type { RunFlags } from "./run-flags.ts";

/** What a trainer runs. */
export type TrainerCommand = readonly [program: string, ...args: string[]];

/** Interpreters: their first argument is a script, unless it is an option. */
const INTERPRETER =
  /^(?:python(?:\d(?:\.\d+)?)?|pypy3?|node|bash|sh|dash|perl|ruby|Rscript|julia)$/;

/** The script that a command runs: an interpreter's first argument, else the program itself. */
export function scriptOf([program, first]: TrainerCommand): string {
  const isScript = first !== undefined && !first.startsWith("-");
  return isScript && INTERPRETER.test(basename(program)) ? first : program;
}

/**
 * Checks that the program of a command can be found, and its script.
 * @throws BAD_VALUE if it cannot.
 */
export function checkCommand(command: TrainerCommand, path: string | undefined): void {
  const [program] = command;
  if (findExecutable(program, path) === undefined) {
    const expected = program.includes("/") ? "an executable file" : "a program on the PATH";
    throw badCommand(expected, program);
  }
  const script = scriptOf(command);
  if (script !== program) checkScript(script);
}

/** @throws BAD_VALUE if there is no such file. */
export function checkScript(script: string): void {
  if (!isFile(script)) throw badCommand("a script that exists", script);
}

/**
 * Checks that the program that a launcher needs can be found. `--dry-run` needs none.
 * @throws BAD_VALUE if it is missing.
 */
export function checkProgram(
  { launcher, dryRun }: RunFlags,
  program: string,
  environment: Readonly<Record<string, string | undefined>>,
): void {
  if (dryRun === true || findExecutable(program, environment["PATH"]) !== undefined) return;
  const expected = `${program} on the PATH`;
  throw mismatch("BAD_VALUE", `--launcher ${launcher}`, expected, "none");
}

/** The path of a program as a shell finds it; undefined if there is none. */
export function findExecutable(program: string, path = ""): string | undefined {
  if (program.includes("/")) return isExecutable(resolve(program)) ? resolve(program) : undefined;
  const candidates = path.split(delimiter).map((directory) => join(directory, program));
  return candidates.find(isExecutable);
}

function badCommand(expected: string, received: string): PserverError {
  return mismatch("BAD_VALUE", "command", expected, quoteName(received));
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return isFile(path);
  } catch {
    // It does not exist, or this user may not run it.
    return false;
  }
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true;
}
