import type { UpdateEvent } from "../../actors/journal/describe-record.ts";
import type { TextFormat } from "../output/colors.ts";
/** A column of `pserver log`. Its width does not depend on the rows, which come one after the other. */
interface LogColumn {
    readonly title: string;
    readonly width: number;
    readonly align: "left" | "right";
    /** Columns of a higher rank are dropped first where the terminal is narrow, all of one rank together. */
    readonly rank: number;
    /** How much of the remaining room the column takes, in parts. */
    readonly growth: number;
    /** Whether its texts are printable ASCII, whatever names an update has. */
    readonly isPlain: boolean;
    readonly text: (event: UpdateEvent) => string;
    /** Shortens the text to a width; by default it loses its middle. */
    readonly cut?: (text: string, width: number) => string;
}
/** The table of `pserver log`, line by line. Its columns are chosen once, for the width of the terminal. */
export declare class UpdateLines {
    #private;
    constructor(columns: readonly LogColumn[], format: TextFormat);
    /** Makes the table for a terminal of this width. */
    static of(format: TextFormat): UpdateLines;
    /** Blanks before lines that belong to the one above: as wide as the column of times. */
    get indent(): string;
    /** Returns the line of titles. */
    titles(): string;
    /**
     * Returns the line of an update, after the date if that differs from the date of the line before. If its
     * column has no room for the outcome, a second line says why an update was not applied.
     */
    lines(event: UpdateEvent): string[];
    /** Returns the lines of consecutive updates as {@link lines} does, each with its newline. */
    text(events: readonly UpdateEvent[]): string;
}
/** An update as `--json` prints it and `--csv` has it in columns: flat, without what is not known. */
export interface UpdateEntry {
    readonly [name: string]: unknown;
}
/** The columns of `--csv`, in order. */
export declare const CSV_COLUMNS: readonly ["time", "shard", "generation", "seq", "entry", "trainer", "session", "number", "verb", "step", "parameter", "block", "op", "alpha", "beta", "learningRate", "dtype", "encoding", "elements", "rows", "inner", "bytes", "norm", "min", "max", "mean", "zeros", "nonFinite", "version", "behind", "outcome", "code", "message", "repeats", "note", "undescribed"];
/**
 * Returns the entries of an update under the names of {@link CSV_COLUMNS}; undefined where something is not
 * known. One literal: object spread would take most of the time of a long listing.
 */
export declare function updateEntry(event: UpdateEvent): UpdateEntry;
/** Writes a line of CSV under {@link CSV_COLUMNS}; a note is JSON in one cell. */
export declare function csvLine(event: UpdateEvent): string;
export {};
//# sourceMappingURL=update-columns.d.ts.map