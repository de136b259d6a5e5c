// Proves that the assembler gives out a prefix of its input that nats.js's own parser takes without an error,
// whatever a broker sends and in whatever pieces; that malformed input is refused as BAD_MESSAGE; and that no
// memory is allocated merely because a line announces a size. Streams of valid messages are cut, changed and
// repeated at random places.
import { Parser } from "@nats-io/nats-core/internal";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { BufferPool } from "../../src/transport/buffers.ts";
import { FrameAssembler } from "../../src/transport/frame-assembler.ts";
import { codeOf, refusalOf } from "../protocol/refusal.ts";
import { greetingLine } from "./greeting-line.ts";

const MESSAGE_BYTES_MAX = (64 << 20) + (64 << 10) + 2;

/** Feeds bytes in pieces, until the end or a refusal; gives what came out. */
function feed(
  stream: Buffer,
  options: { readonly pieces?: readonly number[]; readonly isLent?: boolean } = {},
): { readonly out: Buffer; readonly code: string; readonly targetBytesMax: number } {
  const { pieces = [Number.POSITIVE_INFINITY], isLent = false } = options;
  const chunks: Buffer[] = [];
  const assembler = new FrameAssembler(
    ({ bytes, lender }) => {
      chunks.push(Buffer.from(bytes));
      lender?.giveBack(bytes);
    },
    isLent ? { prefix: "ps.", pool: new BufferPool() } : undefined,
  );
  let targetBytesMax = 0;
  const code = codeOf(() => {
    for (let at = 0, turn = 0; at < stream.length; turn++) {
      const target = assembler.target();
      targetBytesMax = Math.max(targetBytesMax, target.length);
      const wanted = Math.min(pieces[turn % pieces.length] ?? 1, target.length);
      const bytes = stream.copy(target, 0, at, at + wanted);
      assembler.took(bytes);
      at += bytes;
    }
  });
  return { out: Buffer.concat(chunks), code, targetBytesMax };
}

const greeted = (text: string): Buffer => Buffer.from(greetingLine() + text, "latin1");

describe("no broker sends this, and it is refused", () => {
  test.each([
    ["a message of 4.5 GB", "MSG a 1 4500000000\r\n"],
    ["a message of more than the ceiling", "MSG a 1 99999999\r\n"],
    ["a message with headers of 4.5 GB", "HMSG a 1 12 4500000000\r\n"],
    ["a size that is too long", "MSG a 1 1e9\r\n"],
    ["a size below nothing", "MSG a 1 -5\r\n"],
    ["a size of many digits", `MSG a 1 ${"9".repeat(400)}\r\n`],
    ["a size that is none", "MSG a 1 NaN\r\n"],
    ["no size", "MSG a 1\r\n"],
    ["no subscription", "MSG a x 1\r\n"],
    ["too many arguments", "MSG a 1 b c 1\r\n"],
    ["headers longer than all", "HMSG a 1 9 8\r\n"],
    ["no length of headers", "HMSG a 1 9\r\n"],
    ["a line without CR", "PING\n"],
    ["an empty line", "\r\n"],
    ["a command of a client", "PUB a 1\r\n"],
    ["noise", "\u0000\u001b[2J\u009b\r\n"],
    ["a payload without its end", "MSG a 1 3\r\nabcde\r\n"],
    ["a large payload without its end", `MSG ps.a 1 70000\r\n${"x".repeat(70_010)}`],
    ["a larger payload without its end", `MSG ps.a 1 300000\r\n${"x".repeat(300_010)}`],
    ["a line without an end", `MSG ${"a".repeat(70_000)}`],
    ["a greeting without an end", `INFO {${" ".repeat(2_200_000)}`],
    ["a greeting that is no JSON", "INFO {max_payload}\r\n"],
    ["a greeting without a version", "INFO {}\r\n"],
    ["a version that is none", greetingLine({ version: "new" })],
    ["a max_payload that is none", greetingLine({ max_payload: "8 MB" })],
    ["addresses that are none", greetingLine({ connect_urls: ["[::1", 7] })],
    ["an address with a path", greetingLine({ connect_urls: ["a/b:1"] })],
  ])("%s", (_what, text) => {
    for (const isLent of [false, true]) {
      const { code, out, targetBytesMax } = feed(greeted(text), { isLent });
      expect(code).toBe("BAD_MESSAGE");
      // The greeting may come with other lines, but nothing of what is wrong.
      expect(greeted("").toString("latin1").startsWith(out.toString("latin1"))).toBe(true);
      expect(targetBytesMax).toBeLessThan(8 << 20);
    }
  });

  test("a message before its greeting", () => {
    expect(feed(Buffer.from("MSG a 1 0\r\n\r\n")).code).toBe("BAD_MESSAGE");
  });

  test("and shown with its control characters escaped", () => {
    const assembler = new FrameAssembler(() => undefined);
    const bytes = assembler.target().write("\u001b[2Jhello\u009b\r\n", "latin1");
    const { message } = refusalOf(() => assembler.took(bytes));
    expect(message).toContain("\\x1b[2Jhello\\x9b");
  });
});

