// Proves that the documents say what the code does: the tables of errors and limits are those of the sources, the
// protocol's worked example is a message with the entries that it names, and the README shows the example.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import {
  renderErrorTable,
  renderLimitTable,
  replaceTable,
} from "../../scripts/write-reference-tables.mjs";
import { decodeMessage } from "../../src/protocol/codec.ts";
import {
  ERROR_CODES,
  REACTIONS,
  REJECTION_REACTIONS,
  reactionTo,
  reactionToRejection,
} from "../../src/protocol/errors.ts";
import * as limits from "../../src/protocol/limits.ts";
import { PULL_WAIT_MS_MAX } from "../../src/protocol/messages/reads.ts";
import { parseRecordHeader, parseTrainerRecord } from "../../src/protocol/messages/records.ts";
import { hex } from "../protocol/raw-message.ts";

const ROOT = join(import.meta.dirname, "../..");
const read = (path: string) => readFileSync(join(ROOT, path), "utf8");

test("the table of errors is that of the code: else run scripts/write-reference-tables.mjs", () => {
  const text = read("docs/reference/errors.md");
  const words = { REACTIONS, REJECTION_REACTIONS, reactionTo, reactionToRejection };
  expect(text).toBe(replaceTable(text, renderErrorTable(ERROR_CODES, words)));
  expect(text).toContain("| 41 | `JOURNAL_DAMAGED` | no | lost |  |");
  expect(text).toContain("| 36 | `EARLY` | yes | retry | resend-in-step |");
});

test("the table of limits is that of the code: else run scripts/write-reference-tables.mjs", () => {
  const text = read("docs/reference/limits.md");
  const table = renderLimitTable(read("src/protocol/limits.ts"), limits);
  expect(text).toBe(replaceTable(text, table));
  const missing = Object.keys(limits).filter((name) => !table.includes(`| \`${name}\` |`));
  expect(missing).toEqual([]);
  expect(table).not.toContain("undefined");
  expect(text).toContain(
    `\`PULL_WAIT_MS_MAX\`, how long an owner holds a request, is ${PULL_WAIT_MS_MAX}.`,
  );
});

test("the worked example is a message", () => {
  const [, example = ""] =
    /<!-- example -->\n```\n([^`]+)```/.exec(read("docs/reference/protocol.md")) ?? [];
  const lines = example.trim().split("\n");
  const digits = lines.map((line) => line.split(/ {2,}/)[0] ?? "");
  const message = decodeMessage(hex(digits.join("")));
  expect(parseTrainerRecord("set", parseRecordHeader(message.fields), message)).toEqual({
    verb: "set",
    session: 1,
    n: 1,
    done: 0,
    reply: "",
    epoch: 1,
    dtype: "float32",
  });
  expect(new Float32Array(Uint8Array.from(message.data).buffer)).toEqual(Float32Array.of(1, -2.5));
});

test("the trainer of the README is the example", () => {
  expect(read("README.md")).toContain(`\`\`\`ts\n${read("examples/typescript/minimal.ts")}\`\`\``);
});
