// Writes the table of error codes into docs/protocol.md. Run it after every change of the table in
// src/protocol/errors.ts: `make build && node scripts/write-error-table.mjs`. Plain JavaScript,
// because Node 20 does not strip types; write-error-table.d.mts types it for the test.

import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";

const BEGIN = "<!-- error table: written by scripts/write-error-table.mjs -->";
const END = "<!-- end of the error table -->";

export function renderErrorTable(codes) {
  const rows = Object.entries(codes).map(
    ([code, { number, retryable, meaning }]) =>
      `| ${number} | \`${code}\` | ${retryable ? "yes" : "no"} | ${meaning} |`,
  );
  return ["| number | code | retry | meaning |", "|---|---|---|---|", ...rows].join("\n");
}

export function replaceErrorTable(text, table) {
  const begin = text.indexOf(BEGIN);
  const end = text.indexOf(END);
  if (begin < 0 || end < begin)
    throw new Error("docs/protocol.md: the marks of the table are gone");
  return `${text.slice(0, begin + BEGIN.length)}\n${table}\n${text.slice(end)}`;
}

if (import.meta.filename === process.argv[1]) {
  const root = join(import.meta.dirname, "..");
  const { ERROR_CODES } = await import(join(root, "dist/protocol/index.js"));
  const target = join(root, "docs/protocol.md");
  const text = await readFile(target, "utf8");
  await writeFile(target, replaceErrorTable(text, renderErrorTable(ERROR_CODES)));
  console.log(`wrote the table of ${Object.keys(ERROR_CODES).length} codes into ${target}`);
}