test("what came whole before malformed input is taken", () => {
  for (const size of [3, 20_000, 70_000, 300_000]) {
    const whole = `MSG ps.a 1 ${size}\r\n${"x".repeat(size)}\r\nMSG b 1 1\r\ny\r\n`;
    for (const after of ["MSG a b 1 c 3\r\nabc\r\n", "MSG a 1 70000\r\n".padEnd(70_100, "x")]) {
      for (const isLent of [false, true]) {
        const { out, code } = feed(greeted(whole + after), { isLent });
        expect([code, out.equals(greeted(whole))]).toEqual(["BAD_MESSAGE", true]);
      }
    }
  }
});

test("messages of up to 8 MiB are taken, even where max_payload has been lowered since", () => {
  const lowered = greetingLine({ max_payload: 1_000 });
  const size = 8 << 20;
  const message = `MSG ps.a 1 ${size}\r\n${"x".repeat(size)}\r\n`;
  const { out, code } = feed(Buffer.from(lowered + message, "latin1"));
  expect([code, out.length]).toEqual(["", lowered.length + message.length]);
  expect(feed(Buffer.from(`${lowered}MSG ps.a 1 ${size + 70_000}\r\n`)).code).toBe("BAD_MESSAGE");
});

const anyMessage = fc
  .record({
    subject: fc.constantFrom("a", "ps.j.log.0", "_INBOX.q.\u001b[2J", "\u00ff"),
    reply: fc.constantFrom("", " ", "_INBOX.b ", "_INBOX.b\t"),
    payload: fc.oneof(fc.nat(40), fc.constantFrom(33_000, 70_000, 300_000)),
    hasHeaders: fc.boolean(),
  })
  .map(({ subject, reply, payload, hasHeaders }) => {
    const body = "MSG b 1 9\r\n".repeat(payload / 11 + 1).slice(0, payload);
    return hasHeaders
      ? `HMSG ${subject} 1 ${reply}12 ${12 + payload}\r\nNATS/1.0\r\n\r\n${body}\r\n`
      : `MSG ${subject} 1 ${reply}${payload}\r\n${body}\r\n`;
  });
const anyLine = fc.constantFrom(
  ...["PING\r\n", "PONG \r\n", "+OK\r\n", "-ERR\t'x'\r\n", greetingLine()],
  greetingLine().replace("INFO ", "info\t"),
);
const anyStream = fc
  .array(fc.oneof(anyMessage, anyLine), { minLength: 1, maxLength: 12 })
  .map((parts) => Buffer.from(greetingLine() + parts.join(""), "latin1"));

/** A change of a few bytes at a place: replaced, removed, repeated. */
const anyChange = fc.record({
  at: fc.double({ min: 0, max: 1, noNaN: true }),
  remove: fc.nat(20),
  insert: fc.oneof(
    fc.constantFrom(
      "",
      "\r\n",
      "\n",
      " ",
      "MSG a 1 4500000000\r\n",
      "HMSG a 1 5 3\r\n",
      "9999",
      "-",
    ),
    fc.string({ maxLength: 12 }),
  ),
});

test("whatever a stream has become, nats.js reads what comes out of it without an error", () => {
  const anyPieces = fc.array(fc.oneof(fc.integer({ min: 1, max: 60 }), fc.nat(200_000)), {
    minLength: 1,
    maxLength: 6,
  });
  fc.assert(
    fc.property(
      anyStream,
      fc.array(anyChange, { maxLength: 3 }),
      anyPieces,
      fc.boolean(),
      (whole, changes, small, isLent) => {
        let stream = whole;
        for (const { at, remove, insert } of changes) {
          const place = Math.floor(at * stream.length);
          const rest = stream.subarray(place + remove);
          stream = Buffer.concat([stream.subarray(0, place), Buffer.from(insert, "latin1"), rest]);
        }
        const pieces = [...small.map((piece) => Math.max(1, piece)), 100_000];
        const { out, code, targetBytesMax } = feed(stream, { pieces, isLent });
        expect(out.equals(stream.subarray(0, out.length))).toBe(true);
        expect(["", "BAD_MESSAGE"]).toContain(code);
        if (changes.length === 0) expect([code, out.length]).toEqual(["", stream.length]);
        expect(targetBytesMax).toBeLessThanOrEqual(MESSAGE_BYTES_MAX);
        let messages = 0;
        const parser = new Parser({ push: () => void messages++ });
        parser.parse(out);
        // Whole messages came out: the parser waits for the next one.
        expect([parser.state, messages]).toEqual([0, expect.any(Number)]);
      },
    ),
    { numRuns: 400 },
  );
});
