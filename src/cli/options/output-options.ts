import type { Command } from "commander";

/** Adds the flags for the output of a command. */
export function addOutputOptions(command: Command): Command {
  return command
    .option("-j, --json", "print data, warnings and errors as JSON, one value a line")
    .option("--no-color", "no colours, as with the variable NO_COLOR");
}
