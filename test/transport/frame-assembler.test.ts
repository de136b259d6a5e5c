// Proves that whatever a broker sends, in whatever pieces it arrives, comes out unchanged and in
// order, that a large message always comes out whole in one chunk, and that only messages of the
// lent prefix are lent. The assembler is fed random protocol bytes in random pieces.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { BufferPool } from "../../src/transport/buffer-pool.ts";
import { type Chunk, FrameAssembler } from "../../src/transport/frame-assembler.ts";

interface Sent {
  readonly bytes: Buffer;
  readonly large: boolean;
  readonly subject: string | undefined;
}

function message(subject: string, size: number, reply: boolean): Sent {
  const line = `MSG ${subject} 7 ${reply ? "_INBOX.a.b " : ""}${size}\r\n`;
  // Payloads full of line ends and of what looks like messages.
  const payload = Buffer.alloc(size, "\r\nMSG x 1 99\r\n");
  const bytes = Buffer.concat([Buffer.from(line), payload, Buffer.from("\r\n")]);
  return { bytes, large: bytes.length >= 32 * 1024, subject };
}

function withHeaders(size: number): Sent {
  const headers = "NATS/1.0 503\r\n\r\n";
  const line = `HMSG _INBOX.x 3 ${headers.length} ${headers.length + size}\r\n`;
  const bytes = Buffer.concat([
    Buffer.from(line + headers),
    Buffer.alloc(size, 65),
    Buffer.from("\r\n"),
  ]);
  return { bytes, large: bytes.length >= 32 * 1024, subject: "_INBOX.x" };
}

function line(text: string): Sent {
  return { bytes: Buffer.from(`${text}\r\n`), large: false, subject: undefined };
}

/** Feeds the bytes in pieces of the given sizes, and copies what comes out as it comes. */
function feed(sent: readonly Sent[], pieces: readonly number[], prefix?: string): Chunk[] {
  const stream = Buffer.concat(sent.map(({ bytes }) => bytes));
  const chunks: Chunk[] = [];
  const lending = prefix === undefined ? undefined : { prefix, pool: new BufferPool() };
  const assembler = new FrameAssembler(({ bytes, lent }) => {
    chunks.push({ bytes: Buffer.from(bytes), lent });
    if (lent) {
      bytes.fill(0);
      assembler.giveBack(bytes);
    }
  }, lending);
  for (let at = 0, turn = 0; at < stream.length; turn++) {
    const target = assembler.target();
    const wanted = pieces[turn % pieces.length] ?? 1;
    const bytes = Math.min(wanted, target.length, stream.length - at);
    stream.copy(target, 0, at, at + bytes);
    assembler.took(bytes);
    at += bytes;
  }
  return chunks;
}

const anySent = fc.oneof(
  fc
    .constantFrom("PING", "PONG", "+OK", "-ERR 'Stale Connection'", 'INFO {"a":"MSG 1 2 3"}')
    .map(line),
  fc
    .tuple(fc.constantFrom("ps.j.log.1", "_INBOX.q"), fc.nat(40_000), fc.boolean())
    .map(([subject, size, reply]) => message(subject, size, reply)),
  fc
    .tuple(fc.constant("ps.j.log.2"), fc.integer({ min: 32_000, max: 300_000 }))
    .map(([subject, size]) => message(subject, size, true)),
  fc.nat(70_000).map(withHeaders),
);

describe("frame assembler", () => {
  test("gives out what came in, large messages whole", () => {
    fc.assert(
      fc.property(
        fc.array(anySent, { minLength: 1, maxLength: 12 }),
        fc.array(fc.oneof(fc.integer({ min: 1, max: 50 }), fc.integer({ min: 1, max: 200_000 })), {
          minLength: 1,
          maxLength: 8,
        }),
        (sent, pieces) => {
          // Tiny pieces only would take long over large payloads.
          const chunks = feed(sent, [...pieces, 65_536], "ps.j.log.");
          const expected = Buffer.concat(sent.map(({ bytes }) => bytes));
          expect(Buffer.concat(chunks.map(({ bytes }) => bytes)).equals(expected)).toBe(true);
          const large = sent.filter((one) => one.large);
          const whole = chunks.filter(({ bytes }) => bytes.length >= 32 * 1024);
          for (const one of large) {
            expect(whole.some(({ bytes }) => bytes.equals(one.bytes))).toBe(true);
          }
          const lent = chunks.filter((chunk) => chunk.lent).length;
          expect(lent).toBe(large.filter((one) => one.subject?.startsWith("ps.j.log.")).length);
        },
      ),
      { numRuns: 150 },
    );
  });

  test("lends nothing without a prefix", () => {
    const chunks = feed([message("ps.j.log.1", 100_000, true)], [65_536]);
    expect(chunks.map(({ lent }) => lent)).toEqual([false]);
  });

  test("takes a line longer than its buffer", () => {
    const greeting = line(`INFO {"connect_urls":"${"x".repeat(400_000)}"}`);
    const chunks = feed([greeting, line("PING")], [1_000_000]);
    expect(Buffer.concat(chunks.map(({ bytes }) => bytes)).length).toBe(greeting.bytes.length + 6);
  });
});

describe("frame pool", () => {
  test("gives a buffer out again, and never to two", () => {
    const pool = new BufferPool();
    const first = pool.take(100_000);
    pool.giveBack(first);
    const second = pool.take(101_000);
    const third = pool.take(101_000);
    expect(second.buffer).toBe(first.buffer);
    expect(third.buffer).not.toBe(second.buffer);
    expect([second.length, third.length]).toEqual([101_000, 101_000]);
  });

  test("keeps a bounded number of bytes", () => {
    const pool = new BufferPool();
    const taken = Array.from({ length: 40 }, () => pool.take(1 << 20));
    for (const buffer of taken) pool.giveBack(buffer);
    const again = Array.from({ length: 40 }, () => pool.take(1 << 20).buffer);
    expect(again.filter((memory) => taken.some(({ buffer }) => buffer === memory))).toHaveLength(8);
  });
});
