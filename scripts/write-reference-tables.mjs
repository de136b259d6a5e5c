// Writes the tables of docs/reference that follow from the sources: the error codes, with what a client does
// about them, into errors.md, and the limits into limits.md. Run it after every change of
// src/protocol/errors.ts, reactions or limits.ts: `make build && node scripts/write-reference-tables.mjs`. Plain
// JavaScript, because Node 20 does not strip types; write-reference-tables.d.mts types it for the test.

import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";

const BEGIN = "<!-- table written by scripts/write-reference-tables.mjs -->";
const END = "<!-- end of the table -->";
const LIMIT = /\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\nexport const ([A-Z_]+)\b/g;

function renderWords(title, words) {
  const rows = Object.entries(words).map(([word, meaning]) => `| \`${word}\` | ${meaning} |`);
  return [`| ${title} | meaning |`, "|---|---|", ...rows].join("\n");
}

/**
 * Writes the table of the error codes, and those of the words in its two columns with their
 * meanings.
 */
export function renderErrorTable(
  codes,
  { REACTIONS, REJECTION_REACTIONS, reactionTo, reactionToRejection },
) {
  const rows = Object.entries(codes).map(([code, { number, retryable, meaning }]) => {
    const words = `${reactionTo(code)} | ${reactionToRejection(code)}`.replaceAll("fail", "");
    return `| ${number} | \`${code}\` | ${retryable ? "yes" : "no"} | ${words} | ${meaning} |`;
  });
  return [
    "| number | code | retry | reaction | if rejected | meaning |",
    "|---|---|---|---|---|---|",
    ...rows,
    "",
    renderWords("reaction", REACTIONS),
    "",
    renderWords("if rejected", REJECTION_REACTIONS),
  ].join("\n");
}

/**
 * Writes the table of the constants that the source declares after a doc comment, with the
 * comment's text.
 */
export function renderLimitTable(source, values) {
  const rows = [...source.matchAll(LIMIT)].map(([, comment, name]) => {
    const meaning = comment.replaceAll(/\s*\n \* ?|\s+/g, " ").trim();
    return `| \`${name}\` | ${values[name]} | ${meaning} |`;
  });
  return ["| limit | value | meaning |", "|---|---|---|", ...rows].join("\n");
}

/** Returns the text with another table between BEGIN and END. */
export function replaceTable(text, table) {
  const begin = text.indexOf(BEGIN);
  const end = text.indexOf(END);
  if (begin < 0 || end < begin) throw new Error("the comments around the table are gone");
  return `${text.slice(0, begin + BEGIN.length)}\n${table}\n${text.slice(end)}`;
}

async function write(file, table) {
  await writeFile(file, replaceTable(await readFile(file, "utf8"), table));
  console.log(`wrote the table of ${file}`);
}

if (import.meta.filename === process.argv[1]) {
  const root = join(import.meta.dirname, "..");
  const protocol = await import(join(root, "dist/protocol.js"));
  const limits = await readFile(join(root, "src/protocol/limits.ts"), "utf8");
  const reference = join(root, "docs/reference");
  await write(join(reference, "errors.md"), renderErrorTable(protocol.ERROR_CODES, protocol));
  await write(join(reference, "limits.md"), renderLimitTable(limits, protocol));
}
