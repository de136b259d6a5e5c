// Proves what an owner does if a broker's copy of the journal is not what was folded before: it begins again from the
// snapshot with the copy of another broker, says which broker's copy is another one, and goes on; if most copies
// are others, it stops. The brokers are those that a connection without a broker names, one after the other.
import type { Msg } from "@nats-io/transport-node";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { ShardOwner } from "../../../src/actors/owner/shard-owner.ts";
import type { PserverError } from "../../../src/protocol/index.ts";
import { JournalLine } from "../../support/journal-line.ts";
import { HANG_MS } from "../../support/limits.ts";
import { MemoryBucket } from "../../support/memory-bucket.ts";
import { MemorySnapshots } from "../../support/memory-snapshots.ts";
import { JournalWriter } from "../fold/journal-writer.ts";
import { makeOwner } from "./make-owner.ts";

let line: JournalLine;
let writer: JournalWriter;
let records: MemoryBucket;
let snapshots: MemorySnapshots;
let handlers: Map<string, (error: null, message: Msg) => void>;
let told: [string, PserverError][];
let owner: ShardOwner;

function make(): ShardOwner {
  line = new JournalLine();
  const parts = { line, writer, records, snapshots, handlers, answered: [], lost: () => 0 };
  const trouble = (type: string, error: PserverError): unknown => told.push([type, error]);
  return makeOwner({ ...parts, replicas: 3 }, { listener: { trouble } });
}

async function until(expected: Record<string, unknown>): Promise<void> {
  await expect
    .poll(() => owner.status(), { timeout: HANG_MS, interval: 5 })
    .toMatchObject(expected);
}

/** Delivers all records from the consumer number `count`, record 3 perhaps as another one. */
async function deliver(count: number, hasOther: boolean): Promise<void> {
  await expect.poll(() => line.consumers.length, { timeout: HANG_MS }).toBe(count);
  await expect.poll(() => line.requests.length, { timeout: HANG_MS }).toBeGreaterThan(0);
  for (const { seq, payload, subject } of writer.records) {
    const other = writer.records[1]?.payload ?? payload;
    line.record(seq, hasOther && seq === 3 ? other : payload, subject);
  }
}

/** The brokers told of, with the reasons. */
const named = (): unknown[] => told.map(([type, { details }]) => [type, details["broker"]]);

beforeEach(async () => {
  writer = new JournalWriter();
  [records, snapshots, handlers, told] = [new MemoryBucket(), new MemorySnapshots(), new Map(), []];
  owner = make();
  await owner.start();
  for (let i = 0; i < 4; i++) writer.note({ loss: i });
  await deliver(1, false);
  await until({ state: "serving", seq: 5 });
  await owner.close();
  owner = make();
});

afterEach(async () => {
  await owner.close();
});

test("another copy is folded from the snapshot on, and the broker is named", async () => {
  line.brokers.push("a", "a", "b");
  await owner.start();
  await deliver(1, true);
  // The next consumer is on the same broker, and is made again.
  await deliver(3, false);
  await until({ state: "serving", seq: 5 });
  expect(named()).toEqual([["replica-damaged", "a"]]);
  const damaged = { broker: "a", from: 3, to: 3, isOther: true };
  expect(owner.status()).toMatchObject({ damagedReplicas: [damaged] });
});

test("nothing is served if most copies are others than what was folded", async () => {
  line.brokers.push("a", "b");
  await owner.start();
  await deliver(1, true);
  await deliver(2, true);
  await until({ state: "failed" });
  expect(named()).toEqual([
    ["replica-damaged", "a"],
    ["failed", undefined],
  ]);
  expect(owner.status()).toMatchObject({ error: { code: "JOURNAL_DAMAGED" } });
});
