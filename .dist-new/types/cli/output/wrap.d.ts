import type { TextFormat, TextStyle } from "./colors.ts";
/**
 * Returns the columns that a text takes in a terminal: two for East Asian wide characters and emoji, none for
 * combining marks and the sequences that colour.
 */
export declare function textWidth(text: string): number;
/** Shortens text to at most so many columns, at least one: text that is too long loses its middle to a `…`. */
export declare function cutMiddle(text: string, columns: number): string;
/** Does the same as {@link visible} for text of several lines. */
export declare function visibleLines(text: string): string;
/** Does the same as {@link visible}, but keeps colours. Names in the line must be `visible` already. */
export declare function visibleColored(line: string): string;
/**
 * Does the same as {@link visible}, but keeps what `kept` matches, an expression with one group around all of
 * it.
 */
export declare function visibleExcept(line: string, kept: RegExp): string;
/** Writes a value as JSON on one line, and escapes everything that {@link visible} escapes. */
export declare function visibleJson(value: unknown): string;
/**
 * Breaks text at blanks into lines of at most `width` columns. A longer word is not broken, so that it can
 * be copied, and has a line of its own.
 */
export declare function wrapText(text: string, width: number): string[];
/**
 * Breaks `text` into lines after `prefix`, the first line beside it and the others below that line. `paint`
 * styles each line's part of the text.
 */
export declare function hangingLines(prefix: string, text: string, width: number, paint?: (part: string) => string): string[];
/** Breaks lines; the rest of an indented line gets the same indent. */
export declare function wrapLines(text: string, width: number): string;
/** Breaks a message into lines, all but the first indented, so that none can be taken for another message. */
export declare function wrapMessage(text: string, width: number): string;
/** Writes an indented title, as the `prefix` of {@link hangingLines}. */
export declare function titlePrefix(title: string, { paint }: TextFormat): string;
/** Writes an indented title with its text beside it, in as many lines as needed. */
export declare function titledLines(title: string, text: string, format: TextFormat, style?: TextStyle): string[];
//# sourceMappingURL=wrap.d.ts.map