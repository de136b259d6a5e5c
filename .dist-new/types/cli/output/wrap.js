import { stripVTControlCharacters } from "node:util";
import { eastAsianWidth } from "get-east-asian-width";
import { isPlain, visible } from "../../protocol/errors.js";
const ELLIPSIS = "…";
const COMBINING = /^[\p{M}\p{Cf}]/u;
/** The character that asks for the colourful form of the one before, which takes two columns. */
const EMOJI_SELECTOR = "\ufe0f";
const FLAG_LETTER = /^\p{Regional_Indicator}/u;
/** Splits text into characters; made when it is first needed, because that takes 20 ms. */
let segmenter;
/**
 * Returns the columns that a text takes in a terminal: two for East Asian wide characters and emoji, none for
 * combining marks and the sequences that colour.
 */
export function textWidth(text) {
    if (isPlain(text))
        return text.length;
    const shown = stripVTControlCharacters(text);
    if (isPlain(shown))
        return shown.length;
    return characters(shown).reduce((sum, character) => sum + characterWidth(character), 0);
}
/** Shortens text to at most so many columns, at least one: text that is too long loses its middle to a `…`. */
export function cutMiddle(text, columns) {
    if (textWidth(text) <= columns)
        return text;
    const shownColumns = Math.max(0, columns - 1);
    const startColumns = Math.ceil(shownColumns / 2);
    // Dividing a text into characters takes some microseconds; that of a plain one is known.
    if (isPlain(text)) {
        const tail = text.slice(text.length - (shownColumns - startColumns));
        return `${text.slice(0, startColumns)}${ELLIPSIS}${tail}`;
    }
    const all = characters(text);
    const start = fitting(all, startColumns);
    const rest = all.slice(start.length).reverse();
    const tail = fitting(rest, shownColumns - textWidth(start.join(""))).reverse();
    return `${start.join("")}${ELLIPSIS}${tail.join("")}`;
}
/** Splits text into user-perceived characters, each of one or more code points. */
function characters(text) {
    segmenter ??= new Intl.Segmenter(undefined, { granularity: "grapheme" });
    return Array.from(segmenter.segment(text), ({ segment }) => segment);
}
function characterWidth(character) {
    const codePoint = character.codePointAt(0) ?? 0;
    if (COMBINING.test(character))
        return 0;
    if (FLAG_LETTER.test(character) || character.includes(EMOJI_SELECTOR))
        return 2;
    return eastAsianWidth(codePoint);
}
/** Returns as many of the first characters as fit into `columns`. */
function fitting(all, columns) {
    const taken = [];
    let left = columns;
    for (const character of all) {
        left -= characterWidth(character);
        if (left < 0)
            break;
        taken.push(character);
    }
    return taken;
}
/** Characters that {@link visible} escapes and `JSON.stringify` does not. */
const UNPRINTABLE_IN_JSON = /[\u007f-\u009f\p{Cf}\p{Zl}\p{Zp}]/gu;
const ESCAPE = "\u001b";
/** The control sequences of `makePaint`. */
const COLORS = new RegExp(`(${ESCAPE}\\[(?:1|22|3[1-3]|39|90)m)`);
/** Does the same as {@link visible} for text of several lines. */
export function visibleLines(text) {
    return text.split("\n").map(visible).join("\n");
}
/** Does the same as {@link visible}, but keeps colours. Names in the line must be `visible` already. */
export function visibleColored(line) {
    return visibleExcept(line, COLORS);
}
/**
 * Does the same as {@link visible}, but keeps what `kept` matches, an expression with one group around all of
 * it.
 */
export function visibleExcept(line, kept) {
    return line
        .split(kept)
        .map((part, i) => (i % 2 === 0 ? visible(part) : part))
        .join("");
}
/** Writes a value as JSON on one line, and escapes everything that {@link visible} escapes. */
export function visibleJson(value) {
    return JSON.stringify(value).replace(UNPRINTABLE_IN_JSON, (character) => 
    // JSON has one escape for each half of a surrogate pair.
    Array.from({ length: character.length }, (_, i) => {
        return `\\u${character.charCodeAt(i).toString(16).padStart(4, "0")}`;
    }).join(""));
}
/**
 * Breaks text at blanks into lines of at most `width` columns. A longer word is not broken, so that it can
 * be copied, and has a line of its own.
 */
export function wrapText(text, width) {
    if (textWidth(text) <= width)
        return [text];
    const lines = [];
    let line = "";
    for (const [, blanks = "", word = ""] of text.matchAll(/( *)([^ ]+)/g)) {
        const longer = line + blanks + word;
        if (lines.length + line.length === 0 || textWidth(longer) <= width) {
            line = longer;
        }
        else {
            lines.push(line);
            line = word;
        }
    }
    return [...lines, line];
}
/**
 * Breaks `text` into lines after `prefix`, the first line beside it and the others below that line. `paint`
 * styles each line's part of the text.
 */
export function hangingLines(prefix, text, width, paint = (part) => part) {
    const indent = " ".repeat(textWidth(prefix));
    return wrapText(text, width - indent.length).map((part, i) => (i === 0 ? prefix : indent) + paint(part));
}
/** Breaks lines; the rest of an indented line gets the same indent. */
export function wrapLines(text, width) {
    const lines = text.split("\n").flatMap((line) => {
        const start = line.search(/[^ ]|$/);
        return hangingLines(line.slice(0, start), line.slice(start), width);
    });
    return lines.join("\n");
}
/** Breaks a message into lines, all but the first indented, so that none can be taken for another message. */
export function wrapMessage(text, width) {
    const [first = "", ...rest] = text.split("\n");
    const indent = "  ";
    const lines = [...wrapText(first, width), ...rest.flatMap((line) => wrapText(line, width - 2))];
    return lines.join(`\n${indent}`);
}
/** Columns of the longest title. */
const TITLE_COLUMNS = 10;
/** Writes an indented title, as the `prefix` of {@link hangingLines}. */
export function titlePrefix(title, { paint }) {
    return `  ${paint("faint", title.padEnd(TITLE_COLUMNS))} `;
}
/** Writes an indented title with its text beside it, in as many lines as needed. */
export function titledLines(title, text, format, style) {
    const { paint, width } = format;
    return hangingLines(titlePrefix(title, format), text, width, (part) => style === undefined ? part : paint(style, part));
}
//# sourceMappingURL=wrap.js.map