// Proves that a line is taken for a message if nats.js's own parser takes it for one, whatever blanks and letters
// it is written with, and to be as long; and whose message one is, by the token before the last one of its subject.
import { Parser } from "@nats-io/nats-core/internal";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { bytesAfterLine, hasSubjectPrefix, senderToken } from "../../src/transport/message-line.ts";
import { codeOf } from "../protocol/refusal.ts";

/** The size that nats.js reads in a message line; undefined if it refuses the line. */
function sizeByParser(line: string): number | undefined {
  const parser = new Parser({ push: () => undefined });
  try {
    parser.parse(Buffer.from(`${line}\r\n`, "latin1"));
  } catch {
    return undefined;
  }
  return (parser as unknown as { readonly ma: { readonly size: number } }).ma.size;
}

function sizeOf(line: string, before = 0): number | undefined {
  const bytes = Buffer.from(`${"?".repeat(before)}${line}\r\n`, "latin1");
  let size: number | undefined;
  const code = codeOf(() => {
    size = bytesAfterLine(bytes, before, bytes.length - 1) - 2;
  });
  expect(["", "BAD_MESSAGE"]).toContain(code);
  return size;
}

const anyBlanks = fc.constantFrom(" ", " ", "  ", "\t", " \t", "");
const anyWord = fc.constantFrom("MSG", "MSG", "HMSG", "msg", "Hmsg", "MSGX", "M");
const anyArgument = fc.constantFrom(
  ...["a.b", "7", "12", "0", "67108864", "x1", "1x", "-1", "1".repeat(16), "\u00e9", ""],
);

test("a line is a message if nats.js takes it for one, of the same size", () => {
  const anyLine = fc
    .tuple(anyWord, fc.array(fc.tuple(anyBlanks, anyArgument), { maxLength: 7 }), anyBlanks)
    .map(([word, parts, end]) => `${word}${parts.flat().join("")}${end}`);
  fc.assert(
    fc.property(anyLine, fc.nat(3), (line, before) => {
      // The assembler has a limit of its own.
      fc.pre(!/\d{9,15}(?!\d)/.test(line));
      expect(sizeOf(line, before)).toBe(sizeByParser(line));
    }),
    { numRuns: 5_000 },
  );
});

describe("each of these is a message of 23 bytes", () => {
  test.each([
    ["an empty reply, as nats-server 2.9 writes it", "MSG _INBOX.a 3  23"],
    ["an empty reply and headers", "HMSG _INBOX.a 3  12 23"],
    ["tabs", "MSG\t_INBOX.a\t3\t23"],
    ["tabs and headers", "HMSG\t_INBOX.a\t3\tr\t12\t23"],
    ["blanks at the end", "MSG _INBOX.a 3 23 \t"],
    ["small letters", "msg _INBOX.a 3 r 23"],
  ])("with %s", (_what, line) => {
    expect([sizeOf(line), sizeByParser(line)]).toEqual([23, 23]);
    const bytes = Buffer.from(`PING\r\n${line}\r\n`, "latin1");
    expect(hasSubjectPrefix(bytes, 6, Buffer.from("_INBOX."))).toBe(true);
    expect(hasSubjectPrefix(bytes, 6, Buffer.from("INBOX."))).toBe(false);
  });
});

test.each([
  ...["PING", "PING ", "pong\t", "+OK", "+ok ", "-ERR 'x'", "-err\t 'x'"],
  ...['INFO {"a":1}', 'INFO\t{"a":1} ', 'info  {"a":1}'],
])("%j has no payload", (line) => {
  const parser = new Parser({ push: () => undefined });
  parser.parse(Buffer.from(`${line}\r\n`));
  const bytes = Buffer.from(`${line}\r\n`);
  expect([parser.state, bytesAfterLine(bytes, 0, bytes.length - 1)]).toEqual([0, 0]);
});

describe("the sender of a message", () => {
  test.each([
    ["MSG ps.j.lifecycle.alice.status 1 5", "alice"],
    ["HMSG ps.j.shard.0.b=2Eb.outcome 1 r.e.p.ly 12 15", "b=2Eb"],
    ["MSG a.b 1 5", "a"],
    ["MSG  \t ps.j.lifecycle.alice.status\t1  5", "alice"],
    ["hmsg\tps.j.lifecycle.alice.status\t1\t12\t15", "alice"],
    ["MSG a 1 x.y.z 5", ""],
    ["MSG .b 1 5", ""],
    ["MSG a..b 1 5", ""],
  ])("in %s", (line, sender) => {
    expect(senderToken(Buffer.from(`PING\r\n${line}\r\n`), 6)).toBe(sender);
  });
});
