import type { Readable } from "node:stream";
import type { OutputStream } from "../output/output.ts";
/** The longest line that is not cut. */
export declare const LINE_BYTES_MAX: number;
/**
 * Cuts bytes into lines, without their ends: LF, CR LF, or CR alone as progress bars write it. A line that is
 * too long is cut into several, between characters of UTF-8.
 */
export declare class LineSplitter {
    #private;
    constructor(bytesMax?: number);
    /** Returns the lines that `chunk` ends. */
    push(chunk: Buffer): Buffer[];
    /** Returns the bytes after the last end of a line, if there are any. */
    end(): Buffer[];
}
/** Which of a trainer's two streams a line came from. */
export type StreamName = "stdout" | "stderr";
/** How the output of trainers is shown. */
export interface TrainerOutputOptions {
    readonly stdout: OutputStream;
    readonly stderr: OutputStream;
    /** Styles the prefix of a rank, for each of the streams. */
    readonly paint: Readonly<Record<StreamName, (rank: number, prefix: string) => string>>;
    /** Lines as JSON on stdout instead, each with its rank and stream. */
    readonly json: boolean;
    /** How many trainers there are, so that prefixes have one width. */
    readonly count: number;
}
/** Prints one stream of a trainer, whose bytes arrive in chunks. */
export interface LinePrinter {
    /** Prints the lines that `bytes` complete; settles when the reader takes more. */
    print(bytes: Buffer): Promise<void>;
    /** Prints a last line that has no end. */
    end(): Promise<void>;
}
/** Prints the output of trainers in whole lines, each after the rank of its trainer. */
export declare class TrainerOutput {
    #private;
    constructor(options: TrainerOutputOptions);
    /** Whether the reader of this process's output takes no more at present. */
    get isHeldUp(): boolean;
    /** Prints a stream of a trainer until it ends; reads no faster than this process's output is read. */
    follow(rank: number, name: StreamName, source: Readable): Promise<void>;
    /** Makes a printer of one stream of a trainer, for a caller that reads the stream itself. */
    printer(rank: number, name: StreamName): LinePrinter;
}
//# sourceMappingURL=trainer-output.d.ts.map