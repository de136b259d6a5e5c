// Writes the table of error codes, and of what a client does about them, into docs/reference/protocol.md. Run it
// after every change of the tables in src/protocol/errors.ts and reactions.ts:
// `make build && node scripts/write-error-table.mjs`. Plain JavaScript, because Node 20 does not strip
// types; write-error-table.d.mts types it for the test.

import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";

const BEGIN = "<!-- error table: written by scripts/write-error-table.mjs -->";
const END = "<!-- end of the error table -->";

function renderWords(title, words) {
  const rows = Object.entries(words).map(([word, meaning]) => `| \`${word}\` | ${meaning} |`);
  return [`| ${title} | meaning |`, "|---|---|", ...rows].join("\n");
}

/** The words of the two columns with their meanings, and which of them a code has. */
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

export function replaceErrorTable(text, table) {
  const begin = text.indexOf(BEGIN);
  const end = text.indexOf(END);
  if (begin < 0 || end < begin)
    throw new Error("docs/reference/protocol.md: the marks of the table are gone");
  return `${text.slice(0, begin + BEGIN.length)}\n${table}\n${text.slice(end)}`;
}

if (import.meta.filename === process.argv[1]) {
  const root = join(import.meta.dirname, "..");
  const protocol = await import(join(root, "dist/protocol.js"));
  const { ERROR_CODES } = protocol;
  const target = join(root, "docs/reference/protocol.md");
  const text = await readFile(target, "utf8");
  await writeFile(target, replaceErrorTable(text, renderErrorTable(ERROR_CODES, protocol)));
  console.log(`wrote the table of ${Object.keys(ERROR_CODES).length} codes into ${target}`);
}
