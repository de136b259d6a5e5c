// Proves what an owner writes into its watermark, and when: the last record that it has folded, not one that it
// still has to catch up with, and the last one of all when it is closed; when it serves; what `status` says
// of that; how far a take-over has come; and that a failed shard answers every request with its error. There is no broker: the journal is
// that of a writer, snapshots and watermarks are in memory.
import type { Msg } from "@nats-io/transport-node";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { recordCrc } from "../../../src/actors/fold/journal-record.ts";
import type { Watermark } from "../../../src/actors/journal/watermark.ts";
import { WatermarkKeeper } from "../../../src/actors/journal/watermark-keeper.ts";
import type { ShardOwner } from "../../../src/actors/owner/shard-owner.ts";
import {
  decodeMessage,
  encodeMessage,
  encodePullRequest,
  type Fields,
  hashName,
  type PserverError,
} from "../../../src/protocol/index.ts";
import { JournalLine } from "../../support/journal-line.ts";
import { HANG_MS } from "../../support/limits.ts";
import { MemoryBucket } from "../../support/memory-bucket.ts";
import { MemorySnapshots } from "../../support/memory-snapshots.ts";
import { withoutPauses } from "../../support/without-pauses.ts";
import { JournalWriter, SHARD, SUBJECTS } from "../fold/journal-writer.ts";
import { makeOwner, SHARDS } from "./make-owner.ts";

let line: JournalLine;
let writer: JournalWriter;
let records: MemoryBucket;
let snapshots: MemorySnapshots;
/** Records that the journal has lost at its end. */
let lost: number;
let failures: PserverError[];
let watermarkFailures: string[];
/** What the first write of the watermark waits for. */
let held: Promise<void>;
let answered: Uint8Array[];
let handlers: Map<string, (error: null, message: Msg) => void>;
let owner: ShardOwner;

beforeEach(() => {
  line = new JournalLine();
  writer = new JournalWriter();
  // Each call takes a turn of the event loop, as one to a broker does.
  held = Promise.resolve();
  records = new MemoryBucket({
    between: async ({ action }) => {
      await new Promise((resolve) => setImmediate(resolve));
      if (action === "create") await held;
    },
  });
  snapshots = new MemorySnapshots();
  [lost, failures, watermarkFailures, answered] = [0, [], [], []];
  handlers = new Map();
  owner = make();
});

afterEach(async () => {
  await owner.close();
});

/** Another owner of the same shard, as after a crash. */
function make(): ShardOwner {
  line = new JournalLine();
  const parts = { line, writer, records, snapshots, handlers, answered, lost: () => lost };
  return makeOwner(parts, {
    listener: {
      trouble: (type, error) => {
        if (type === "mark-failed") watermarkFailures.push(error.code);
        if (type === "failed") failures.push(error);
      },
    },
  });
}

/** Delivers the records from `first` on. */
function deliver(first: number): void {
  for (const { seq, payload, subject } of writer.records.slice(first - 1)) {
    line.record(seq, payload, subject);
  }
}

/** Asks the owner as a host does; returns the answer. */
function ask(verb: "status" | "memory"): Fields {
  const subject = SUBJECTS.owner(SHARD, "h", verb);
  const request = { subject, reply: `${SUBJECTS.hostInbox("h")}.7`, data: encodeMessage({}) };
  handlers.get(SUBJECTS.shardRequests(SHARD).owner)?.(null, request as Msg);
  return decodeMessage(answered.at(-1) ?? new Uint8Array()).fields;
}

async function stored(): Promise<Watermark | undefined> {
  return await new WatermarkKeeper(records, SHARD).read();
}

/** Waits until the owner says so of the shard. */
async function until(expected: Record<string, unknown>): Promise<void> {
  await expect
    .poll(() => owner.status(), { timeout: HANG_MS, interval: 5 })
    .toMatchObject(expected);
}

/** Starts the owner of a new shard and has it fold so many records of a trainer. */
async function serve(count: number): Promise<void> {
  await owner.start();
  for (let i = 0; i < count; i++) writer.note({ loss: i });
  deliver(1);
  await until({ state: "serving", seq: 1 + count });
}

const crcOf = (seq: number): number =>
  recordCrc(writer.records[seq - 1]?.payload ?? new Uint8Array());

