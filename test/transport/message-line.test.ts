// Proves which lines are taken for messages and how long these are, against the grammar as a pattern; and
// whose message one is, by the token before the last one of its subject.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { bytesAfterLine, senderToken } from "../../src/transport/message-line.ts";
import { codeOf } from "../protocol/refusal.ts";

const MESSAGE = /^MSG [^ \t\r]+ \d{1,15}(?: [^ \t\r]+)? (\d{1,15})$/;

test("a line is a message if the grammar says so, of the size that it says", () => {
  const piece = fc.oneof(
    fc.constantFrom("a.b", "7", "12", " ", "  ", "\t", "\r", "x1", "1x", "-1", "1".repeat(16), "é"),
    fc.constantFrom("0", "999999999999999"),
  );
  const line = fc
    .array(piece, { maxLength: 7 })
    .chain((parts) => fc.constantFrom(parts.join(" "), parts.join("")))
    .map((text) => `MSG ${text}`);
  fc.assert(
    fc.property(line, fc.nat(3), (text, before) => {
      const bytes = Buffer.from(`${"?".repeat(before)}${text}\r\n`, "latin1");
      const size = MESSAGE.exec(text)?.[1];
      const after = (): number => bytesAfterLine(bytes, before, bytes.length - 1);
      if (size === undefined) expect(codeOf(after)).toBe("BAD_MESSAGE");
      else expect(after()).toBe(Number(size) + 2);
    }),
    { numRuns: 3_000 },
  );
});

describe("the sender of a message", () => {
  test.each([
    ["MSG ps.j.lifecycle.alice.status 1 5", "alice"],
    ["HMSG ps.j.shard.0.b=2Eb.outcome 1 r.e.p.ly 12 15", "b=2Eb"],
    ["MSG a.b 1 5", "a"],
    ["MSG a 1 x.y.z 5", ""],
    ["MSG .b 1 5", ""],
    ["MSG a..b 1 5", ""],
  ])("in %s", (line, sender) => {
    expect(senderToken(Buffer.from(`PING\r\n${line}\r\n`), 6)).toBe(sender);
  });
});
