// Proves what ends the waiting at an owner: of reads for a position, a gap that is skipped and a journal that
// is replaced, without a further record; of a failed owner for a recovery, its close. There is no broker: the
// journal is that of a writer, snapshots and watermarks are in memory.
import type { Msg } from "@nats-io/transport-node";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { ShardOwner } from "../../../src/actors/owner/shard-owner.ts";

import { decodeMessage, encodePullRequest } from "../../../src/protocol/index.ts";
import { JournalLine } from "../../support/journal-line.ts";
import { HANG_MS } from "../../support/limits.ts";
import { MemoryBucket } from "../../support/memory-bucket.ts";
import { MemorySnapshots } from "../../support/memory-snapshots.ts";
import { JournalWriter, SUBJECTS } from "../fold/journal-writer.ts";
import { makeOwner, type OwnerChanges } from "./make-owner.ts";

let line: JournalLine;
let writer: JournalWriter;
let records: MemoryBucket;
let snapshots: MemorySnapshots;
let answered: Uint8Array[];
let handlers: Map<string, (error: null, message: Msg) => void>;
let skipped: number[];
/** The last generation whose stream was deleted. */
let deleted: number;
/** Records that the journal has lost at its end. */
let lost: number;
let owner: ShardOwner;

beforeEach(() => {
  [writer, records, snapshots] = [new JournalWriter(), new MemoryBucket(), new MemorySnapshots()];
  [answered, skipped, deleted, lost] = [[], [], 0, 0];
});

afterEach(async () => {
  await owner.close();
});

/** Starts an owner of the shard. */
async function start(deps: OwnerChanges = {}): Promise<void> {
  [line, handlers] = [new JournalLine(), new Map()];
  const parts = { line, writer, records, snapshots, handlers, answered };
  const journal = { lost: () => lost, skipped: () => skipped, deleted: () => deleted };
  owner = makeOwner({ ...parts, ...journal }, deps);
  await owner.start();
}

/** Starts an owner that serves a shard of two blocks, after record 3. */
async function serve(deps: OwnerChanges = {}): Promise<void> {
  await start(deps);
  writer.init(Float32Array.of(1), { parameter: "p0" });
  for (const { seq, payload, subject } of writer.records) line.record(seq, payload, subject);
  await expect
    .poll(() => owner.status(), { timeout: HANG_MS, interval: 5 })
    .toMatchObject({ state: "serving", seq: 3 });
  await settle();
}

async function settle(): Promise<void> {
  for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
}

/** Pulls the first block as it is after a record of the first journal. */
function pull(seq: number): void {
  const subject = SUBJECTS.pull("p0", 0, "alice");
  const data = encodePullRequest({ epoch: 1, generation: 1, seq, waitMs: 10_000 });
  const message = { subject, reply: `${SUBJECTS.inbox("alice")}.7`, data } as Msg;
  handlers.get(SUBJECTS.block("p0", 0))?.(null, message);
}

/** Answers to reads. */
const replies = (): unknown[] =>
  answered
    .map((bytes) => decodeMessage(bytes).fields)
    .filter((fields) => "version" in fields || "error" in fields);

/** Waits for the answer to the only read: at the latest, it comes when the read has waited for its time. */
async function reply(): Promise<unknown> {
  await expect.poll(() => replies().length, { timeout: HANG_MS, interval: 5 }).toBe(1);
  return replies()[0];
}

describe("a read that waits for a position", () => {
  test("in a gap is answered when the gap is skipped, though the record behind it cannot be read", async () => {
    await serve();
    skipped = [4, 5, 6];
    const { payload, subject } = writer.note({ loss: 7 });
    writer.records[writer.records.length - 1] = { seq: 7, payload, subject };
    const damaged = Uint8Array.from(payload, (byte, i) =>
      i === payload.length - 1 ? ~byte : byte,
    );
    pull(5);
    await settle();
    expect(replies()).toEqual([]);
    // A gap is one only when a second consumer delivers the same.
    for (let i = 0; i < 2; i++) {
      line.record(7, damaged, subject);
      await settle();
    }
    expect(await reply()).toMatchObject({ generation: 1, seq: 6, version: 1 });
  });

  test("of a journal that is replaced is refused at once, before the next one has a record", async () => {
    await serve({ journalStorage: "memory" });
    writer.note({ loss: 7 });
    pull(4);
    await settle();
    expect(replies()).toEqual([]);
    deleted = 1;
    await owner.reconnected();
    expect(owner.status()).toMatchObject({ generation: 2, seq: 0 });
    expect(await reply()).toMatchObject({
      error: { code: "JOURNAL_REPLACED", details: { fallbacks: [{ generation: 1, from: 4 }] } },
    });
  });
});

describe("a failed owner", () => {
  const LEASE_MS = 1_000;
  let recovered: number[];

  /** An owner that has failed, because its predecessor had folded more than the journal holds. */
  async function fail(): Promise<void> {
    recovered = [];
    await serve();
    await owner.close();
    lost = 1;
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    await start({
      leaseMs: LEASE_MS,
      listener: { recovered: ({ generation }) => recovered.push(generation) },
    });
    await settle();
    expect(owner.status()).toMatchObject({ state: "failed", error: { code: "JOURNAL_LOST" } });
  }

  /** Commits the manifest of a recovery, and lets as much time go by as it takes to find it. */
  async function recover(): Promise<void> {
    const last = await snapshots.lastManifest();
    if (last === undefined) throw new Error("no manifest");
    const manifest = { ...last.manifest, owner: "another", generation: 2 };
    await snapshots.commit(manifest, last.seq);
    await vi.advanceTimersByTimeAsync(3 * LEASE_MS);
  }

  afterEach(() => {
    vi.useRealTimers();
  });

  test("looks for a recovery of its shard, and reports it", async () => {
    await fail();
    await recover();
    expect(recovered).toEqual([2]);
  });

  test("looks for none any more once it is closed", async () => {
    await fail();
    await owner.close();
    const look = vi.spyOn(snapshots, "lastManifest");
    await vi.advanceTimersByTimeAsync(3 * LEASE_MS);
    expect(look).not.toHaveBeenCalled();
    await recover();
    expect(recovered).toEqual([]);
  });
});
