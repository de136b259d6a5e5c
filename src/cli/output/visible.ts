import { visible } from "../../protocol/visible.ts";

/** What {@link visible} escapes, of what `JSON.stringify` leaves as it is. */
const UNPRINTABLE_IN_JSON = /[\u007f-\u009f\p{Cf}\p{Zl}\p{Zp}]/gu;

const ESCAPE = "\u001b";

/** The sequences with which `makePaint` colours; it makes no others. */
const COLORS = new RegExp(`(${ESCAPE}\\[(?:1|22|3[1-3]|39|90)m)`);

/** As {@link visible}, for text of several lines. */
export function visibleLines(text: string): string {
  return text.split("\n").map(visible).join("\n");
}

/** As {@link visible}, but leaves colours: for a line whose parts from elsewhere are printable already. */
export function visibleColored(line: string): string {
  return line
    .split(COLORS)
    .map((part, i) => (i % 2 === 0 ? visible(part) : part))
    .join("");
}

/** A value as JSON on one line, with everything escaped that {@link visible} escapes. */
export function visibleJson(value: unknown): string {
  return JSON.stringify(value).replace(UNPRINTABLE_IN_JSON, (character) =>
    // One escape for each half of a surrogate pair, as JSON has it.
    Array.from({ length: character.length }, (_, i) => {
      return `\\u${character.charCodeAt(i).toString(16).padStart(4, "0")}`;
    }).join(""),
  );
}
