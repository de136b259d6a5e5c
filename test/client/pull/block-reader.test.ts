// Proves how a reader handles the replies to batched reads, where the test plays broker and host: each block
// gets its values once, whatever chunks are lost, repeated, late or out of order; what is missing is asked
// for again; errors end the call or begin a look-up as those of pulls do.

import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Deadline } from "../../../src/client/calls/calls.ts";
import { type Parameters, SeenVersions } from "../../../src/client/calls/parameters.ts";
import { LinkWindow } from "../../../src/client/core/link-window.ts";
import { Positions } from "../../../src/client/core/shard-window.ts";
import { BlockReader } from "../../../src/client/pull/block-reader.ts";
import type { BlockState, ParameterRead } from "../../../src/client/pull/read-plan.ts";
import { Requests } from "../../../src/client/wire/wire.ts";
import {
  type BatchRead,
  decodeBatchRead,
  decodeMessage,
  draftPullReply,
  draftReadChunk,
  type ErrorCode,
  type ErrorDetails,
  encodeError,
  JobSubjects,
  type ParameterInfo,
  PserverError,
  parsePullRequest,
  type ReadChunkHeader,
  sealMessage,
  toConfig,
} from "../../../src/protocol/index.ts";
import { IN_FLIGHT_BYTES_MAX } from "../../../src/protocol/limits.ts";
import { FakeWire, type Published } from "../../support/fake-wire.ts";

const SHARD = 3;
const subjects = new JobSubjects("j");

let wire: FakeWire;
let positions: Positions;
let deadline: Deadline;
let reader: BlockReader;
let infos: Map<string, ParameterInfo>;
let lookedUp: string[][];
/** What each block received, by parameter. */
let received: Map<string, { readonly values: number[] | undefined; readonly state: BlockState }[]>;

beforeEach(() => {
  vi.useFakeTimers();
  wire = new FakeWire();
  positions = new Positions({ journalReplaced: () => undefined });
  deadline = Deadline.start("getParams", { timeoutMs: 10_000 });
  infos = new Map(["a", "b", "c", "d"].map((name) => [name, parameter(name)]));
  lookedUp = [];
  received = new Map();
  const refreshAll = async (names: readonly string[]): Promise<ParameterInfo[]> => {
    lookedUp.push([...names]);
    return names.map((name) => infos.get(name) as ParameterInfo);
  };
  reader = new BlockReader({
    ...{ subjects, trainer: "t", positions, seen: new SeenVersions() },
    requests: Requests.open(wire, true),
    parameters: { refreshAll } as unknown as Parameters,
    payloadBytesMax: () => wire.payloadBytesMax,
    receivedBytes: () => wire.receivedBytes,
    link: new LinkWindow(IN_FLIGHT_BYTES_MAX),
    steps: { readStep: undefined, noteClosed: () => undefined, lostPlace: () => undefined },
  });
});

afterEach(() => {
  deadline.dispose();
  vi.useRealTimers();
});

/** A parameter of two elements, in one block. */
function parameter(name: string, epoch = 1): ParameterInfo {
  const layout = { elements: 2, blockElements: 2, blocks: 1, firstShard: SHARD, shards: 16 };
  const firstNumber = 100 * epoch + name.charCodeAt(0);
  const declared = { name, dtype: "float32", shape: [2], config: toConfig() } as const;
  return { ...declared, epoch, ready: true, layout, firstNumber };
}

/** A read of a parameter's only block. */
function readOf(name: string, known?: BlockState): ParameterRead {
  const list: { values: number[] | undefined; state: BlockState }[] = [];
  received.set(name, list);
  return {
    ...{ info: infos.get(name) as ParameterInfo, entries: 1 },
    blockOf: () => 0,
    partOf: () => undefined,
    elementsOf: () => 2,
    knownOf: () => known,
    take: (_entry, given, at, state) => {
      const own = new Float32Array(2);
      given?.write(own, 0, 2, undefined, at);
      list.push({ values: given && [...own], state });
    },
  };
}

/** Reads parameters; `known` is the state that the reader has of all of them. */
function read(names: string[], known?: BlockState): Promise<(ParameterInfo | undefined)[]> {
  const reads = names.map((name) => readOf(name, known));
  return reader.readAll(reads, {}, deadline);
}

/** The requests since the last call. */
async function sent(): Promise<Published[]> {
  await vi.advanceTimersByTimeAsync(0);
  return wire.published.splice(0);
}

/** The only request since the last call, a batched read. */
async function request(): Promise<{ reply: string; asked: BatchRead }> {
  const requests = await sent();
  expect(requests.map(({ subject }) => subject)).toEqual([subjects.read(SHARD, "t")]);
  const [{ reply, bytes }] = requests as [Published];
  return { reply, asked: decodeBatchRead(bytes) };
}

