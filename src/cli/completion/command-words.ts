import type { Command } from "commander";

/** The hidden command that completion scripts ask for names. */
export const COMPLETE_NAMES = "complete-names";

/** Kinds of names that the broker or the hosts can list. */
export const NAME_KINDS = ["jobs", "parameters"] as const;

/** One of {@link NAME_KINDS}. */
export type NameKind = (typeof NAME_KINDS)[number];

/** A flag that can be completed. */
export interface FlagWord {
  /** Such as `--job`. */
  readonly word: string;
  readonly description: string;
  readonly takesValue: boolean;
  /** The values it takes, where they are few. */
  readonly choices: readonly string[];
  /** The kind of names that it takes, if it takes names. */
  readonly names: NameKind | undefined;
}

/** A sub-command that can be completed. */
export interface CommandWord {
  readonly word: string;
  readonly description: string;
  readonly flags: readonly FlagWord[];
  /** The words of its first argument, where they are few. */
  readonly choices: readonly string[];
  /** The kind of names that its first argument is one of, if it is a name. */
  readonly names: NameKind | undefined;
}

/** The kind of names that arguments and flags take. */
const NAMED: Readonly<Record<string, NameKind>> = {
  name: "parameters",
  job: "jobs",
  "--job": "jobs",
  "--param": "parameters",
};

/** The words that can be completed, read from the commands themselves. */
export function commandWords(program: Command): CommandWord[] {
  const shown = program.commands.filter((command) => command.name() !== COMPLETE_NAMES);
  return shown.map((command) => ({
    word: command.name(),
    description: command.description(),
    flags: [
      ...command.options.map(({ long, short, description, required, optional, argChoices }) => ({
        word: long ?? short ?? "",
        description,
        takesValue: required || optional,
        choices: argChoices ?? [],
        names: NAMED[long ?? ""],
      })),
      {
        word: "--help",
        description: "print the help",
        takesValue: false,
        choices: [],
        names: undefined,
      },
    ],
    choices: command.registeredArguments[0]?.argChoices ?? [],
    names: NAMED[command.registeredArguments[0]?.name() ?? ""],
  }));
}
