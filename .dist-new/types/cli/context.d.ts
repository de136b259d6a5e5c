import type { Readable } from "node:stream";
import type { Command } from "commander";
import { Output, type OutputFlags, type OutputStream } from "./output/output.ts";
/** The stream from which answers to questions are read; questions are asked only if it is a terminal. */
type InputStream = Readable & {
    readonly isTTY?: boolean;
};
/** The process that a command runs in. */
export interface CliProcess {
    readonly stdin: InputStream;
    readonly stdout: OutputStream;
    readonly stderr: OutputStream;
    readonly environment: Readonly<Record<string, string | undefined>>;
    /** Aborted by the first Ctrl-C or SIGTERM. */
    readonly signal: AbortSignal;
    /**
     * Called by a command that serves: the process then lets it stop in order when its output has no reader any
     * more.
     */
    readonly onServer?: () => void;
}
/** Dependencies of a command. */
export interface CliContext extends CliProcess {
    /** Sets the exit code of a command that does not throw: one of `EXIT`, or a trainer's. */
    setExitCode(code: number): void;
}
/** Opens the printer of a command that ends by itself. */
export declare function openOutput(context: CliContext, flags: OutputFlags): Output;
/**
 * Opens the printer of a command that serves: each message begins with the time, as in a log. Tells the process
 * that it is a server.
 */
export declare function openLog(context: CliContext, flags: OutputFlags): Output;
/**
 * Adds sections to the end of a command's help: titles, with text that is broken anew to the width of the terminal. The
 * lines of `Examples` are printed unchanged.
 */
export declare function addHelp(command: Command, sections: Readonly<Record<string, readonly string[]>>): void;
/**
 * Asks a person a question on the message stream; returns the line of the answer without blanks around
 * it, "" at the end of the input.
 * @throws the signal's reason at Ctrl-C.
 */
export declare function askLine({ stdin, stderr, signal }: Pick<CliContext, "stdin" | "stderr" | "signal">, question: string): Promise<string>;
/**
 * Asks a person a yes-or-no question on the message stream. Anything but `y` or `yes`, and the end of the
 * input, means no.
 * @throws BAD_VALUE, naming `--yes`, if the input is no terminal; the signal's reason at Ctrl-C.
 */
export declare function confirm(context: CliContext, question: string): Promise<boolean>;
/**
 * Returns the program and first arguments that start another `pserver`, whichever of the package's programs
 * runs now.
 */
export declare function thisCommand(): [program: string, ...args: string[]];
export {};
//# sourceMappingURL=context.d.ts.map