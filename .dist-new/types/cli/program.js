import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Command } from "commander";
import { packageRoot } from "../broker/broker-config.js";
import { PserverError } from "../protocol/errors.js";
import { registerCompleteNames, registerCompletion } from "./commands/completion.js";
import { registerDoctor } from "./commands/doctor.js";
import { registerGet } from "./commands/get.js";
import { registerArchive } from "./commands/history/archive.js";
import { registerBisect } from "./commands/history/bisect.js";
import { registerBlame } from "./commands/history/blame.js";
import { registerDiff } from "./commands/history/diff.js";
import { registerFind } from "./commands/history/find.js";
import { registerFork } from "./commands/history/fork.js";
import { registerLog } from "./commands/history/log.js";
import { registerPlot } from "./commands/history/plot.js";
import { registerRecord } from "./commands/history/record.js";
import { registerReplay } from "./commands/history/replay.js";
import { registerRewind } from "./commands/history/rewind.js";
import { registerShow } from "./commands/history/show.js";
import { registerVerify } from "./commands/history/verify.js";
import { registerWhatIf } from "./commands/history/what-if.js";
import { registerHost } from "./commands/host.js";
import { registerJobs } from "./commands/jobs.js";
import { registerLoad } from "./commands/load.js";
import { registerLs } from "./commands/ls.js";
import { registerRecover } from "./commands/recover.js";
import { registerRemove } from "./commands/remove.js";
import { registerRun } from "./commands/run.js";
import { registerSave } from "./commands/save.js";
import { registerSet } from "./commands/set.js";
import { registerSetup } from "./commands/setup.js";
import { registerStatus } from "./commands/status.js";
import { registerUp } from "./commands/up.js";
import { addHelp } from "./context.js";
import { HELP_COLUMNS } from "./output/help-text.js";
import { messageWidth } from "./output/output.js";
import { wrapLines } from "./output/wrap.js";
import { EXIT_MEANINGS, jsonError } from "./report-error.js";
const DESCRIPTION = "A parameter server made of actors on NATS.";
/** Makes the program `pserver`; parsing runs the sub-command and throws errors of the command line. */
export function createProgram(context, style) {
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
    program.showHelpAfterError(style.json ? false : 'hint: "pserver help COMMAND" lists what it takes');
    for (const [group, registers] of GROUPS) {
        program.commandsGroup(`${group}:`);
        for (const register of registers)
            register(program, context);
    }
    registerCompleteNames(program, context);
    addProgramHelp(program);
    return program;
}
/** The commands as the help lists them. */
const GROUPS = [
    ["Serve", [registerUp, registerSetup, registerHost, registerRun]],
    ["Look at a job", [registerStatus, registerLs, registerGet, registerJobs, registerDoctor]],
    ["Change a model", [registerSet, registerSave, registerLoad, registerRemove]],
    [
        "Find out what happened",
        [
            registerLog,
            registerShow,
            registerFind,
            registerBlame,
            registerBisect,
            registerReplay,
            registerDiff,
            registerWhatIf,
            registerPlot,
        ],
    ],
    ["Go back and go on", [registerRewind, registerFork, registerRecover]],
    ["Keep and check history", [registerArchive, registerRecord, registerVerify]],
    ["Shell", [registerCompletion]],
];
/** Returns how the list of commands shows one: with what it must be given. */
function commandTerm(command) {
    const needed = command.registeredArguments.filter(({ required }) => required);
    return [command.name(), ...needed.map((each) => `<${each.name()}>`)].join(" ");
}
function wrongArguments(text, { json, paint }) {
    const message = withoutValues(text.replace(/^error: /, "").trim());
    if (json)
        return jsonError(new PserverError("BAD_VALUE", message));
    return `${paint("fail", "pserver:")} ${message}`;
}
/**
 * Returns commander's message without the values that it repeats, which may be passwords. Our own parsers say
 * what they received, as far as it may be shown.
 */
function withoutValues(message) {
    return message
        .replace(/ argument '.*' is invalid\. (?=.*; received )/s, ": ")
        .replace(/^(unknown option '[^=']*)=.*'/s, "$1'");
}
function addProgramHelp(program) {
    const codes = Object.entries(EXIT_MEANINGS).map(([code, meaning]) => `  ${code.padStart(3)}  ${meaning}`);
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
function packageVersion() {
    const text = readFileSync(join(packageRoot(), "package.json"), "utf8");
    const { version } = JSON.parse(text);
    return version;
}
//# sourceMappingURL=program.js.map