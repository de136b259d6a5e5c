import { stripVTControlCharacters } from "node:util";
import { eastAsianWidth } from "get-east-asian-width";
import { isPlain } from "../../protocol/visible.ts";

const ELLIPSIS = "…";

const COMBINING = /^[\p{M}\p{Cf}]/u;
/** Asks for the colourful form of a character, which takes two columns. */
const EMOJI_SELECTOR = "\ufe0f";
const FLAG_LETTER = /^\p{Regional_Indicator}/u;

/** Made when it is first needed: it takes 20 ms. */
let segmenter: Intl.Segmenter | undefined;

/**
 * Columns that a text takes in a terminal: two for East Asian wide characters and emoji, none for
 * combining marks and the sequences that colour.
 */
export function textWidth(text: string): number {
  if (isPlain(text)) return text.length;
  const shown = stripVTControlCharacters(text);
  if (isPlain(shown)) return shown.length;
  return characters(shown).reduce((sum, character) => sum + characterWidth(character), 0);
}

/** Text of at most so many columns, at least one: what is too long loses its middle to a `…`. */
export function cutMiddle(text: string, columns: number): string {
  if (textWidth(text) <= columns) return text;
  const shownColumns = Math.max(0, columns - 1);
  const headColumns = Math.ceil(shownColumns / 2);
  // Dividing a text into characters takes some microseconds; that of a plain one is known.
  if (isPlain(text)) {
    const tail = text.slice(text.length - (shownColumns - headColumns));
    return `${text.slice(0, headColumns)}${ELLIPSIS}${tail}`;
  }
  const all = characters(text);
  const head = fitting(all, headColumns);
  const rest = all.slice(head.length).reverse();
  const tail = fitting(rest, shownColumns - textWidth(head.join(""))).reverse();
  return `${head.join("")}${ELLIPSIS}${tail.join("")}`;
}

/** User-perceived characters, each of one or more code points. */
function characters(text: string): string[] {
  segmenter ??= new Intl.Segmenter(undefined, { granularity: "grapheme" });
  return Array.from(segmenter.segment(text), ({ segment }) => segment);
}

function characterWidth(character: string): number {
  const codePoint = character.codePointAt(0) ?? 0;
  if (COMBINING.test(character)) return 0;
  if (FLAG_LETTER.test(character) || character.includes(EMOJI_SELECTOR)) return 2;
  return eastAsianWidth(codePoint);
}

/** As many of the first characters as fit into `columns`. */
function fitting(all: readonly string[], columns: number): string[] {
  const taken: string[] = [];
  let left = columns;
  for (const character of all) {
    left -= characterWidth(character);
    if (left < 0) break;
    taken.push(character);
  }
  return taken;
}
