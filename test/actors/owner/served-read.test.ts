// Proves what batched reads are answered, over a connection that only hands messages on: the values of
// each entry, in pieces of a bounded size, each of the fold as it is when the piece is made; no bytes of what
// the reader has; errors that name the entry; and no more memory or turns than a trainer's share.
import { beforeEach, describe, expect, test, vi } from "vitest";
import { ShardAnswers } from "../../../src/actors/owner/answers.ts";
import { FairServer, RefusalBudget } from "../../../src/actors/owner/fair-server.ts";
import { OwnerCounters } from "../../../src/actors/owner/owner-counters.ts";
import {
  FragmentQueue,
  PositionQueue,
  StepQueue,
} from "../../../src/actors/owner/pending-reads.ts";
import { Responder } from "../../../src/actors/owner/responder.ts";
import {
  FailedBlocks,
  refusingHandler,
  ShardSubscriptions,
} from "../../../src/actors/owner/subscriptions.ts";
import {
  BATCH_ENTRIES_MAX,
  type BatchReadHeader,
  decodeElements,
  decodeMessage,
  encodeBatchRead,
  encodedBytes,
  encodeElements,
  encodeMessage,
  encodePullRequest,
  type Fields,
  PserverError,
  paddedBytes,
  parsePullReply,
  parseReadChunk,
  type ReadChunk,
} from "../../../src/protocol/index.ts";
import type { PartIndex } from "../../../src/protocol/messages/parts.ts";
import { BufferPool } from "../../../src/transport/buffers.ts";
import { refusalOf } from "../../protocol/refusal.ts";
import { hashedPlaces } from "../../support/hashed-places.ts";
import { HANG_MS } from "../../support/limits.ts";
import { Folded } from "../fold/folded.ts";
import { SHARD, SUBJECTS } from "../fold/journal-writer.ts";
import { HandedOn } from "./handed-on.ts";

const ANY: BatchReadHeader = { generation: 1, seq: 0, waitMs: 5_000 };
const MIB = 1024 * 1024;
const VALUES = Float32Array.from({ length: 12 }, (_, i) => i / 3);
const BIAS = Float32Array.of(7, 8, 9);
const NOTHING = new Uint8Array(0);
let net: HandedOn;
let folded: Folded;
let positions: PositionQueue;
let counters: OwnerCounters;
let responder: Responder;
let requests: ShardSubscriptions;

beforeEach(() => {
  net = new HandedOn();
  folded = new Folded();
  folded.journal.init(VALUES, { shape: [4, 3], config: { learningRate: 1 } });
  folded.journal.init(BIAS, { parameter: "b", config: { learningRate: 1 } });
  folded.journal.init(Int32Array.of(1, 2), { parameter: "i" });
  folded.apply();
  positions = new PositionQueue({
    shard: SHARD,
    fallbacks: () => [],
    lastSeq: () => undefined,
    onLost: () => undefined,
  });
  counters = new OwnerCounters(false);
  responder = new Responder(net.connection, new BufferPool());
  requests = new ShardSubscriptions(
    SHARD,
    {
      dataConnection: net.connection,
      subjects: SUBJECTS,
      server: new FairServer(new RefusalBudget()),
      responder,
      failedBlocks: new FailedBlocks(net.connection, SUBJECTS, hashedPlaces(16)),
    },
    () => true,
    new ShardAnswers(
      {
        number: SHARD,
        shard: folded.shard,
        positions,
        steps: new StepQueue(SHARD),
        fragments: new FragmentQueue(SHARD),
        fallbacks: [],
        get position() {
          return { generation: 1, seq: folded.shard.seq };
        },
        snapshot: () => Promise.reject(new PserverError("CLOSED", "no snapshots here")),
        status: () => ({}),
        memory: () => ({}),
      },
      responder,
      counters,
    ),
  );
  requests.open(folded.shard.blocks());
});

