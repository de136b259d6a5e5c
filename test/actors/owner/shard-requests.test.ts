// Proves what pulls of parts and encodings are answered, over a connection that only hands messages on:
// the elements asked for, as the fold has them when it has got to the position; errors for an index or
// an encoding that does not fit; BUSY before the indices of waiting pulls take too much memory; of a shard
// that has failed what ended it, for every block that could be its own.
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
  decodeElements,
  decodeMessage,
  type Encoding,
  encodeMessage,
  encodePullRequest,
  hashName,
  type PartIndex,
  PserverError,
  type PullReply,
  type PullRequest,
  parsePullReply,
  partCounts,
  partIndexBytes,
  throwIfError,
} from "../../../src/protocol/index.ts";
import { BufferPool } from "../../../src/transport/buffers.ts";
import { codeOf } from "../../protocol/refusal.ts";
import { hashedPlaces } from "../../support/hashed-places.ts";
import { HANG_MS } from "../../support/limits.ts";
import { Folded } from "../fold/folded.ts";
import { SHARD, SUBJECTS } from "../fold/journal-writer.ts";
import { HandedOn } from "./handed-on.ts";

const SHARDS = 16;
const REPLY = `${SUBJECTS.inbox("alice")}.7`;
const ANY = { epoch: 1, generation: 1, seq: 0, waitMs: 5_000 };
const VALUES = Float32Array.from({ length: 12 }, (_, i) => i / 3);

let net: HandedOn;
let folded: Folded;
let positions: PositionQueue;
let counters: OwnerCounters;
let requests: ShardSubscriptions;