/** Delivers a chunk whose values are its entries' numbers, and 7. */
function chunk(
  reply: string,
  header: Partial<Omit<ReadChunkHeader, "versions">> & {
    from: number;
    count?: number;
    versions?: readonly number[];
  },
): void {
  const { count = 1, ...given } = header;
  const versions = given.versions ?? Array.from({ length: count }, () => 5);
  const { draft, values } = draftReadChunk(
    { more: false, generation: 1, seq: 9, ...given, versions: Float64Array.from(versions) },
    versions.filter((version) => version > 0).length * 8,
  );
  let at = 0;
  versions.forEach((version, i) => {
    if (version === 0) return;
    values.set(new Uint8Array(Float32Array.of(header.from + i, 7).buffer), at);
    at += 8;
  });
  wire.deliver(reply, sealMessage(draft));
}

function refuse(reply: string, code: ErrorCode, details: ErrorDetails = {}): void {
  wire.deliver(reply, encodeError(new PserverError(code, "refused", details)));
}

/** What each parameter received, in order. */
const values = (...names: string[]): unknown[] =>
  names.map((name) => received.get(name)?.map((each) => each.values));

describe("a batched read", () => {
  test("gives each block its values and state, and takes the position into account", async () => {
    const done = read(["a", "b"]);
    const { reply, asked } = await request();
    expect(asked).toMatchObject({ generation: 1, seq: 0, waitMs: 900, from: 0 });
    expect([...asked.numbers]).toEqual(["a", "b"].map((name) => infos.get(name)?.firstNumber));
    chunk(reply, { from: 0, versions: [5, 6], generation: 2 });
    expect(await done).toEqual([undefined, undefined]);
    expect(values("a", "b")).toEqual([[[0, 7]], [[1, 7]]]);
    expect(received.get("b")?.[0]?.state).toEqual({ version: 6, generation: 2 });
    expect(positions.get(SHARD)).toEqual({ generation: 2, seq: 9 });
  });

  test("whose first chunk is lost is asked for again from there, and takes later ones once", async () => {
    const done = read(["a", "b", "c", "d"]);
    const first = await request();
    chunk(first.reply, { from: 1, count: 2, more: true });
    expect(await sent()).toEqual([]);
    chunk(first.reply, { from: 3 });
    const again = await request();
    expect(again).toMatchObject({ reply: first.reply, asked: { from: 0 } });
    chunk(again.reply, { from: 0, count: 3, more: true });
    await done;
    expect(values("a", "b", "c", "d")).toEqual([[[0, 7]], [[1, 7]], [[2, 7]], [[3, 7]]]);
  });

  test("whose middle chunk is lost asks for it at once when the last one has come", async () => {
    const done = read(["a", "b", "c"]);
    const { reply } = await request();
    chunk(reply, { from: 0, more: true });
    chunk(reply, { from: 2 });
    const again = await request();
    expect(again.asked.from).toBe(1);
    chunk(reply, { from: 1, count: 2 });
    await done;
    expect(values("a", "b", "c")).toEqual([[[0, 7]], [[1, 7]], [[2, 7]]]);
  });

  test("whose reply ends early is asked for again at once, but only while it makes progress", async () => {
    const done = read(["a", "b", "c"]);
    const { reply } = await request();
    chunk(reply, { from: 0 });
    expect((await request()).asked.from).toBe(1);
    chunk(reply, { from: 0 });
    expect(await sent()).toEqual([]);
    await vi.advanceTimersByTimeAsync(1_200);
    expect((await request()).asked.from).toBe(1);
    chunk(reply, { from: 1, count: 2 });
    await done;
  });

  test("is not repeated while its chunks come", async () => {
    const done = read(["a", "b", "c"]);
    const { reply } = await request();
    for (const from of [0, 1]) {
      await vi.advanceTimersByTimeAsync(900);
      chunk(reply, { from, more: true });
    }
    expect(await sent()).toEqual([]);
    chunk(reply, { from: 2 });
    await done;
  });

  test("continues after a reconnect and after errors that pass, from the first missing block", async () => {
    const done = read(["a", "b"]);
    const { reply } = await request();
    chunk(reply, { from: 0, more: true });
    wire.disconnect();
    wire.reconnect();
    expect((await request()).asked.from).toBe(1);
    for (const code of ["BUSY", "NOT_OWNER", "TIMEOUT", "NO_MEMORY"] as const) {
      refuse(reply, code);
      await vi.advanceTimersByTimeAsync(600);
      expect((await request()).asked.from).toBe(1);
    }
    chunk(reply, { from: 1 });
    await done;
    expect(lookedUp).toEqual([]);
  });

  test("that nobody answers is sent again, and continues when there is an owner", async () => {
    const done = read(["a", "b"]);
    const { reply } = await request();
    wire.deliver(reply, new Uint8Array(0), true);
    await vi.advanceTimersByTimeAsync(100);
    chunk((await request()).reply, { from: 0, count: 2 });
    await done;
  });

  test("without an owner fails at the deadline, naming the shard", async () => {
    const done = expect(read(["a", "b"])).rejects.toMatchObject({
      code: "NO_OWNER",
      details: { shard: SHARD },
    });
    for (let i = 0; i < 100; i++) {
      for (const published of await sent()) wire.noResponders(published);
      await vi.advanceTimersByTimeAsync(100);
    }
    await done;
  });

  test.each([
    ["beyond its entries", { from: 1, count: 2 }],
    ["that it does not have, without values", { from: 0, versions: [5, 0] }],
  ])("fails for an entry %s", async (_what, header) => {
    const done = expect(read(["a", "b"])).rejects.toMatchObject({ code: "BAD_MESSAGE" });
    chunk((await request()).reply, header);
    await done;
    expect(values("a", "b")).toEqual([[], []]);
  });

  test("fails with an error that no retry helps", async () => {
    const done = expect(read(["a", "b"])).rejects.toMatchObject({ code: "JOURNAL_LOST" });
    refuse((await request()).reply, "JOURNAL_LOST");
    await done;
  });
});

