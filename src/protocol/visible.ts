/**
 * Characters that change how a terminal shows what is around them: controls, formats (which turn text
 * round or are not seen), ends of lines and paragraphs, lone surrogates.
 */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

const PLAIN = /^[ -~]*$/;

/** Whether a text is printable ASCII: {@link visible} leaves it as it is, and each character takes a column. */
export function isPlain(text: string): boolean {
  return PLAIN.test(text);
}

/**
 * Text of other people's names, paths and messages as it can be shown: what would command a terminal
 * or turn the text round is escaped as `\x1b`, `\u202e`, `\u{e0001}`.
 */
export function visible(text: string): string {
  // Nearly all texts are plain; this is several times faster than looking for what is not.
  if (isPlain(text)) return text;
  return text.replace(UNPRINTABLE, (character) => {
    const code = character.codePointAt(0) ?? 0;
    const digits = code.toString(16);
    if (code < 0x100) return `\\x${digits.padStart(2, "0")}`;
    return code < 0x10000 ? `\\u${digits.padStart(4, "0")}` : `\\u{${digits}}`;
  });
}
