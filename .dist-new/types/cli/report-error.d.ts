import { type ErrorCode, type PserverError } from "../protocol/errors.ts";
import type { Paint } from "./output/colors.ts";
/** What the exit codes of `pserver` mean; the help of the command prints this table. */
export declare const EXIT: {
    readonly ok: 0;
    readonly failure: 1;
    readonly unreachable: 2;
    readonly invalidInput: 3;
    readonly refused: 4;
    readonly files: 6;
    readonly unknownOutcome: 7;
    readonly badArguments: 128;
    /** The code that shells give to a process that Ctrl-C ends: 128 and the number of SIGINT. */
    readonly interrupted: 130;
};
/** One of the exit codes. */
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];
/** The line of the help for each exit code. */
export declare const EXIT_MEANINGS: Readonly<Record<ExitCode, string>>;
/** The exit code of each error code. */
export declare const EXIT_CODES: Readonly<Record<ErrorCode, ExitCode>>;
/** An error report: `pserver: CODE: message` and a hint, or one line of JSON. */
export interface ReportedError {
    readonly text: string;
    readonly exitCode: ExitCode;
}
/** How an error is reported. */
export interface ReportStyle {
    readonly json: boolean;
    readonly paint: Paint;
    /** The command that ended with the error; "" if it was not known yet. */
    readonly command: string;
    /** Columns of the terminal, if the error is printed on one. */
    readonly width?: number;
    /** Time of the error in ISO form, for a log. */
    readonly time?: string;
}
/** Returns the report of an error that a command ended with, and the exit code that goes with it. */
export declare function reportError(thrown: unknown, style: ReportStyle): ReportedError;
/** Writes `{"error":{code,message,details}}` on one line, with the `time` first if one is given. */
export declare function jsonError(error: PserverError, time?: string): string;
//# sourceMappingURL=report-error.d.ts.map