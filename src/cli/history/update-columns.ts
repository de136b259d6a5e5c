import type { UpdateEvent } from "../../actors/journal/describe-record.ts";
import { clockText, dateText, updateEntry } from "../../history/reports/update-entry.ts";
import { isPlain, visible } from "../../protocol/errors.ts";
import type { TextFormat, TextStyle } from "../output/colors.ts";
import { cutMiddle, textWidth } from "../output/wrap.ts";
import {
  blockText,
  bytesText,
  noteText,
  outcomeText,
  placeText,
  senderText,
  verbText,
  zerosText,
} from "./event-text.ts";
import { compactNumber } from "./numbers.ts";

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

/** Maximum width: on a wider terminal, longer lines would be hard to read. */
const WIDTH_MAX = 200;

const GAP = "  ";
const BLANKS = " ".repeat(WIDTH_MAX);

/** Width of a line where no terminal limits it. */
const WIDTH_DEFAULT = 180;

/**
 * Title of the first column that describes the update itself; a note's text takes the place of these columns.
 */
const SUBJECT = "PARAMETER";

const OUTCOME = "OUTCOME";

/** Room that is kept for columns that grow, as far as the terminal is wider than {@link WIDE}. */
const GROWTH_MAX = 12;
const WIDE = 96;

/** Terminals from this width on have the milliseconds of times. */
const TIME_WIDE = 84;

const TIME = column("TIME", 12, 0, ({ timeMs }) => clockText(timeMs), { isPlain: true });
const TIME_SHORT = column("TIME", 8, 0, ({ timeMs }) => clockText(timeMs).slice(0, 8), {
  isPlain: true,
});

const COLUMNS: readonly LogColumn[] = [
  column("RECORD", 8, 1, placeText, { isPlain: true, growth: 1 }),
  column("TRAINER", 14, 1, senderText, { growth: 2, cut: cutSender }),
  column("UPDATE", 9, 1, verbText, { growth: 1 }),
  column(SUBJECT, 13, 1, blockText, { growth: 4 }),
  numeric("BYTES", 8, 5, bytesText),
  numeric("NORM", 8, 3, ({ block }) => compactNumber(block?.statistics?.norm)),
  numeric("MIN", 8, 6, ({ block }) => compactNumber(block?.statistics?.min)),
  numeric("MAX", 8, 6, ({ block }) => compactNumber(block?.statistics?.max)),
  numeric("MEAN", 8, 7, ({ block }) => compactNumber(block?.statistics?.mean)),
  numeric("ZEROS", 6, 8, ({ block }) => zerosText(block)),
  numeric("VERSION", 7, 9, ({ block }) => compactNumber(block?.version)),
  numeric("BEHIND", 6, 4, ({ block }) => compactNumber(block?.behind)),
  column(OUTCOME, 7, 2, outcomeText, { growth: 4 }),
];

/** The table of `pserver log`, line by line. Its columns are chosen once, for the width of the terminal. */
export class UpdateLines {
  readonly #columns: readonly LogColumn[];
  readonly #format: TextFormat;
  #date = "";

  constructor(columns: readonly LogColumn[], format: TextFormat) {
    this.#columns = columns;
    this.#format = format;
  }

  /** Makes the table for a terminal of this width. */
  static of(format: TextFormat): UpdateLines {
    const width = Number.isFinite(format.width) ? Math.min(format.width, WIDTH_MAX) : WIDTH_DEFAULT;
    const columns = [width < TIME_WIDE ? TIME_SHORT : TIME, ...COLUMNS];
    // No more than a terminal is wider, so that it shows every column that a narrower one shows.
    const growth = Math.min(GROWTH_MAX, Math.max(0, width - WIDE));
    return new UpdateLines(fitColumns(columns, width, growth), format);
  }

