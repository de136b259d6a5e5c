// Proves that docs/reference/protocol.md says what is: the error table is the one in the code, the limits have
// their values, the worked example is a message with the entries that it names.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { renderErrorTable, replaceErrorTable } from "../../scripts/write-error-table.mjs";
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

import { parseHead, parseTrainerRecord } from "../../src/protocol/messages/records.ts";
import { hex } from "./raw-message.ts";

const TEXT = readFileSync(join(import.meta.dirname, "../../docs/reference/protocol.md"), "utf8");

test("the error table is that of the code: else run scripts/write-error-table.mjs", () => {
  const words = { REACTIONS, REJECTION_REACTIONS, reactionTo, reactionToRejection };
  expect(TEXT).toBe(replaceErrorTable(TEXT, renderErrorTable(ERROR_CODES, words)));
  expect(TEXT).toContain("| 41 | `JOURNAL_DAMAGED` | no | lost |  |");
  expect(TEXT).toContain("| 36 | `EARLY` | yes | retry | resend-in-step |");
});

test.each(Object.entries({ ...limits, PULL_WAIT_MS_MAX }))("the limit %s is %i", (name, value) => {
  expect(TEXT).toContain(`| \`${name}\` | ${value} |`);
});

test("the worked example is a message", () => {
  const [, example = ""] = /<!-- example -->\n```\n([^`]+)```/.exec(TEXT) ?? [];
  const lines = example.trim().split("\n");
  const digits = lines.map((line) => line.split(/ {2,}/)[0] ?? "");
  const message = decodeMessage(hex(digits.join("")));
  expect(parseTrainerRecord("set", parseHead(message.fields), message)).toEqual({
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

test("its links lead somewhere", () => {
  const anchors = [...TEXT.matchAll(/^#+ (.+)$/gm)].map(([, title = ""]) =>
    title
      .toLowerCase()
      .replaceAll(/[^a-z0-9 -]/g, "")
      .replaceAll(" ", "-"),
  );
  const links = [...TEXT.matchAll(/\]\(#([^)]+)\)/g)].map(([, anchor = ""]) => anchor);
  expect(links.length).toBeGreaterThan(20);
  expect(links.filter((anchor) => !anchors.includes(anchor))).toEqual([]);
});
