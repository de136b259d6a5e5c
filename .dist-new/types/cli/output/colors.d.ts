/** Meaning of a piece of text; only this file decides how it is shown. */
export type TextStyle = "ok" | "warn" | "fail" | "strong" | "faint";
/** Styles text by its meaning, or returns it unchanged. */
export type Paint = (style: TextStyle, text: string) => string;
/** Colours and width of text for people. */
export interface TextFormat {
    readonly paint: Paint;
    /** Columns of the terminal; infinite where there is none. */
    readonly width: number;
}
/** Makes a {@link Paint} that uses colours or not. */
export declare function makePaint(colored: boolean): Paint;
/** Colours text as that of a trainer, or returns it unchanged. */
export type PaintRank = (rank: number, text: string) => string;
/** Makes a {@link PaintRank} that uses colours or not. */
export declare function makePaintRank(colored: boolean): PaintRank;
/** Whether text for a stream may be coloured; `isTTY` is that stream's. */
export declare function wantsColor(isTTY: boolean, environment: Readonly<Record<string, string | undefined>>, noColorFlag: boolean): boolean;
/** Whether a stream may show a line that is overwritten. */
export declare function wantsAnimation(isTTY: boolean, environment: Readonly<Record<string, string | undefined>>): boolean;
//# sourceMappingURL=colors.d.ts.map