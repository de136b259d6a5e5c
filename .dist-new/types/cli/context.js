import { extname, join } from "node:path";
import { createInterface } from "node:readline";
import { PserverError } from "../protocol/errors.js";
import { fillSection, HELP_COLUMNS } from "./output/help-text.js";
import { Output } from "./output/output.js";
import { unlessAborted } from "./signals.js";
/** Opens the printer of a command that ends by itself. */
export function openOutput(context, flags) {
    return Output.open(context, context.environment, flags);
}
/**
 * Opens the printer of a command that serves: each message begins with the time, as in a log. Tells the process
 * that it is a server.
 */
export function openLog(context, flags) {
    context.onServer?.();
    return Output.open(context, context.environment, flags, () => new Date());
}
/**
 * Adds sections to the end of a command's help: titles, with text that is broken anew to the width of the terminal. The
 * lines of `Examples` are printed unchanged.
 */
export function addHelp(command, sections) {
    command.addHelpText("after", () => {
        const width = command.configureOutput().getOutHelpWidth?.() ?? HELP_COLUMNS;
        const texts = Object.entries(sections).map(([title, lines]) => {
            const shown = title === "Examples" ? lines : fillSection(lines, width);
            return `\n${title}:\n${shown.join("\n")}`;
        });
        return texts.join("\n");
    });
}
/**
 * Asks a person a question on the message stream; returns the line of the answer without blanks around
 * it, "" at the end of the input.
 * @throws the signal's reason at Ctrl-C.
 */
export async function askLine({ stdin, stderr, signal }, question) {
    // `terminal: false`: the terminal itself edits the line and turns Ctrl-C into a signal.
    const lines = createInterface({ input: stdin, terminal: false });
    try {
        stderr.write(`${question} `);
        const answer = new Promise((resolve) => {
            lines.once("line", resolve);
            lines.once("close", () => resolve(""));
        });
        return (await unlessAborted(signal, answer)).trim();
    }
    finally {
        lines.close();
    }
}
/**
 * Asks a person a yes-or-no question on the message stream. Anything but `y` or `yes`, and the end of the
 * input, means no.
 * @throws BAD_VALUE, naming `--yes`, if the input is no terminal; the signal's reason at Ctrl-C.
 */
export async function confirm(context, question) {
    if (context.stdin.isTTY !== true) {
        throw new PserverError("BAD_VALUE", `${question} Nobody can be asked here: give --yes`);
    }
    return /^y(es)?$/i.test(await askLine(context, `${question} [y/N]`));
}
/**
 * Returns the program and first arguments that start another `pserver`, whichever of the package's programs
 * runs now.
 */
export function thisCommand() {
    const main = `pserver${extname(import.meta.filename)}`;
    // Next to this file in the sources, and next to all chunks in the package.
    return [process.execPath, ...process.execArgv, join(import.meta.dirname, main)];
}
//# sourceMappingURL=context.js.map