/** An entry: the block of "w" under epoch 1 unless it says otherwise. */
interface WantedEntry {
  readonly parameter: string;
  readonly epoch: number;
  readonly index: PartIndex | undefined;
  readonly have: number;
}

function entry(given: Partial<WantedEntry> = {}): WantedEntry {
  return { parameter: "w", epoch: 1, index: undefined, have: 0, ...given };
}

/** The request for entries. */
function requestFor(entries: readonly WantedEntry[], head: Partial<BatchReadHeader> = {}) {
  const parts = entries.map(({ index }) => index);
  const lists = (list: "rows" | "inner"): Uint32Array =>
    Uint32Array.from(parts.flatMap((part) => [...(part?.[list] ?? [])]));
  const lengths = (list: "rows" | "inner"): Uint32Array =>
    Uint32Array.from(parts, (part) => part?.[list]?.length ?? 0);
  const hasInner = parts.some((part) => part?.inner !== undefined);
  return encodeBatchRead(
    { ...ANY, ...head },
    {
      numbers: Uint32Array.from(entries, ({ parameter, epoch }) =>
        folded.journal.numberOf(parameter, epoch, 0),
      ),
      parts: parts.some((part) => part !== undefined)
        ? {
            ...{ rows: lengths("rows"), rowList: lists("rows") },
            inner: hasInner ? lengths("inner") : undefined,
            innerList: hasInner ? lists("inner") : undefined,
          }
        : undefined,
      have: entries.some(({ have }) => have > 0)
        ? Float64Array.from(entries, ({ have }) => have)
        : undefined,
    },
  );
}

function ask(entries: readonly WantedEntry[], head: Partial<BatchReadHeader> = {}): void {
  net.read(requestFor(entries, head));
}

/** The pieces of the answer, once there are so many. */
async function pieces(count = 1): Promise<ReadChunk[]> {
  await vi.waitFor(() => expect(net.published.length).toBeGreaterThanOrEqual(count), HANG_MS);
  expect(net.published.length).toBe(count);
  net.repliedTo.length = 0;
  return net.published.splice(0).map((bytes) => parseReadChunk(decodeMessage(bytes)));
}

/** The error that is the only answer. */
async function refusal(): Promise<PserverError> {
  await vi.waitFor(() => expect(net.published.length).toBe(1), HANG_MS);
  const [bytes = new Uint8Array(0)] = net.published.splice(0);
  return refusalOf(() => parseReadChunk(decodeMessage(bytes)));
}

/** The values of entries of these lengths. */
function floats({ values: data }: ReadChunk, ...lengths: number[]): number[][] {
  let at = 0;
  return lengths.map((length) => {
    const bytes = data.slice(at, at + length * 4);
    expect([...data.subarray(at + length * 4, at + paddedBytes(length * 4))]).toEqual(
      Array.from({ length: paddedBytes(length * 4) - length * 4 }, () => 0),
    );
    at += paddedBytes(length * 4);
    return [...new Float32Array(bytes.buffer)];
  });
}

const numbers = (...list: number[]): Uint32Array => Uint32Array.from(list);
const at = (...elements: number[]): number[] => elements.map((i) => VALUES[i] as number);
const bias = (given: Partial<WantedEntry> = {}): WantedEntry => {
  return entry({ parameter: "b", ...given });
};

/** Blocks of "big", of so many bytes each. */
function initBig(blocks: number, bytes: number): WantedEntry[] {
  const count = bytes / 4;
  return Array.from({ length: blocks }, (_, index) => {
    const place = { index, start: index * count, count, shape: [blocks * count] };
    const values = new Float32Array(count).fill(index);
    folded.journal.init(values, {
      parameter: `big${index}`,
      ...place,
      index: 0,
      start: 0,
      shape: [count],
    });
    folded.apply();
    return entry({ parameter: `big${index}` });
  });
}

