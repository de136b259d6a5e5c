import { Argument, Command } from "commander";
import { COMPLETE_NAMES, NAME_KINDS, type NameKind } from "../completion/command-words.ts";
import type { CliContext } from "../context.ts";
import { listJobs } from "../job/list-jobs.ts";
import { withAdmin } from "../job/open-job.ts";
import {
  addJobOptions,
  addTrainerOption,
  type TrainerFlags,
} from "../options/connection-options.ts";

/** Short, because a person waits at the prompt. */
const TIMEOUT_MS = 1_000;

/** Names offered at most. */
const NAMES_MAX = 1_000;

/**
 * The command behind the completion scripts: prints the names of one kind, one per line, of the job and
 * broker in the words of the command line. Prints nothing if they cannot be listed in time.
 */
export function registerCompleteNames(program: Command, context: CliContext): void {
  program
    .command(COMPLETE_NAMES, { hidden: true })
    .description("print names for the completion of a command line")
    .addArgument(new Argument("<kind>", "what to name").choices(NAME_KINDS))
    .argument("[words...]", "the words before, after --")
    .action(async (kind: NameKind, words: readonly string[]) => {
      const names = await namesOf(context, kind, words).catch(() => {
        // An error message would disturb the prompt.
        return [];
      });
      const typed = names.filter((name) => !/[\p{Cc}\p{Cf}]/u.test(name)).slice(0, NAMES_MAX);
      context.stdout.write(typed.map((name) => `${name}\n`).join(""));
    });
}

async function namesOf(
  context: CliContext,
  kind: NameKind,
  words: readonly string[],
): Promise<string[]> {
  const flags = flagsAmong(words);
  if (kind === "jobs") return await listJobs(context, flags);
  const { parameters } = await withAdmin(context, flags, (admin) => admin.statusAndParameters());
  return parameters.map(({ name }) => name);
}

/** The flags of a job among the words before the one that is being typed. */
function flagsAmong(words: readonly string[]): TrainerFlags {
  // A flag at the end has no value yet.
  const whole = words.at(-1)?.startsWith("-") ? words.slice(0, -1) : words;
  const command = addTrainerOption(addJobOptions(new Command(), TIMEOUT_MS))
    .allowUnknownOption()
    .allowExcessArguments()
    .exitOverride()
    .configureOutput({ writeErr: () => undefined });
  command.parse([...whole], { from: "user" });
  const flags = command.opts<TrainerFlags>();
  return { ...flags, timeout: TIMEOUT_MS };
}