describe("an owner", () => {
  test("writes a watermark of the last record that it has folded, and reports that", async () => {
    await serve(2);
    deliver(writer.note({ loss: 9 }).seq);
    expect(owner.status()).toMatchObject({ state: "serving", seq: 4, markedSeq: 3 });
    await owner.writeWatermark();
    expect(await stored()).toMatchObject({ term: 1, generation: 1, seq: 4, recordCrc: crcOf(4) });
    expect(owner.status()).toMatchObject({ seq: 4, markedSeq: 4 });
  });

  test("answers nothing before its watermark says what it answers from", async () => {
    let release = (): void => undefined;
    held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const done = serve(2);
    await until({ state: "catching-up", seq: 3 });
    expect(ask("memory")["error"]).toMatchObject({ code: "NO_OWNER" });
    release();
    await done;
    expect(await stored()).toMatchObject({ seq: 3 });
  });

  test("writes no watermark before it has folded anything", async () => {
    await owner.writeWatermark();
    await owner.start();
    await owner.writeWatermark();
    expect(await stored()).toBeUndefined();
    expect(watermarkFailures).toEqual([]);
  });

  test("writes a watermark of the last record when it is closed, before the close is done", async () => {
    await serve(2);
    await owner.close();
    expect(records.calls.map(({ action }) => action)).toContain("create");
    expect(await stored()).toMatchObject({ seq: 3 });
  });

  test("reports why it cannot write the watermark, and continues", async () => {
    records.losesRequest = ({ action }) => action !== "read";
    await serve(1);
    expect(watermarkFailures).toEqual(["TIMEOUT"]);
    expect(owner.isServing).toBe(true);
    records.losesRequest = () => false;
    await owner.writeWatermark();
    expect(await stored()).toMatchObject({ seq: 2 });
  });

  test("leaves the watermark alone while it catches up with it, under the next term from then on", async () => {
    await serve(4);
    await owner.close();
    owner = make();
    await owner.start();
    deliver(1);
    await until({ state: "serving", seq: 5 });
    await owner.writeWatermark();
    expect(await stored()).toMatchObject({ term: 1, seq: 5 });
    deliver(writer.note({ loss: 9 }).seq);
    await until({ seq: 6 });
    await owner.writeWatermark();
    expect(await stored()).toMatchObject({ term: 2, seq: 6 });
  });
});

test("an owner that cannot take over for no known reason has failed after ten attempts", async () => {
  withoutPauses();
  let attempts = 0;
  vi.spyOn(snapshots, "lastManifest").mockImplementation(() => {
    attempts += 1;
    return Promise.reject(new TypeError("x is undefined"));
  });
  await owner.start();
  await until({ state: "failed", error: { code: "INTERNAL", message: "x is undefined" } });
  await expect.poll(() => failures, { timeout: HANG_MS }).toMatchObject([{ code: "INTERNAL" }]);
  expect(attempts).toBe(10);
});

describe("an owner that takes over", () => {
  beforeEach(async () => {
    await serve(4);
    await owner.close();
    owner = make();
  });

  test("serves when it has folded all that the journal held, not before", async () => {
    await owner.start();
    const [first, second, ...rest] = writer.records;
    for (const record of [first, second]) {
      if (record !== undefined) line.record(record.seq, record.payload, record.subject);
    }
    await until({ state: "catching-up", seq: 2 });
    for (const { seq, payload, subject } of rest) line.record(seq, payload, subject);
    await until({ state: "serving", seq: 5 });
  });

  test("says how far it has come to whoever asks, until it serves", async () => {
    await owner.start();
    const [first, second, ...rest] = writer.records;
    for (const record of [first, second]) {
      if (record !== undefined) line.record(record.seq, record.payload, record.subject);
    }
    const takeOver = { folded: 2, records: 5 };
    await until({ state: "catching-up", takeOver });
    expect(ask("memory")["error"]).toMatchObject({ code: "NO_OWNER", details: { takeOver } });
    expect(ask("status")).toMatchObject({ status: { state: "catching-up", takeOver } });
    for (const { seq, payload, subject } of rest) line.record(seq, payload, subject);
    await until({ state: "serving" });
    expect(owner.status()).not.toHaveProperty("takeOver");
    expect(ask("status")).toMatchObject({ status: { state: "serving", seq: 5 } });
  });

  test("counts no watermark of another journal", async () => {
    const watermarks = new WatermarkKeeper(records, SHARD);
    await watermarks.read();
    await watermarks.raise({ term: 1, generation: 9, seq: 77, recordCrc: 1, checksum: [1, 1, 1] });
    await owner.start();
    expect(owner.status()).toMatchObject({ generation: 1, markedSeq: 0 });
  });
});

describe("an owner whose predecessor had folded more than the journal holds", () => {
  beforeEach(async () => {
    await serve(4);
    await owner.close();
    lost = 2;
    owner = make();
    await owner.start();
    await until({ state: "failed", error: { code: "JOURNAL_LOST" } });
  });

  test("fails the shard, names what is lost, and leaves the watermark as it is", async () => {
    expect(failures.map(({ code, details }) => [code, details])).toEqual([
      ["JOURNAL_LOST", { shard: SHARD, from: 4, to: 5 }],
    ]);
    expect(owner.status()).toMatchObject({ state: "failed", error: { code: "JOURNAL_LOST" } });
    await owner.writeWatermark();
    await owner.close();
    expect(await stored()).toMatchObject({ term: 1, seq: 5 });
  });

  test("reports that to trainers that pull a block that it has never heard of", async () => {
    const index = (SHARD - (hashName("p0") % SHARDS) + SHARDS) % SHARDS;
    const subject = SUBJECTS.pull("p0", index, "alice");
    const data = encodePullRequest({ epoch: 1, generation: 1, seq: 0, waitMs: 0 });
    const reply = `${SUBJECTS.inbox("alice")}.7`;
    handlers.get(SUBJECTS.allPulls())?.(null, { subject, reply, data } as Msg);
    await new Promise(setImmediate);
    expect(answered.map((bytes) => decodeMessage(bytes).fields["error"])).toMatchObject([
      { code: "JOURNAL_LOST" },
    ]);
    await owner.close();
    expect([...handlers.keys()]).toEqual([]);
  });
});
