import { CommanderError } from "commander";
import { makePaint, wantsColor } from "./output/colors.js";
import { messageWidth } from "./output/output.js";
import { createProgram } from "./program.js";
import { EXIT, reportError } from "./report-error.js";
/** Commands that only run as servers: their last message begins with the time, too. */
const SERVERS = ["up", "host", "run"];
/** Runs one command line, without the program's name; returns the exit code and never throws. */
export async function runCli(args, cliProcess) {
    const style = errorStyle(args, cliProcess);
    let exitCode = EXIT.ok;
    const context = {
        ...cliProcess,
        setExitCode: (code) => {
            exitCode = code;
        },
    };
    let command = "";
    try {
        const program = createProgram(context, style);
        program.hook("preAction", (_, action) => {
            command = action.name();
        });
        await program.parseAsync([...args], { from: "user" });
        return exitCode;
    }
    catch (error) {
        // Commander has printed the error. Help and version arrive as errors, too.
        if (error instanceof CommanderError)
            return error.exitCode === 0 ? EXIT.ok : EXIT.badArguments;
        const time = SERVERS.includes(command) ? { time: new Date().toISOString() } : {};
        const report = reportError(error, { ...style, command, ...time });
        cliProcess.stderr.write(`${report.text}\n`);
        return report.exitCode;
    }
}
/**
 * Decides how errors of a command line are reported. Some are reported before it is parsed, so its flags are
 * looked for here.
 */
export function errorStyle(args, { stderr, environment }) {
    // Arguments after -- belong to a trainer.
    const own = args.includes("--") ? args.slice(0, args.indexOf("--")) : args;
    const json = own.some((arg) => arg === "--json" || arg === "-j");
    const colored = wantsColor(stderr.isTTY === true, environment, own.includes("--no-color"));
    return { json, paint: makePaint(colored), command: "", width: messageWidth(stderr) };
}
//# sourceMappingURL=run-cli.js.map