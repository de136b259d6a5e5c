import { visible } from "../../protocol/errors.ts";
import type { Look } from "./colors.ts";
import { cutMiddle, textWidth, wrapText } from "./wrap.ts";

/** A column of a table; numbers are best aligned right. */
export interface Column {
  readonly title: string;
  readonly align?: "left" | "right";
}

/**
 * What a table that is too wide gives up of the column with this title: its cells lose their middle
 * (`cut`) or continue in further lines (`wrap`), as far as needed but not below a width of `to`; or all of
 * it goes (`drop`).
 */
export type Concession =
  | { readonly kind: "cut" | "wrap"; readonly column: string; readonly to: number }
  | { readonly kind: "drop"; readonly column: string };

/** A column with the cells below its title, as wide as it may be. */
interface Laid extends Column {
  readonly cells: readonly string[];
  readonly width: number;
  readonly isWrapped: boolean;
}

const GAP = "  ";

/**
 * Rows under their titles, in columns as wide as their widest cell or as the terminal allows; no lines
 * without rows. Cells may hold names that others chose, so they are made {@link visible}.
 * `concessions` are made in order, the least important first, until the table fits; a table that is
 * still too wide after the last one exceeds the terminal.
 */
export function formatTable(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  { paint, width }: Look,
  concessions: readonly Concession[] = [],
): string[] {
  if (rows.length === 0) return [];
  let laid = columns.map((column, i) => lay(column, rows, i));
  for (const concession of concessions) {
    const excess = totalWidth(laid) - width;
    if (excess <= 0) break;
    laid = concede(laid, concession, excess);
  }
  const titles = lineOf(laid, ({ title, width: own }) => cutMiddle(title, own));
  const lines = rows.flatMap((_, row) => rowLines(laid, row));
  return [paint("strong", titles), ...lines];
}

function lay(column: Column, rows: readonly (readonly string[])[], i: number): Laid {
  const cells = rows.map((row) => visible(row[i] ?? ""));
  const width = Math.max(textWidth(column.title), ...cells.map(textWidth));
  return { ...column, cells, width, isWrapped: false };
}

function totalWidth(laid: readonly Laid[]): number {
  return laid.reduce((sum, { width }) => sum + width, GAP.length * (laid.length - 1));
}

/** The columns after one concession; `excess` is by how much they are too wide. */
function concede(laid: readonly Laid[], concession: Concession, excess: number): Laid[] {
  if (concession.kind === "drop") return laid.filter(({ title }) => title !== concession.column);
  const { kind, to } = concession;
  return laid.map((column) => {
    if (column.title !== concession.column || column.width <= to) return column;
    return { ...column, isWrapped: kind === "wrap", width: Math.max(to, column.width - excess) };
  });
}

/** A row, which takes several lines where a cell is wrapped. */
function rowLines(laid: readonly Laid[], row: number): string[] {
  const parts = laid.map(({ cells, width, isWrapped }) => {
    const lines = isWrapped ? wrapText(cells[row] ?? "", width) : [cells[row] ?? ""];
    return lines.map((line) => cutMiddle(line, width));
  });
  const height = Math.max(...parts.map((lines) => lines.length));
  return Array.from({ length: height }, (_, n) =>
    lineOf(laid, (_column, i) => parts[i]?.[n] ?? ""),
  );
}

function lineOf(laid: readonly Laid[], cell: (column: Laid, i: number) => string): string {
  return laid
    .map((column, i) => pad(cell(column, i), column))
    .join(GAP)
    .trimEnd();
}

function pad(text: string, { width, align = "left" }: Laid): string {
  const blanks = " ".repeat(Math.max(0, width - textWidth(text)));
  return align === "left" ? text + blanks : blanks + text;
}
