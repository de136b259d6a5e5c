/**
 * Characters that change how a terminal shows what is around them: controls, formats (which turn text
 * round or are not seen), ends of lines and paragraphs, lone surrogates.
 */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/** As {@link UNPRINTABLE}, of what `JSON.stringify` leaves as it is. */
const UNPRINTABLE_IN_JSON = /[\u007f-\u009f\p{Cf}\p{Zl}\p{Zp}]/gu;

const ESCAPE = "\u001b";

/** The sequences with which `makePaint` colours; it makes no others. */
const COLORS = new RegExp(`(${ESCAPE}\\[(?:1|22|3[1-3]|39|90)m)`);

/**
 * Text of other people's names, paths and messages as it can be shown: what would command a terminal
 * or turn the text round is escaped as `\x1b`, `\u202e`, `\u{e0001}`.
 */
export function visible(text: string): string {
  return text.replace(UNPRINTABLE, (character) => {
    const code = character.codePointAt(0) ?? 0;
    const digits = code.toString(16);
    if (code < 0x100) return `\\x${digits.padStart(2, "0")}`;
    return code < 0x10000 ? `\\u${digits.padStart(4, "0")}` : `\\u{${digits}}`;
  });
}

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
