import type { Look, Style } from "./colors.ts";
import { textWidth } from "./text-width.ts";

/**
 * Text in lines of at most `width` columns, broken at blanks. A longer word has a line of its own: whole,
 * it can be copied. `width`: what a terminal has left for the text.
 */
export function wrapText(text: string, width: number): string[] {
  if (textWidth(text) <= width) return [text];
  const lines: string[] = [];
  let line = "";
  for (const [, blanks = "", word = ""] of text.matchAll(/( *)([^ ]+)/g)) {
    const longer = line + blanks + word;
    if (lines.length + line.length === 0 || textWidth(longer) <= width) {
      line = longer;
    } else {
      lines.push(line);
      line = word;
    }
  }
  return [...lines, line];
}

/**
 * A line that begins with `head` and goes on with `text`, further lines of it below each other.
 * `paint` styles each line's part of the text.
 */
export function hangingLines(
  head: string,
  text: string,
  width: number,
  paint: (part: string) => string = (part) => part,
): string[] {
  const indent = " ".repeat(textWidth(head));
  return wrapText(text, width - indent.length).map(
    (part, i) => (i === 0 ? head : indent) + paint(part),
  );
}

/** Lines that may be indented, each broken so that its further lines are indented alike. */
export function wrapLines(text: string, width: number): string {
  const lines = text.split("\n").flatMap((line) => {
    const start = line.search(/[^ ]|$/);
    return hangingLines(line.slice(0, start), line.slice(start), width);
  });
  return lines.join("\n");
}

/** A message of one or more lines; all that follow the first are indented, so that none passes for a message. */
export function wrapMessage(text: string, width: number): string {
  const [first = "", ...rest] = text.split("\n");
  const indent = "  ";
  const lines = [...wrapText(first, width), ...rest.flatMap((line) => wrapText(line, width - 2))];
  return lines.join(`\n${indent}`);
}

/** Columns of the longest title. */
const TITLE_COLUMNS = 10;

/** A title, indented, as what {@link hangingLines} begins with. */
export function titleHead(title: string, { paint }: Look): string {
  return `  ${paint("faint", title.padEnd(TITLE_COLUMNS))} `;
}

/** A title with what it is of beside it, in as many lines as that takes. */
export function titledLines(title: string, text: string, look: Look, style?: Style): string[] {
  const { paint, width } = look;
  return hangingLines(titleHead(title, look), text, width, (part) =>
    style === undefined ? part : paint(style, part),
  );
}
