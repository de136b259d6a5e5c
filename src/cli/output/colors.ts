import { styleText } from "node:util";

/** Meaning of a piece of text; only this file decides how it is shown. */
export type TextStyle = "ok" | "warn" | "fail" | "strong" | "faint";

const FORMATS = {
  ok: "green",
  warn: "yellow",
  fail: "red",
  strong: "bold",
  faint: "gray",
} as const;

/** Styles text by its meaning, or returns it unchanged. */
export type Paint = (style: TextStyle, text: string) => string;

/** Colours and width of text for people. */
export interface TextFormat {
  readonly paint: Paint;
  /** Columns of the terminal; infinite where there is none. */
  readonly width: number;
}

/** Makes a {@link Paint} that uses colours or not. */
export function makePaint(colored: boolean): Paint {
  // Node's own check would look at process.stdout instead of the stream that is written to.
  return (style, text) =>
    colored ? styleText(FORMATS[style], text, { validateStream: false }) : text;
}

/** Colours that distinguish trainers, in turn. */
const RANK_COLORS = ["cyan", "magenta", "blue", "green", "yellow", "gray"] as const;

/** Colours text as that of a trainer, or returns it unchanged. */
export type PaintRank = (rank: number, text: string) => string;

/** Makes a {@link PaintRank} that uses colours or not. */
export function makePaintRank(colored: boolean): PaintRank {
  return (rank, text) => {
    const color = RANK_COLORS[rank % RANK_COLORS.length] ?? "gray";
    return colored ? styleText(color, text, { validateStream: false }) : text;
  };
}

/** Whether text for a stream may be coloured; `isTTY` is that stream's. */
export function wantsColor(
  isTTY: boolean,
  environment: Readonly<Record<string, string | undefined>>,
  noColorFlag: boolean,
): boolean {
  return isTTY && !noColorFlag && !environment["NO_COLOR"] && environment["TERM"] !== "dumb";
}

/** Whether a stream may show a line that is overwritten. */
export function wantsAnimation(
  isTTY: boolean,
  environment: Readonly<Record<string, string | undefined>>,
): boolean {
  return isTTY && environment["TERM"] !== "dumb" && !environment["CI"];
}
