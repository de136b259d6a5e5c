import { visible } from "../../protocol/visible.ts";

/** Characters that {@link visible} escapes and `JSON.stringify` does not. */
const UNPRINTABLE_IN_JSON = /[\u007f-\u009f\p{Cf}\p{Zl}\p{Zp}]/gu;

const ESCAPE = "\u001b";

/** The control sequences of `makePaint`. */
const COLORS = new RegExp(`(${ESCAPE}\\[(?:1|22|3[1-3]|39|90)m)`);

/** As {@link visible}, for text of several lines. */
export function visibleLines(text: string): string {
  return text.split("\n").map(visible).join("\n");
}

/** As {@link visible}, but keeps colours. Names in the line must be `visible` already. */
export function visibleColored(line: string): string {
  return visibleExcept(line, COLORS);
}

/** As {@link visible}, but keeps what `kept` matches, an expression with one group around all of it. */
export function visibleExcept(line: string, kept: RegExp): string {
  return line
    .split(kept)
    .map((part, i) => (i % 2 === 0 ? visible(part) : part))
    .join("");
}

/** A value as JSON on one line, with everything escaped that {@link visible} escapes. */
export function visibleJson(value: unknown): string {
  return JSON.stringify(value).replace(UNPRINTABLE_IN_JSON, (character) =>
    // JSON has one escape for each half of a surrogate pair.
    Array.from({ length: character.length }, (_, i) => {
      return `\\u${character.charCodeAt(i).toString(16).padStart(4, "0")}`;
    }).join(""),
  );
}
