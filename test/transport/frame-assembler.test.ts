// Proves that whatever a broker sends, in whatever pieces it arrives and however late chunks are
// given back, comes out unchanged and in order, cut between messages; that large messages of the
// lent prefix, and only those, are lent; that no chunk changes before it is given back, and one that
// is not lent never; and that reading takes few buffers. The assembler is fed random protocol bytes
// in random pieces, each target is overwritten before it is filled, as are chunks before they are
// given back.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { BufferPool, type Chunk } from "../../src/transport/buffers.ts";

import { FrameAssembler } from "../../src/transport/frame-assembler.ts";
import { greetingLine } from "./greeting-line.ts";

const KIB = 1024;
const LARGE_BYTES = 32 * KIB;
const PREFIX = "ps.j.log.";

interface Sent {
  readonly bytes: Buffer;
  readonly subject: string | undefined;
}

/** What a message is made of. */
interface Plan {
  readonly subject: string;
  readonly payloadBytes: number;
  readonly reply?: string | undefined;
  readonly blank?: string;
  readonly hasHeaders?: boolean;
}

let serial = 0;

function message({ subject, payloadBytes, reply: to, hasHeaders, blank = " " }: Plan): Sent {
  serial++;
  const reply = to === undefined ? "" : `${to} `;
  const headers = hasHeaders ? "NATS/1.0 503\r\n\r\n" : "";
  const line = hasHeaders
    ? `HMSG${blank}${subject}${blank}3 ${reply}${headers.length} ${headers.length + payloadBytes}\r\n`
    : `MSG${blank}${subject}${blank}7 ${reply}${payloadBytes}\r\n`;
  // Payloads full of line ends and of what looks like messages; no two are the same.
  const payload = Buffer.alloc(payloadBytes, `\r\nMSG ${PREFIX}${serial} 1 99999\r\n`);
  for (let at = 0; at + 4 <= payload.length; at += 509) payload.writeUInt32LE(at, at);
  return {
    bytes: Buffer.concat([Buffer.from(line + headers), payload, Buffer.from("\r\n")]),
    subject,
  };
}

function line(text: string): Sent {
  return { bytes: Buffer.from(`${text}\r\n`), subject: undefined };
}

const isLarge = ({ bytes }: Sent): boolean => bytes.length >= LARGE_BYTES;
const mayBeLent = (sent: Sent): boolean =>
  isLarge(sent) && sent.subject?.startsWith(PREFIX) === true;

/** A chunk that came out, what it held then, and where in the stream it lay. */
interface Received extends Chunk {
  readonly copy: Buffer;
  readonly start: number;
  readonly end: number;
  /** The read before which it is given back. */
  readonly dueAt: number;
}

/** Takes chunks as nats.js's transport does, and gives each back some reads after it came. */
class Consumer {
  readonly #delays: readonly number[];
  #lent: Received[] = [];
  #kept: Received[] = [];
  #reads = 0;
  #received = 0;

  /** `delays`: after how many reads chunks are given back, in turn; 0: at once. */
  constructor(delays: readonly number[]) {
    this.#delays = delays;
  }

  receive(chunk: Chunk, start: number): Received {
    const delay = this.#delays[this.#received++ % this.#delays.length] ?? 0;
    const received = {
      ...chunk,
      copy: Buffer.from(chunk.bytes),
      start,
      end: start + chunk.bytes.length,
      dueAt: this.#reads + delay,
    };
    if (chunk.lender === undefined) this.#kept.push(received);
    else if (delay === 0) this.#giveBack(received);
    else this.#lent.push(received);
    return received;
  }

  /** The next read: its target is known, but nothing was written to it. */
  onRead(): void {
    this.#reads++;
    const due = this.#lent.filter(({ dueAt }) => dueAt <= this.#reads);
    this.#lent = this.#lent.filter(({ dueAt }) => dueAt > this.#reads);
    for (const received of due) this.#giveBack(received);
  }

