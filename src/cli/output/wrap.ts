import type { Look, Style } from "./colors.ts";
import { textWidth } from "./text-width.ts";

/**
 * Breaks text at blanks into lines of at most `width` columns. A longer word is not broken, so that it can
 * be copied, and has a line of its own.
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
 * Breaks `text` into lines after `head`, the first line beside it and the others below that line.
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

/** Breaks lines; what is broken off an indented line is indented alike. */
export function wrapLines(text: string, width: number): string {
  const lines = text.split("\n").flatMap((line) => {
    const start = line.search(/[^ ]|$/);
    return hangingLines(line.slice(0, start), line.slice(start), width);
  });
  return lines.join("\n");
}

/** Breaks a message into lines, all but the first indented, so that none looks like another message. */
export function wrapMessage(text: string, width: number): string {
  const [first = "", ...rest] = text.split("\n");
  const indent = "  ";
  const lines = [...wrapText(first, width), ...rest.flatMap((line) => wrapText(line, width - 2))];
  return lines.join(`\n${indent}`);
}

/** Columns of the longest title. */
const TITLE_COLUMNS = 10;

/** An indented title, as `head` of {@link hangingLines}. */
export function titleHead(title: string, { paint }: Look): string {
  return `  ${paint("faint", title.padEnd(TITLE_COLUMNS))} `;
}

/** An indented title with its text beside it, in as many lines as needed. */
export function titledLines(title: string, text: string, look: Look, style?: Style): string[] {
  const { paint, width } = look;
  return hangingLines(titleHead(title, look), text, width, (part) =>
    style === undefined ? part : paint(style, part),
  );
}