beforeEach(() => {
  net = new HandedOn();
  folded = new Folded();
  folded.journal.init(VALUES, { shape: [4, 3], config: { learningRate: 1 } });
  folded.apply();
  positions = new PositionQueue({
    shard: SHARD,
    fallbacks: () => [],
    lastSeq: () => undefined,
    onLost: () => undefined,
  });
  counters = new OwnerCounters(false);
  const responder = new Responder(net.connection, new BufferPool());
  requests = new ShardSubscriptions(
    SHARD,
    {
      dataConnection: net.connection,
      subjects: SUBJECTS,
      server: new FairServer(new RefusalBudget()),
      responder,
      failedBlocks: new FailedBlocks(net.connection, SUBJECTS, hashedPlaces(SHARDS)),
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

function ask(request: Partial<PullRequest> = {}, index?: PartIndex): void {
  const part = index === undefined ? {} : { part: partCounts(index) };
  net.ask(encodePullRequest({ ...ANY, ...part, ...request }, index));
}

/** The answer to the only pull. */
function answer(): PullReply {
  expect(net.repliedTo.splice(0)).toEqual([REPLY]);
  return parsePullReply(decodeMessage(net.published[0] ?? new Uint8Array(0)));
}

function floats(data: Uint8Array): number[] {
  return [...new Float32Array(Uint8Array.from(data).buffer)];
}

const numbers = (...list: number[]): Uint32Array => Uint32Array.from(list);
const at = (...elements: number[]): number[] => elements.map((i) => VALUES[i] as number);

describe("a pull", () => {
  test("without part and encoding gets the block", () => {
    ask();
    const reply = answer();
    expect(reply).toMatchObject({ epoch: 1, dtype: "float32", version: 1, generation: 1, seq: 3 });
    expect(reply.encoding).toBeUndefined();
    expect(floats(reply.data)).toEqual([...VALUES]);
  });

  test("of rows, and of some elements of rows, gets these in order", async () => {
    ask({}, { rows: numbers(1, 3) });
    ask({}, { rows: numbers(0, 2), inner: numbers(0, 2) });
    await vi.waitFor(() => expect(net.published).toHaveLength(2), HANG_MS);
    const replies = net.published.map((bytes) => parsePullReply(decodeMessage(bytes)));
    expect(replies.map(({ data }) => floats(data))).toEqual([
      at(3, 4, 5, 9, 10, 11),
      at(0, 2, 6, 8),
    ]);
  });

  test.each(["bfloat16", "float16"] as const)(
    "in %s says so and gets half the bytes",
    (encoding) => {
      const index = { rows: numbers(1), inner: numbers(1, 2) };
      ask({ encoding }, index);
      const reply = answer();
      expect(reply.encoding).toBe(encoding);
      const decoded = new Float32Array(2);
      decodeElements(encoding, reply.data, decoded);
      for (const [i, value] of at(4, 5).entries()) expect(decoded[i]).toBeCloseTo(value, 1);
      expect(reply.data).toHaveLength(4);
    },
  );

  test("that waits for a position is of the block as it is then, whatever became of its buffer", () => {
    const request = { ...ANY, seq: 4, part: { rows: 1 } };
    const bytes = encodePullRequest(request, { rows: numbers(2) });
    net.ask(bytes);
    bytes.fill(0xff);
    expect(net.published).toHaveLength(0);
    folded.journal.push(new Float32Array(12).fill(1), { op: "grad" });
    folded.apply();
    positions.advance({ generation: 1, seq: 4 });
    const reply = answer();
    expect(reply).toMatchObject({ version: 2, seq: 4 });
    expect(floats(reply.data)).toEqual(at(6, 7, 8).map((value) => Math.fround(value - 1)));
  });
});

describe("a pull is refused", () => {
  const refused: [string, Partial<PullRequest>, PartIndex | undefined, string][] = [
    ["of a row that is not there", {}, { rows: numbers(4) }, "BAD_INDEX"],
    ["of rows out of order", {}, { rows: numbers(2, 1) }, "BAD_INDEX"],
    ["of an element beyond its row", {}, { rows: numbers(0), inner: numbers(3) }, "BAD_INDEX"],
    ["of another epoch", { epoch: 2 }, { rows: numbers(0) }, "STALE_EPOCH"],
  ];

  test.each(refused)("%s", (_what, request, index, code) => {
    ask(request, index);
    expect(() => answer()).toThrow(expect.objectContaining({ code }));
  });

  test.each([
    [9, 8, "expected at least 40 bytes of index; received 8"],
    [1, 16, "expected 8 bytes of index; received 16"],
  ])("that says %d rows in %d bytes", (rows, bytes, message) => {
    net.ask(encodeMessage({ ...ANY, part: [rows] }, new Uint8Array(bytes)));
    expect(() => answer()).toThrow(
      expect.objectContaining({ code: "BAD_LENGTH", message: expect.stringContaining(message) }),
    );
  });

  test("in an encoding that is not for the block's type", () => {
    folded.journal.init(Int32Array.of(1, 2), { epoch: 2 });
    folded.apply();
    ask({ epoch: 2, encoding: "bfloat16" satisfies Encoding });
    expect(() => answer()).toThrow(expect.objectContaining({ code: "UNSUPPORTED" }));
  });

  test("while those of its trainer that wait hold 16 MiB of indices, and not once they are gone", async () => {
    const rows = Uint32Array.from({ length: 4 * 1024 * 1024 }, (_, i) => i);
    const bytes = encodePullRequest({ ...ANY, seq: 4, part: { rows: rows.length } }, { rows });
    expect(partIndexBytes({ rows: rows.length })).toBe(16 * 1024 * 1024);
    const codes = async (count: number): Promise<string[]> => {
      await vi.waitFor(() => expect(net.published).toHaveLength(count), HANG_MS);
      return net.published
        .splice(0)
        .map((reply) => codeOf(() => throwIfError(decodeMessage(reply).fields)));
    };
    for (let round = 0; round < 3; round++) {
      net.ask(bytes);
      net.ask(bytes, "w", 0, "bob");
      net.ask(bytes, "w", 0, "bob");
      expect(await codes(1)).toEqual(["BUSY"]);
      await vi.waitFor(() => {
        // Those that have not begun to wait yet do so at once.
        positions.refuseAll(new PserverError("CLOSED", "over"));
        expect(net.published).toHaveLength(2);
      }, HANG_MS);
      expect(await codes(2)).toEqual(["CLOSED", "CLOSED"]);
    }
  });
});

describe("a shard that has failed", () => {
  /** Index of a block of this name on the shard. */
  const own = (name: string): number => (SHARD - (hashName(name) % SHARDS) + SHARDS) % SHARDS;

  beforeEach(() => {
    const failure = new PserverError("JOURNAL_LOST", "records 7 to 9 are lost", { from: 7, to: 9 });
    requests.openFailed(refusingHandler(() => failure));
  });

  test("reports that for blocks that it does not know, once", async () => {
    net.ask(encodePullRequest(ANY), "other", own("other"));
    net.ask(encodePullRequest(ANY), "w", own("w"));
    // On a busy machine the second has to wait for another turn.
    await vi.waitFor(() => expect(net.published.length).toBeGreaterThan(1), HANG_MS);
    expect(net.published).toHaveLength(2);
    for (const bytes of net.published) {
      expect(() => throwIfError(decodeMessage(bytes).fields)).toThrow(
        expect.objectContaining({ code: "JOURNAL_LOST", details: { from: 7, to: 9 } }),
      );
    }
  });

  test("says nothing of blocks of other shards", () => {
    net.ask(encodePullRequest(ANY), "other", own("other") + 1);
    expect(net.published).toHaveLength(0);
  });

  test("is silent once it is closed", () => {
    expect(net.hears(SUBJECTS.allPulls())).toBe(true);
    requests.close();
    expect(net.hears(SUBJECTS.allPulls())).toBe(false);
    net.ask(encodePullRequest(ANY), "other", own("other"));
    expect(net.published).toHaveLength(0);
  });
});

describe("the pulls of all blocks", () => {
  test("are heard once, as long as a shard of the worker has failed", async () => {
    const firstShard = (hashName("w") + 1) % SHARDS;
    const places = { shardOf: async (_name: string, i: number) => (firstShard + i) % SHARDS };
    const failed = new FailedBlocks(net.connection, SUBJECTS, places);
    const heard: number[] = [];
    const first = failed.add(1, () => heard.push(1));
    const second = failed.add(2, () => heard.push(2));
    const again = failed.add(1, () => heard.push(3));
    const index = (shard: number): number => (shard - firstShard + SHARDS) % SHARDS;
    net.ask(encodePullRequest(ANY), "w", index(1));
    net.ask(encodePullRequest(ANY), "w", index(2));
    await new Promise(setImmediate);
    expect(heard).toEqual([3, 2]);
    first();
    net.ask(encodePullRequest(ANY), "w", index(1));
    await new Promise(setImmediate);
    expect(heard).toEqual([3, 2, 3]);
    again();
    expect(net.hears(SUBJECTS.allPulls())).toBe(true);
    second();
    expect(net.hears(SUBJECTS.allPulls())).toBe(false);
  });
});