  /** Gives everything back, and looks at what was not lent. */
  end(): void {
    for (const received of this.#lent) this.#giveBack(received);
    for (const { bytes, copy } of this.#kept) expect(bytes.equals(copy)).toBe(true);
    this.#lent = [];
  }

  #giveBack({ bytes, copy, lender }: Received): void {
    expect(bytes.equals(copy)).toBe(true);
    bytes.fill(0xdd);
    lender?.giveBack(bytes);
  }
}

interface Reading {
  readonly chunks: readonly Received[];
  /** The memory that was read into. */
  readonly memories: ReadonlySet<ArrayBufferLike>;
}

/** Reads the greeting, without which no message is taken. */
function greet(assembler: FrameAssembler): void {
  const target = assembler.target();
  assembler.took(target.write(greetingLine(), "latin1"));
}

/** Feeds the bytes in pieces of the given sizes, each at most what the target takes. */
function read(
  stream: Buffer,
  pieces: readonly number[],
  consumer: Consumer,
  pool?: BufferPool,
): Reading {
  const chunks: Received[] = [];
  const memories = new Set<ArrayBufferLike>();
  let end = 0;
  let isGreeted = false;
  const assembler = new FrameAssembler((chunk) => {
    if (!isGreeted) return;
    chunks.push(consumer.receive(chunk, end));
    end += chunk.bytes.length;
  }, pool && { prefix: PREFIX, pool });
  greet(assembler);
  isGreeted = true;
  for (let at = 0, turn = 0; at < stream.length; turn++) {
    const target = assembler.target();
    expect(target.length).toBeGreaterThan(0);
    memories.add(target.buffer);
    consumer.onRead();
    const wanted = pieces[turn % pieces.length] ?? 1;
    const bytes = Math.min(wanted, target.length, stream.length - at);
    // A reader may write anywhere in the target. All of it each time would take long.
    target.subarray(0, wanted < KIB ? KIB : target.length).fill(0xee);
    stream.copy(target, 0, at, at + bytes);
    assembler.took(bytes);
    at += bytes;
  }
  return { chunks, memories };
}

const streamOf = (sent: readonly Sent[]): Buffer => Buffer.concat(sent.map(({ bytes }) => bytes));

/** Checks what came out of a stream of whole messages. */
function check(sent: readonly Sent[], chunks: readonly Received[]): void {
  const copies = Buffer.concat(chunks.map(({ copy }) => copy));
  expect(copies.equals(streamOf(sent))).toBe(true);
  let at = 0;
  let turn = 0;
  for (const { start, end, lender } of chunks) {
    const within: Sent[] = [];
    for (let next = sent[turn]; next !== undefined && at < end; next = sent[++turn]) {
      within.push(next);
      at += next.bytes.length;
    }
    // Between messages, as the one before ended there, too.
    expect([start, at]).toEqual([at - streamOf(within).length, end]);
    expect(within.every(mayBeLent)).toBe(lender !== undefined);
    expect(within.some(mayBeLent)).toBe(lender !== undefined);
    // One that may be kept for ever keeps no other.
    if (lender === undefined && within.some(isLarge)) expect(within).toHaveLength(1);
  }
}

const anyPayloadBytes = fc.oneof(
  { weight: 3, arbitrary: fc.nat(300) },
  { weight: 4, arbitrary: fc.integer({ min: 60 * KIB, max: 70 * KIB }) },
  // About the least size of a large message, and the sizes of reads and of what is read in place.
  {
    weight: 3,
    arbitrary: fc
      .tuple(fc.constantFrom(32, 64, 128, 192, 320, 512), fc.integer({ min: -300, max: 100 }))
      .map(([kib, more]) => kib * KIB + more),
  },
  { weight: 2, arbitrary: fc.nat(700 * KIB) },
);

const anySent: fc.Arbitrary<Sent> = fc.oneof(
  {
    weight: 1,
    arbitrary: fc
      .constantFrom(
        "PING",
        "PONG",
        "+OK",
        "-ERR 'Stale Connection'",
        greetingLine({ a: "MSG 1 2 3" }).trim(),
      )
      .map(line),
  },
  {
    weight: 5,
    arbitrary: fc
      .record({
        subject: fc.constantFrom(
          ...[`${PREFIX}1`, `${PREFIX}1`, `${PREFIX}22.push.w`],
          ...["_INBOX.q", "ps.j.lo", "ps.j.loge.1", `x.${PREFIX}1`],
        ),
        payloadBytes: anyPayloadBytes,
        reply: fc.constantFrom(undefined, "", "_INBOX.a.b"),
        blank: fc.constantFrom(" ", "\t", " \t "),
        hasHeaders: fc.boolean(),
      })
      .map(message),
  },
);

const anyStream = fc.array(anySent, { minLength: 1, maxLength: 40, size: "max" });

/** Tiny pieces only would take long over large payloads. */
const anyPieces = fc
  .array(
    fc.oneof(
      fc.integer({ min: 1, max: 50 }),
      fc.integer({ min: 1, max: 200_000 }),
      fc.constant(Number.POSITIVE_INFINITY),
    ),
    { minLength: 1, maxLength: 8 },
  )
  .chain((pieces) => fc.constantFrom(65_536, 1_000_000).map((last) => [...pieces, last]));

const anyDelays = fc.array(fc.oneof(fc.constant(1), fc.nat(5)), { minLength: 1, maxLength: 6 });

describe("frame assembler", () => {
  test("gives out what came in, cut between messages, and lends what may be lent", () => {
    fc.assert(
      fc.property(anyStream, anyPieces, anyDelays, (sent, pieces, delays) => {
        const consumer = new Consumer(delays);
        check(sent, read(streamOf(sent), pieces, consumer, new BufferPool()).chunks);
        consumer.end();
      }),
      { numRuns: 120 },
    );
  });

  test("lends nothing without a prefix", () => {
    fc.assert(
      fc.property(anyStream, anyPieces, (planned, pieces) => {
        const sent = planned.map(({ bytes }) => ({ bytes, subject: undefined }));
        const consumer = new Consumer([1]);
        const { chunks } = read(streamOf(sent), pieces, consumer);
        check(sent, chunks);
        consumer.end();
      }),
      { numRuns: 60 },
    );
  });

  test("takes back what it lent before its connection broke, while another one reads", () => {
    fc.assert(
      fc.property(anyStream, anyStream, anyPieces, anyDelays, (first, second, pieces, delays) => {
        const consumer = new Consumer(delays);
        const pool = new BufferPool();
        const broken = streamOf(first);
        read(broken.subarray(0, broken.length - 1), pieces, consumer, pool);
        check(second, read(streamOf(second), pieces, consumer, pool).chunks);
        consumer.end();
      }),
      { numRuns: 60 },
    );
  });

  test("gives out several lent messages at a time where they were read, into two buffers", () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 50 * KIB, max: 100 * KIB }), { minLength: 100, maxLength: 120 }),
        fc.constantFrom(0, 1),
        (sizes, delay) => {
          // The first one is read into a buffer of its own.
          const sent = [1 << 20, ...sizes].map((payloadBytes) =>
            message({ subject: `${PREFIX}1`, payloadBytes }),
          );
          const consumer = new Consumer([delay]);
          const { chunks, memories } = read(streamOf(sent), [1e9], consumer, new BufferPool());
          check(sent, chunks);
          expect(chunks.every(({ bytes }) => memories.has(bytes.buffer))).toBe(true);
          expect(memories.size).toBeLessThanOrEqual(3);
          expect(chunks.length).toBeLessThanOrEqual(sent.length / 3);
        },
      ),
      { numRuns: 5 },
    );
  });

  test("continues behind lent bytes, so that small reads move little", () => {
    const sent = Array.from({ length: 60 }, () =>
      message({ subject: `${PREFIX}1`, payloadBytes: 64 * KIB }),
    );
    const consumer = new Consumer([1]);
    const { chunks } = read(streamOf(sent), [65_536], consumer, new BufferPool());
    check(sent, chunks);
    const moves = chunks.filter(({ bytes }, i) => bytes.buffer !== chunks[i - 1]?.bytes.buffer);
    expect(moves.length).toBeLessThan(sent.length / 3);
  });

  test("reads the largest messages into buffers of the pool, after little of them has come", () => {
    const sent = Array.from({ length: 10 }, () =>
      message({ subject: `${PREFIX}1`, payloadBytes: 1 << 20 }),
    );
    const pool = new BufferPool();
    const targets: number[] = [];
    const assembler = new FrameAssembler(({ bytes, lender }) => lender?.giveBack(bytes), {
      prefix: PREFIX,
      pool,
    });
    greet(assembler);
    const stream = streamOf(sent);
    for (let at = 0; at < stream.length; ) {
      const target = assembler.target();
      const bytes = Math.min(target.length, stream.length - at);
      targets.push(bytes);
      assembler.took(stream.copy(target, 0, at, at + bytes));
      at += bytes;
    }
    const [, rest, ...others] = targets;
    expect(rest).toBeGreaterThan(512 * KIB);
    expect(others.filter((_bytes, i) => i % 2 === 0)).toEqual(Array(9).fill(128 * KIB));
    expect(others).toHaveLength(18);
    // Others may need them next: the pool is shared.
    expect(pool.take(stream.length / 10).buffer.byteLength).toBeGreaterThan(1 << 20);
  });

  test("leaves out the small messages of a muted sender, and nothing else", () => {
    const subjects = ["ps.j.lifecycle.flood.status", "ps.j.lifecycle.alice.renew", "flood.x"];
    const anySmall = fc.oneof(
      fc.constant(line("PING")),
      fc
        .record({
          subject: fc.constantFrom(...subjects),
          payloadBytes: fc.nat(300),
          reply: fc.constantFrom(undefined, "", "_INBOX.a.b"),
          blank: fc.constantFrom(" ", "\t", "  "),
        })
        .map(message),
      fc.constant(subjects[0] ?? "").map((subject) => message({ subject, payloadBytes: 40_000 })),
    );
    fc.assert(
      fc.property(
        fc.array(anySmall, { minLength: 1, maxLength: 60 }),
        anyPieces,
        (sent, pieces) => {
          const out: Buffer[] = [];
          const emit = ({ bytes }: Chunk): void => void out.push(Buffer.from(bytes));
          const assembler = new FrameAssembler(emit, undefined, (sender) => sender === "flood");
          greet(assembler);
          out.length = 0;
          const stream = streamOf(sent);
          for (let at = 0, turn = 0; at < stream.length; turn++) {
            const target = assembler.target();
            const wanted = Math.min(pieces[turn % pieces.length] ?? 1, target.length);
            const bytes = stream.copy(target, 0, at, at + wanted);
            assembler.took(bytes);
            at += bytes;
          }
          const heard = sent.filter(
            (one) => isLarge(one) || !(one.subject ?? "").match(/(^|\.)flood\.[^.]*$/),
          );
          expect(Buffer.concat(out).equals(streamOf(heard))).toBe(true);
        },
      ),
      { numRuns: 60 },
    );
  });

  test("takes a line longer than its buffer", () => {
    const sent = [
      line(greetingLine({ cluster: "x".repeat(1_400_000) }).trim()),
      line("PING"),
      message({ subject: `${PREFIX}1`, payloadBytes: 64 * KIB }),
    ];
    for (const pool of [undefined, new BufferPool()]) {
      const planned = pool ? sent : sent.map(({ bytes }) => ({ bytes, subject: undefined }));
      const consumer = new Consumer([1]);
      check(planned, read(streamOf(sent), [1_000_000], consumer, pool).chunks);
      consumer.end();
    }
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