describe("a batched read", () => {
  test("gets blocks, rows and elements of rows of several parameters in order", async () => {
    ask([
      entry(),
      bias(),
      entry({ index: { rows: numbers(1, 3) } }),
      entry({ index: { rows: numbers(0, 2), inner: numbers(0, 2) } }),
      bias({ index: { rows: numbers(2) } }),
    ]);
    const [piece] = (await pieces()) as [ReadChunk];
    const { seq } = folded.shard;
    expect(piece).toMatchObject({ from: 0, more: false, generation: 1, seq });
    expect(piece.versions).toEqual(Float64Array.of(1, 1, 1, 1, 1));
    expect(floats(piece, 12, 3, 6, 4, 1)).toEqual([
      [...VALUES],
      [...BIAS],
      at(3, 4, 5, 9, 10, 11),
      at(0, 2, 6, 8),
      [9],
    ]);
  });

  test("in an encoding gets all entries in it", async () => {
    ask([entry({ index: { rows: numbers(1) } }), bias()], { encoding: "bfloat16" });
    const [{ values: data }] = (await pieces()) as [ReadChunk];
    expect(data).toHaveLength(16);
    const decoded = new Float32Array(3);
    decodeElements("bfloat16", data.slice(8, 14), decoded);
    expect(decoded).toEqual(BIAS);
  });

  test("in an encoding with scales gets those of each entry before its elements", async () => {
    for (const encoding of ["int8", "e3m0"] as const) {
      ask([entry({ index: { rows: numbers(1) } }), bias()], { encoding });
      const [{ values: data }] = (await pieces()) as [ReadChunk];
      expect(data).toHaveLength(16);
      const bytes = encodedBytes("float32", encoding, 3);
      const expected = new Uint8Array(bytes);
      encodeElements(encoding, BIAS, expected);
      expect([...data.subarray(8, 8 + bytes)]).toEqual([...expected]);
      expect(data.subarray(8 + bytes)).toEqual(new Uint8Array(8 - bytes));
    }
  });

  test("gets nothing of a block whose version it has, under the same generation only", async () => {
    folded.journal.push(new Float32Array(3).fill(1), { op: "grad" }, { parameter: "b" });
    folded.apply();
    for (const have of [1, 2]) {
      ask([entry({ have: 1 }), bias({ have }), entry({ have: 7 })]);
      const [piece] = (await pieces()) as [ReadChunk];
      expect(piece.versions).toEqual(Float64Array.of(0, have === 2 ? 0 : 2, 1));
      expect(piece.values).toHaveLength((have === 2 ? 0 : 16) + 48);
    }
    positions.advance({ generation: 1, seq: folded.shard.seq });
    ask([bias({ have: 2 })], { generation: 2 });
    expect((await pieces())[0]?.versions).toEqual(Float64Array.of(2));
  });

  test("gets pieces of about 1 MiB, one after the other, also from an entry on", async () => {
    const big = initBig(5, 400 * 1024);
    ask([...big, bias()]);
    const all = await pieces(3);
    expect(all.map(({ from, more, versions }) => [from, more, versions.length])).toEqual([
      [0, true, 2],
      [2, true, 2],
      [4, false, 2],
    ]);
    expect(all.every(({ values }) => values.length <= MIB)).toBe(true);
    expect(floats(all[2] as ReadChunk, 100 * 1024, 3)[0]?.[0]).toBe(4);
    ask([...big, bias()], { from: 1 });
    expect((await pieces(2)).map(({ from }) => from)).toEqual([1, 3]);
  });

  test("of many small blocks, and of rows of some, gets all in one piece", async () => {
    const row = entry({ index: { rows: numbers(1, 3) } });
    ask(Array.from({ length: 2_000 }, (_, i) => (i % 3 === 0 ? row : bias())));
    const [piece] = (await pieces(1)) as [ReadChunk];
    expect(piece.versions).toEqual(new Float64Array(2_000).fill(1));
    const expected = Array.from({ length: 2_000 }, (_, i) =>
      i % 3 === 0 ? at(3, 4, 5, 9, 10, 11) : [...BIAS],
    );
    expect(floats(piece, ...expected.map(({ length }) => length))).toEqual(expected);
  });

  test("that waits for a position is of the blocks as they are then, whatever became of its buffer", async () => {
    const seq = folded.shard.seq + 1;
    const bytes = requestFor([entry({ index: { rows: numbers(2) } })], { seq });
    net.read(bytes);
    bytes.fill(0xff);
    expect(net.published.length).toBe(0);
    folded.journal.push(new Float32Array(12).fill(1), { op: "grad" });
    folded.apply();
    positions.advance({ generation: 1, seq });
    const [piece] = (await pieces()) as [ReadChunk];
    expect(piece).toMatchObject({ versions: Float64Array.of(2), seq });
    expect(floats(piece, 3)).toEqual([at(6, 7, 8).map((value) => Math.fround(value - 1))]);
  });
});

