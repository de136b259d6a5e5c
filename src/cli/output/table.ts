import { stripVTControlCharacters } from "node:util";
import { visible } from "../../protocol/visible.ts";
import type { Paint } from "./colors.ts";

/** A column of a table; numbers are best aligned right. */
export interface Column {
  readonly title: string;
  readonly align?: "left" | "right";
}

const GAP = "  ";

/**
 * Rows under their titles, in columns as wide as their widest cell; no line at all without rows.
 * Cells, which come from other people's names, are made {@link visible}.
 */
export function formatTable(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  paint: Paint,
): string[] {
  if (rows.length === 0) return [];
  const cells = rows.map((row) => row.map(visible));
  const widths = columns.map(({ title }, i) =>
    Math.max(textWidth(title), ...cells.map((row) => textWidth(row[i] ?? ""))),
  );
  const line = (row: readonly string[]): string =>
    columns
      .map(({ align }, i) => pad(row[i] ?? "", widths[i] ?? 0, align ?? "left"))
      .join(GAP)
      .trimEnd();
  return [paint("strong", line(columns.map(({ title }) => title))), ...cells.map(line)];
}

function pad(text: string, width: number, align: "left" | "right"): string {
  const blanks = " ".repeat(Math.max(0, width - textWidth(text)));
  return align === "left" ? text + blanks : blanks + text;
}

/** Code points, without the sequences that colour; wide characters count as one. */
function textWidth(text: string): number {
  return [...stripVTControlCharacters(text)].length;
}
