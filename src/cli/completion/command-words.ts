import type { Command } from "commander";

/** A flag that can be completed. */
export interface FlagWord {
  /** Such as `--job`. */
  readonly word: string;
  readonly description: string;
  readonly takesValue: boolean;
  /** The values it takes, where they are few. */
  readonly choices: readonly string[];
}

/** A sub-command that can be completed. */
export interface CommandWord {
  readonly word: string;
  readonly description: string;
  readonly flags: readonly FlagWord[];
  /** The words of its first argument, where they are few. */
  readonly choices: readonly string[];
}

/** What can be completed: read from the commands themselves, so that it cannot fall behind. */
export function commandWords(program: Command): CommandWord[] {
  return program.commands.map((command) => ({
    word: command.name(),
    description: command.description(),
    flags: [
      ...command.options.map(({ long, short, description, required, optional, argChoices }) => ({
        word: long ?? short ?? "",
        description,
        takesValue: required || optional,
        choices: argChoices ?? [],
      })),
      { word: "--help", description: "print the help", takesValue: false, choices: [] },
    ],
    choices: command.registeredArguments[0]?.argChoices ?? [],
  }));
}
