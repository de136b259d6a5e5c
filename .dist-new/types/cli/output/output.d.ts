import type { Writable } from "node:stream";
import { type Paint } from "./colors.ts";
/** Shows the progress of long work on one line that is overwritten. */
export declare class Progress {
    #private;
    /**
     * Prepares a line of progress. Without `write`, if the output is no terminal, every call does nothing. `show`
     * prints amounts of what is done, by default bytes.
     */
    constructor(what: string, write: ((text: string) => void) | undefined, now?: () => number, show?: (amount: number) => string);
    /** Updates the amounts done and in all; redraws at most ten times a second. */
    update(done: number, total?: number): void;
    /** Shows the elapsed time until `work` ends, then removes the line. */
    during<T>(work: Promise<T>): Promise<T>;
    /** Shows what `work` reports as done and in all until it ends, then removes the line. */
    reported<T>(work: (onProgress: (done: number, total: number) => void) => Promise<T>): Promise<T>;
    /** Removes the line, so that messages can follow. */
    clear(): void;
}
/** A stream that may be a terminal. */
export type OutputStream = Writable & {
    readonly isTTY?: boolean;
    readonly columns?: number;
};
/** Flags of every command that say how it prints. */
export interface OutputFlags {
    readonly json?: boolean;
    /** False with `--no-color`. */
    readonly color?: boolean;
}
/**
 * Prints data on one stream and messages for people on the other. Control sequences are escaped here,
 * wherever they come from, except for colours where text may be coloured.
 */
export declare class Output {
    #private;
    /** Whether data is to be JSON, one value a line. */
    readonly json: boolean;
    /** Styles text for the data stream. */
    readonly paint: Paint;
    /** Columns for lines of data; infinite if not known. */
    readonly width: number;
    private constructor();
    /**
     * Opens an output on two streams. With `clock` messages and warnings begin with the time, in ISO form: they
     * are a log.
     */
    static open({ stdout, stderr }: {
        readonly stdout: OutputStream;
        readonly stderr: OutputStream;
    }, environment: Readonly<Record<string, string | undefined>>, flags: OutputFlags, clock?: () => Date): Output;
    /** Prints lines of data; names in coloured ones must be `visible` already. */
    lines(lines: readonly string[]): void;
    /** Prints one JSON value on one line of data. */
    value(value: unknown): void;
    /**
     * Prints chunks of data unchanged, no faster than the reader takes them.
     * @throws the signal's reason if it is aborted while the reader takes nothing.
     */
    stream(chunks: Iterable<string | Uint8Array>, signal: AbortSignal): Promise<void>;
    /** Prints a message for people; nothing with `--json`. */
    message(text: string): void;
    /** Prints a warning for people, with `--json` as an object on the message stream. */
    warning(text: string): void;
    /**
     * Shows the progress of long work on the message stream; does nothing if that is no terminal. `show` prints
     * amounts of what is done, by default bytes.
     */
    progress(what: string, show?: (amount: number) => string): Progress;
}
/** Returns the columns of a terminal; infinite for any other stream, which programs may read. */
export declare function messageWidth({ isTTY, columns }: OutputStream): number;
//# sourceMappingURL=output.d.ts.map