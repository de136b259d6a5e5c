import { hangingLines } from "./wrap.js";
/** Columns of help where the terminal does not say less. */
export const HELP_COLUMNS = 80;
/** A line of a list: a term, at least two blanks, and what it means. */
const ITEM = /^ {2}\S.*?\S? {2,}(?=\S)/;
/**
 * Breaks the lines of a section of help anew, so that they fill the width: sentences that follow each other become one
 * paragraph, a line with two or more blanks inside begins an item of a list, and what is indented more belongs to the
 * item before it.
 */
export function fillSection(lines, width) {
    const paragraphs = [];
    for (const line of lines) {
        const item = ITEM.exec(line)?.[0];
        const last = paragraphs.at(-1);
        const isMore = last !== undefined && (line.startsWith("   ") || last.prefix === "  ");
        if (item !== undefined)
            paragraphs.push({ prefix: item, text: line.slice(item.length) });
        else if (isMore)
            last.text += ` ${line.trimStart()}`;
        else
            paragraphs.push({ prefix: "  ", text: line.trimStart() });
    }
    return paragraphs.flatMap(({ prefix, text }) => hangingLines(prefix, breakable(text, width - prefix.length), width));
}
/** Lets the shape of a JSON value that is wider than a line be broken after its commas. */
function breakable(text, width) {
    return text
        .split(" ")
        .map((word) => (word.length > width ? word.replaceAll(/,(?=["{[…])/g, ", ") : word))
        .join(" ");
}
//# sourceMappingURL=help-text.js.map