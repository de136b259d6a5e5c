import { Command } from "commander";
import { PserverError } from "../protocol/errors.ts";
import { registerAuth } from "./commands/auth.ts";
import { registerCompleteNames, registerCompletion } from "./commands/completion.ts";
import { registerDoctor } from "./commands/doctor.ts";
import { registerGet } from "./commands/get.ts";
import { registerArchive } from "./commands/history/archive.ts";
import { registerBackup } from "./commands/history/backup.ts";
import { registerBisect } from "./commands/history/bisect.ts";
import { registerBlame } from "./commands/history/blame.ts";
import { registerDiff } from "./commands/history/diff.ts";
import { registerFind } from "./commands/history/find.ts";
import { registerFork } from "./commands/history/fork.ts";
import { registerLedger } from "./commands/history/ledger.ts";
import { registerLog } from "./commands/history/log.ts";
import { registerPlot } from "./commands/history/plot.ts";
import { registerRecord } from "./commands/history/record.ts";
import { registerReplay } from "./commands/history/replay.ts";
import { registerRestore } from "./commands/history/restore.ts";
import { registerRewind } from "./commands/history/rewind.ts";
import { registerShow } from "./commands/history/show.ts";
import { registerVerify } from "./commands/history/verify.ts";
import { registerWhatIf } from "./commands/history/what-if.ts";
import { registerHost } from "./commands/host.ts";
import { registerJobs } from "./commands/jobs.ts";
import { registerLoad } from "./commands/load.ts";
import { registerLs } from "./commands/ls.ts";
import { registerRecover } from "./commands/recover.ts";
import { registerRemove } from "./commands/remove.ts";
import { registerRun } from "./commands/run.ts";
import { registerSave } from "./commands/save.ts";
import { registerSet } from "./commands/set.ts";
import { registerSetup } from "./commands/setup.ts";
import { registerStatus } from "./commands/status.ts";
import { registerUi } from "./commands/ui.ts";
import { registerUp } from "./commands/up.ts";
import { addHelp, type CliContext } from "./context.ts";
import type { Paint } from "./output/colors.ts";
import { HELP_COLUMNS } from "./output/help-text.ts";
import { messageWidth } from "./output/output.ts";
import { wrapLines } from "./output/wrap.ts";
import { packageVersion } from "./program-version.ts";
import { EXIT_MEANINGS, jsonError } from "./report-error.ts";

/** How errors of the command line are printed. */
export interface ErrorStyle {
  readonly json: boolean;
  readonly paint: Paint;
}

const DESCRIPTION = "A parameter server made of actors on NATS.";

/** Makes the program `pserver`; parsing runs the sub-command and throws errors of the command line. */
export function createProgram(context: CliContext, style: ErrorStyle): Command {
  const program = new Command("pserver")
    .description(DESCRIPTION)
    .version(packageVersion(), "-V, --version", "print the version")
    .helpOption("-h, --help", "print this help")
    .helpCommand("help [command]", "print the help of a command")
    // Wraps descriptions beside the longest option, too, in a terminal of 60 columns.
    .configureHelp({ minWidthToWrap: 20, subcommandTerm: commandTerm })
    .exitOverride()
    .configureOutput({
      getOutHelpWidth: () => Math.min(HELP_COLUMNS, messageWidth(context.stdout)),
      writeOut: (text) => context.stdout.write(wrapLines(text, messageWidth(context.stdout))),
      writeErr: (text) => context.stderr.write(text),
      outputError: (text, write) => write(`${wrongArguments(text, style)}\n`),
    });
  program.showHelpAfterError(
    style.json ? false : 'hint: "pserver help COMMAND" lists what it takes',
  );
  for (const [group, registers] of GROUPS) {
    program.commandsGroup(`${group}:`);
    for (const register of registers) register(program, context);
  }
  registerCompleteNames(program, context);
  addProgramHelp(program);
  return program;
}

/** The commands as the help lists them. */
const GROUPS: readonly (readonly [
  string,
  readonly ((program: Command, context: CliContext) => void)[],
])[] = [
  ["Serve", [registerUp, registerSetup, registerAuth, registerHost, registerRun]],
  [
    "Look at a job",
    [registerStatus, registerUi, registerLs, registerGet, registerJobs, registerDoctor],
  ],
  ["Change a model", [registerSet, registerSave, registerLoad, registerRemove]],
  [
    "Find out what happened",
    [
      registerLog,
      registerShow,
      registerFind,
      registerBlame,
      registerLedger,
      registerBisect,
      registerReplay,
      registerDiff,
      registerWhatIf,
      registerPlot,
    ],
  ],
  ["Go back and go on", [registerRewind, registerFork, registerRecover]],
  ["Move a whole job", [registerBackup, registerRestore]],
  ["Keep and check history", [registerArchive, registerRecord, registerVerify]],
  ["Shell", [registerCompletion]],
];

/** Returns how the list of commands shows one: with what it must be given. */
function commandTerm(command: Command): string {
  const needed = command.registeredArguments.filter(({ required }) => required);
  return [command.name(), ...needed.map((each) => `<${each.name()}>`)].join(" ");
}

function wrongArguments(text: string, { json, paint }: ErrorStyle): string {
  const message = withoutValues(text.replace(/^error: /, "").trim());
  if (json) return jsonError(new PserverError("BAD_VALUE", message));
  return `${paint("fail", "pserver:")} ${message}`;
}

/**
 * Returns commander's message without the values that it repeats, which may be passwords. Our own parsers say
 * what they received, as far as it may be shown.
 */
function withoutValues(message: string): string {
  return message
    .replace(/ argument '.*' is invalid\. (?=.*; received )/s, ": ")
    .replace(/^(unknown option '[^=']*)=.*'/s, "$1'");
}

function addProgramHelp(program: Command): void {
  const codes = Object.entries(EXIT_MEANINGS).map(
    ([code, meaning]) => `  ${code.padStart(3)}  ${meaning}`,
  );
  addHelp(program, {
    Output: [
      "  Data goes to stdout, messages and errors to stderr. With --json both are one JSON value a",
      '  line; an error is {"error":{"code","message","details"}} on stderr. NO_COLOR is respected.',
    ],
    "Exit codes": codes,
    Examples: [
      "  pserver up                          # a broker and a host on this machine",
      "  pserver status",
      "  pserver load model.safetensors && pserver ls",
    ],
  });
}