describe("a parameter that was initialized anew", () => {
  test("is told to the caller; the others are read", async () => {
    const done = read(["a", "b", "c"]);
    const first = await request();
    chunk(first.reply, { from: 0, more: true });
    infos.set("b", parameter("b", 2));
    refuse(first.reply, "STALE_EPOCH", { parameter: "b" });
    await vi.advanceTimersByTimeAsync(0);
    const second = (await sent()).map(({ subject, reply }) => ({ subject, reply }));
    expect(lookedUp).toEqual([["b", "c"]]);
    expect(second).toHaveLength(1);
    const [{ reply, subject }] = second as [{ reply: string; subject: string }];
    expect(subject).toBe(subjects.read(SHARD, "t"));
    // An answer to the first request does not count any more: its numbers mean other entries.
    chunk(first.reply, { from: 1 });
    chunk(reply, { from: 0 });
    expect(await done).toEqual([undefined, infos.get("b"), undefined]);
    expect(values("a", "b", "c")).toEqual([[[0, 7]], [], [[0, 7]]]);
  });

  test("is asked for again after a pause that grows if the look-up finds the same epoch", async () => {
    const done = read(["a", "b"]);
    const pauses: number[] = [];
    for (let i = 0; i < 4; i++) {
      refuse((await request()).reply, "STALE_EPOCH");
      const refusedAtMs = performance.now();
      while (wire.published.length === 0) await vi.advanceTimersByTimeAsync(1);
      pauses.push(performance.now() - refusedAtMs);
    }
    chunk((await request()).reply, { from: 0, count: 2 });
    expect(await done).toEqual([undefined, undefined]);
    expect(pauses).toEqual([...pauses].sort((a, b) => a - b));
    expect(pauses[3]).toBeGreaterThan(5 * (pauses[0] ?? 0));
  });
});

describe("blocks that the reader has", () => {
  test("are named with their versions, and may come without values", async () => {
    positions.note(SHARD, { generation: 1, seq: 2 });
    const done = read(["a", "b"], { version: 4, generation: 1 });
    const { reply, asked } = await request();
    expect(asked.have).toEqual(Float64Array.of(4, 4));
    chunk(reply, { from: 0, versions: [0, 5] });
    await done;
    expect(received.get("a")).toEqual([
      { values: undefined, state: { version: 4, generation: 1 } },
    ]);
    expect(received.get("b")?.[0]?.state.version).toBe(5);
  });

  test("are asked for in full once the journal is another", async () => {
    positions.note(SHARD, { generation: 1, seq: 2 });
    const done = read(["a", "b"], { version: 4, generation: 1 });
    const { reply } = await request();
    refuse(reply, "JOURNAL_REPLACED", { expected: { generation: 2, seq: 0 } });
    await vi.advanceTimersByTimeAsync(600);
    const again = await request();
    expect(again.asked).toMatchObject({ generation: 2, seq: 0 });
    expect(again.asked.have).toBeUndefined();
    chunk(again.reply, { from: 0, count: 2, generation: 2 });
    await done;
  });
});

describe("blocks are read by their own subjects", () => {
  function answerPull({ bytes, reply }: Published): void {
    const { epoch } = parsePullRequest(decodeMessage(bytes).fields);
    const header = { epoch, dtype: "float32", generation: 1, seq: 9, version: 1 } as const;
    wire.deliver(reply, sealMessage(draftPullReply(header, 8)));
  }

  /** Answers the pulls since the last call; returns their subjects. */
  async function answerPulls(): Promise<string[]> {
    const pulls = await sent();
    for (const pull of pulls) answerPull(pull);
    return pulls.map(({ subject }) => subject);
  }

  test("if there is one alone", async () => {
    const done = read(["a"]);
    expect(await answerPulls()).toEqual([subjects.pull("a", 0, "t")]);
    await done;
  });
});