describe("between the pieces of a reply", () => {
  const PIECE_BYTES = 900 * 1024;
  /** Pieces after which as many bytes are on their way as may be at one time. */
  const AT_ONCE = Math.ceil((6 * MIB) / PIECE_BYTES);

  /** Asks for more than may be on its way at one time; the rest waits. */
  async function begin(): Promise<number> {
    const big = initBig(10, PIECE_BYTES);
    net.taking = false;
    ask(big);
    await vi.waitFor(() => expect(net.published.length).toBe(AT_ONCE), HANG_MS);
    return AT_ONCE;
  }

  test("records are folded: later pieces are of a later position", async () => {
    const count = await begin();
    folded.journal.push(
      new Float32Array(225 * 1024).fill(1),
      { op: "mix", alpha: 1, beta: 1 },
      { parameter: "big9" },
    );
    folded.apply();
    net.take();
    const all = await pieces(10);
    expect(all[count - 1]?.seq).toBe(folded.shard.seq - 1);
    expect(all[9]).toMatchObject({ seq: folded.shard.seq, more: false });
    expect(all[9]?.versions).toEqual(Float64Array.of(2));
    expect(floats(all[9] as ReadChunk, 225 * 1024)[0]?.[0]).toBe(10);
  });

  test("another initialization ends it with an error that names the entry", async () => {
    const count = await begin();
    folded.journal.init(BIAS, { parameter: "big9", epoch: 2 });
    folded.apply();
    net.take();
    // The piece before would have looked whether the entry has space in it.
    await vi.waitFor(() => expect(net.published.length).toBe(9), HANG_MS);
    expect(count).toBeLessThan(9);
    const error = refusalOf(() => parseReadChunk(decodeMessage(net.published[8] ?? NOTHING)));
    expect(error).toMatchObject({ code: "STALE_EPOCH", details: { entry: 9 } });
  });

  test("other trainers are answered, and the same one, too", async () => {
    const count = await begin();
    const pull = encodePullRequest({ epoch: 1, generation: 1, seq: 0, waitMs: 0 });
    const queued = vi.spyOn(responder, "respondInChunks");
    net.ask(pull, "w", 0, "bob");
    net.ask(pull, "b", 0);
    // Where a turn takes long, a request is read in a later one.
    await vi.waitFor(() => expect(queued).toHaveBeenCalledTimes(2), HANG_MS);
    expect(net.published.length).toBe(count);
    net.take();
    await vi.waitFor(() => expect(net.published.length).toBe(12), HANG_MS);
    const pulls = net.published.flatMap((bytes, place) => {
      const { fields } = decodeMessage(bytes);
      return fields["epoch"] === undefined ? [] : [place];
    });
    // How many pieces lie between depends on the time that each turn takes.
    expect(net.repliedTo.indexOf(`${SUBJECTS.inbox("bob")}.7`)).toBeLessThan(11);
    expect(pulls.every((place) => place < 11)).toBe(true);
    expect(parsePullReply(decodeMessage(net.published[pulls[0] ?? 0] ?? NOTHING)).version).toBe(1);
  });
});