  /** Blanks before lines that belong to the one above: as wide as the column of times. */
  get indent(): string {
    return " ".repeat((this.#columns[0]?.width ?? 0) + GAP.length);
  }

  /** Returns the line of titles. */
  titles(): string {
    const titles = this.#columns.map((each) => pad(each.title, each)).join(GAP);
    return this.#format.paint("strong", titles.trimEnd());
  }

  /**
   * Returns the line of an update, after the date if that differs from the date of the line before. If its
   * column has no room for the outcome, a second line says why an update was not applied.
   */
  lines(event: UpdateEvent): string[] {
    return this.text([event]).split("\n").slice(0, -1);
  }

  /** Returns the lines of consecutive updates as {@link lines} does, each with its newline. */
  text(events: readonly UpdateEvent[]): string {
    let text = "";
    for (const event of events) {
      const date = dateText(event.timeMs);
      if (date !== this.#date) {
        this.#date = date;
        text += `${this.#format.paint("faint", `${date} UTC`)}\n`;
      }
      text += `${event.note === undefined ? this.#updateLine(event) : this.#noteLine(event)}\n`;
      const reason = this.#reason(event);
      if (reason !== undefined) text += `${reason}\n`;
    }
    return text;
  }

  #reason(event: UpdateEvent): string | undefined {
    if (isAsUsual(event)) return undefined;
    const outcome = visible(outcomeText(event));
    if (textWidth(outcome) <= this.#outcomeRoom(event)) return undefined;
    const text = cutMiddle(outcome, widthOf(this.#columns) - this.indent.length);
    return `${this.indent}${this.#format.paint(styleOf(event) ?? "fail", text)}`;
  }

  /** Returns the width that the outcome can take in the line of an update or a note. */
  #outcomeRoom({ note }: UpdateEvent): number {
    if (note !== undefined) return this.#noteWidth() - textWidth(visible(`${noteText(note)} ()`));
    return this.#columns.find(({ title }) => title === OUTCOME)?.width ?? 0;
  }

  #updateLine(event: UpdateEvent): string {
    let line = "";
    for (const each of this.#columns) {
      if (each !== this.#columns[0]) line += GAP;
      line += each.title === OUTCOME ? this.#outcome(event, each) : cell(each, event);
    }
    return line.trimEnd();
  }

  #outcome(event: UpdateEvent, column: LogColumn): string {
    const text = visible(outcomeText(event));
    const short = textWidth(text) > column.width ? outcomeWord(event) : text;
    const shown = pad(short, column).trimEnd();
    const style = styleOf(event);
    return style === undefined ? shown : this.#format.paint(style, shown);
  }

  /** Writes the line of a note, which has no numbers of its own: its entries take the rest of the line. */
  #noteLine(event: UpdateEvent): string {
    const before = this.#columns.slice(0, this.#subjectAt());
    const outcome = visible(outcomeText(event));
    const short = textWidth(outcome) > this.#outcomeRoom(event) ? outcomeWord(event) : outcome;
    const refused = isAsUsual(event) ? "" : ` (${short})`;
    const text = cutMiddle(visible(`${noteText(event.note ?? {})}${refused}`), this.#noteWidth());
    const cells = before.map((each) => cell(each, event));
    return [...cells, this.#format.paint(refused === "" ? "ok" : "warn", text)].join(GAP);
  }

  #subjectAt(): number {
    return this.#columns.findIndex(({ title }) => title === SUBJECT);
  }

  #noteWidth(): number {
    return widthOf(this.#columns.slice(this.#subjectAt()));
  }
}

function column(
  title: string,
  width: number,
  rank: number,
  text: LogColumn["text"],
  more: Partial<LogColumn> = {},
): LogColumn {
  return { title, width, rank, text, align: "left", isPlain: false, growth: 0, ...more };
}

function numeric(title: string, width: number, rank: number, text: LogColumn["text"]): LogColumn {
  return column(title, width, rank, text, { align: "right", isPlain: true });
}

/** Whether an update was applied as it is, and described. */
function isAsUsual({ outcome, undescribed, guard }: UpdateEvent): boolean {
  return outcome.kind === "applied" && undescribed === undefined && guard === undefined;
}

/** Says in one word what became of an update, for a narrow column. */
function outcomeWord({ outcome, block, undescribed, guard }: UpdateEvent): string {
  if (undescribed !== undefined) return "not described";
  if (outcome.kind === "rejected") return outcome.code;
  if (outcome.kind === "set-aside") return "aside";
  if (outcome.kind === "applied" && guard !== undefined) return "clipped";
  const nonFinite = block?.statistics?.nonFinite ?? 0;
  return outcome.kind === "applied" && nonFinite > 0 ? "NaN/inf" : outcome.kind;
}

function styleOf({ outcome, block, undescribed, guard }: UpdateEvent): TextStyle | undefined {
  if (undescribed !== undefined) return "fail";
  if (guard !== undefined && outcome.kind !== "rejected") return "warn";
  if (outcome.kind === "rejected" || outcome.kind === "unreadable") return "fail";
  if (outcome.kind === "repeated") return "faint";
  return (block?.statistics?.nonFinite ?? 0) > 0 ? "fail" : undefined;
}

function widthOf(columns: readonly LogColumn[]): number {
  return columns.reduce((sum, { width }) => sum + width, GAP.length * (columns.length - 1));
}

/**
 * Selects the most important columns that fit beside `growth`; divides the remaining room between those that
 * grow.
 */
function fitColumns(columns: readonly LogColumn[], width: number, growth: number): LogColumn[] {
  let kept = [...columns];
  while (widthOf(kept) > width - growth) {
    const rank = Math.max(...kept.map((each) => each.rank));
    if (rank <= 1) break;
    kept = kept.filter((each) => each.rank !== rank);
  }
  const left = Math.max(0, width - widthOf(kept));
  const parts = kept.reduce((sum, { growth: grows }) => sum + grows, 0);
  return kept.map((each) => ({
    ...each,
    width: each.width + (parts === 0 ? 0 : Math.floor((left * each.growth) / parts)),
  }));
}

/** Shortens a sender so that its session and number stay, because no other column tells them. */
function cutSender(text: string, width: number): string {
  const at = text.lastIndexOf("/");
  const idWidth = width - (text.length - at);
  return at < 0 || idWidth < 3
    ? cutMiddle(text, width)
    : cutMiddle(text.slice(0, at), idWidth) + text.slice(at);
}

/** Writes the cell of an update in a column, as wide as the column. */
function cell(column: LogColumn, event: UpdateEvent): string {
  const text = column.text(event);
  return column.isPlain || isPlain(text) ? padPlain(text, column) : pad(visible(text), column);
}

/** Pads a visible text to the width of a column; cuts it if it is too long. */
function pad(text: string, column: LogColumn): string {
  if (isPlain(text)) return padPlain(text, column);
  const { width, cut = cutMiddle } = column;
  const columns = textWidth(text);
  const shown = columns <= width ? text : cut(text, width);
  return align(shown, width - (shown === text ? columns : textWidth(shown)), column);
}

/** Does the same as {@link pad} for printable ASCII, each character of which takes a column. */
function padPlain(text: string, column: LogColumn): string {
  const { width, cut = cutMiddle } = column;
  const missing = width - text.length;
  return missing < 0 ? cut(text, width) : align(text, missing, column);
}

/** Adds so many blanks to a text, on the side that its column leaves free. */
function align(text: string, blanks: number, column: LogColumn): string {
  const blank = BLANKS.slice(0, Math.max(0, blanks));
  return column.align === "left" ? text + blank : blank + text;
}

/** The columns of `--csv`, in order. */
export const CSV_COLUMNS = [
  ...[
    "time",
    "shard",
    "generation",
    "seq",
    "entry",
    "trainer",
    "session",
    "number",
    "verb",
    "step",
  ],
  ...["parameter", "block", "op", "alpha", "beta", "learningRate", "dtype", "encoding", "elements"],
  ...["rows", "inner", "bytes", "norm", "min", "max", "mean", "zeros", "nonFinite", "version"],
  ...["behind", "outcome", "code", "message", "repeats", "guard", "limit", "median", "norms"],
  ...["note", "undescribed"],
] as const;

/**
 * Writes a line of CSV under {@link CSV_COLUMNS}; a note is JSON in one cell. Texts are as {@link visible} shows them,
 * and one that a spreadsheet would take for a formula begins with an apostrophe: trainers choose names and notes.
 */
export function csvLine(event: UpdateEvent): string {
  const record = updateEntry(event);
  return CSV_COLUMNS.map((name) => csvCell(record[name])).join(",");
}

function csvCell(value: unknown): string {
  if (value === undefined) return "";
  if (typeof value === "number") return String(value);
  const shown = visible(typeof value === "object" ? JSON.stringify(value) : String(value));
  const text = /^(?:[=+@]|-(?!Infinity$))/.test(shown) ? `'${shown}` : shown;
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
