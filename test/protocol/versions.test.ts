// Proves that questions about versions and their answers arrive as they were sent, and that what is
// malformed, too long or too short is refused.
import { expect, test } from "vitest";
import type { Fields } from "../../src/protocol/codec.ts";
import { PARAMETERS_PER_REQUEST_MAX } from "../../src/protocol/limits.ts";
import {
  parseShardVersionsReply,
  parseShardVersionsRequest,
  parseVersionsReply,
  parseVersionsRequest,
  shardVersionsReply,
  shardVersionsRequest,
  versionsReply,
} from "../../src/protocol/messages/reads.ts";
import { codeOf } from "./refusal.ts";

const MANY = Array.from({ length: PARAMETERS_PER_REQUEST_MAX + 1 }, (_, i) => `p${i}`);

test("arrives as it was sent", () => {
  const reply = { versions: [{ least: 1, most: 3, updates: 4 }, null], silent: [7] };
  expect(parseVersionsReply(versionsReply(reply), 2)).toEqual(reply);
  const wanted = [{ parameter: "w", epoch: 2 }];
  expect(parseShardVersionsRequest(shardVersionsRequest(wanted))).toEqual(wanted);
  const held = [{ least: 1, most: 3, updates: 4, blocks: 3 }];
  expect(parseShardVersionsReply(shardVersionsReply(held), 1)).toEqual(held);
  expect(parseVersionsRequest({ names: MANY.slice(1) })).toEqual(MANY.slice(1));
});

test.each<[string, () => unknown, string]>([
  ["more names than a request has", () => parseVersionsRequest({ names: MANY }), "BAD_MESSAGE"],
  ["a name that none is", () => parseVersionsRequest({ names: [""] }), "BAD_NAME"],
  ["no name", () => parseVersionsRequest({ names: [7] }), "BAD_MESSAGE"],
  ["no names", () => parseVersionsRequest({}), "BAD_MESSAGE"],
  [
    "more parameters than a request has",
    () => parseShardVersionsRequest({ parameters: MANY.map((name) => [name, 1]) }),
    "BAD_MESSAGE",
  ],
  ["an epoch 0", () => parseShardVersionsRequest({ parameters: [["w", 0]] }), "BAD_MESSAGE"],
  ["no row", () => parseShardVersionsRequest({ parameters: ["w"] }), "BAD_MESSAGE"],
  ["fewer rows than names", () => parseVersionsReply(rows(), 1), "BAD_MESSAGE"],
  ["more rows than names", () => parseVersionsReply(rows(null, null), 1), "BAD_MESSAGE"],
  ["a short row", () => parseVersionsReply(rows([1, 1]), 1), "BAD_MESSAGE"],
  ["the least above the most", () => parseVersionsReply(rows([2, 1, 0]), 1), "BAD_MESSAGE"],
  ["no counts of an owner", () => parseShardVersionsReply(rows(null), 1), "BAD_MESSAGE"],
  ["no count of blocks", () => parseShardVersionsReply(rows([1, 1, 0]), 1), "BAD_MESSAGE"],
])("refuses %s", (_what, read, code) => {
  expect(codeOf(read)).toBe(code);
});

function rows(...versions: unknown[]): Fields {
  return { versions, silent: [] };
}