describe("a batched read is refused whole", () => {
  const refused: [string, Partial<WantedEntry>, Partial<BatchReadHeader>, string][] = [
    ["for a parameter that is not there", { parameter: "x" }, {}, "STALE_EPOCH"],
    ["for another epoch", { epoch: 2 }, {}, "STALE_EPOCH"],
    ["for a row that is not there", { index: { rows: numbers(4) } }, {}, "BAD_INDEX"],
    ["for rows out of order", { index: { rows: numbers(2, 1) } }, {}, "BAD_INDEX"],
    [
      "for an element beyond its row",
      { index: { rows: numbers(0), inner: numbers(3) } },
      {},
      "BAD_INDEX",
    ],
    [
      "for an encoding that is not for its type",
      { parameter: "i" },
      { encoding: "float16" },
      "UNSUPPORTED",
    ],
  ];

  test.each(refused)("%s", async (_what, wrong, head, code) => {
    ask([bias(), bias(), entry(wrong), bias()], head);
    const error = await refusal();
    expect(error.code).toBe(code);
    const block = code === "STALE_EPOCH" ? "number" : `"${wrong.parameter ?? "w"}" block 0: `;
    expect(error.message).toContain(`entry 2, ${block}`);
    expect(error.details).toMatchObject({ entry: 2 });
  });

  const malformed = async (fields: Fields, data?: Uint8Array): Promise<PserverError> => {
    net.read(encodeMessage({ ...ANY, ...fields }, data));
    return refusal();
  };

  test.each<[string, Fields, number, string]>([
    ["fewer bytes than its columns", { entries: 3 }, 8, "BAD_LENGTH"],
    ["more bytes than its columns", { entries: 2 }, 16, "BAD_LENGTH"],
    ["lists that its entries do not have", { entries: 2, part: [1] }, 24, "BAD_LENGTH"],
    ["lists that no message holds", { entries: 1, part: [2 ** 31, 2 ** 31] }, 8, "BAD_LENGTH"],
    ["no entries", { entries: 0 }, 0, "EMPTY"],
    ["too many entries", { entries: BATCH_ENTRIES_MAX + 1 }, 16_392, "TOO_LARGE"],
  ])("for %s", async (_what, fields, bytes, code) => {
    expect(await malformed(fields, new Uint8Array(bytes))).toMatchObject({ code });
  });

  test("for more than 16 MiB of values", async () => {
    const [big] = initBig(1, 4 * MIB) as [WantedEntry];
    ask(Array.from({ length: 5 }, () => big));
    expect(await refusal()).toMatchObject({ code: "TOO_LARGE", details: { received: 20 * MIB } });
  });

  test("while those of its trainer that wait hold too much memory, and not once they are gone", async () => {
    // Not compared with its block while the read waits.
    const long = Uint32Array.from({ length: 130_000 }, (_, i) => i);
    const bytes = requestFor([entry({ index: { rows: long } })], { seq: 100 });
    const codes = (): string[] =>
      net.published.map((reply) => refusalOf(() => parseReadChunk(decodeMessage(reply))).code);
    for (let round = 0; round < 2; round++) {
      for (let i = 0; i < 40; i++) net.read(bytes);
      await vi.waitFor(
        () => expect(codes().filter((code) => code === "BUSY")).toHaveLength(8),
        HANG_MS,
      );
      await vi.waitFor(() => {
        positions.refuseAll(new PserverError("CLOSED", "over"));
        expect(net.published.length).toBe(40);
      }, HANG_MS);
      expect(codes().filter((code) => code === "CLOSED")).toHaveLength(32);
      net.published.length = 0;
    }
  });

  test("by a shard that has failed", async () => {
    requests.openFailed(refusingHandler(() => new PserverError("JOURNAL_LOST", "lost")));
    ask([entry()]);
    expect(await refusal()).toMatchObject({ code: "JOURNAL_LOST" });
  });
});
