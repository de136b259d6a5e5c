// Proves what an owner does whose lease had run out and was claimed again: it answers nothing before the broker
// has taken a manifest of it, goes on with what it has folded if nobody else has taken the shard over meanwhile,
// and takes it over anew if somebody has. There is no broker: the journal is that of a writer, snapshots and
// watermarks are in memory, and the test says in which tenure of the lease the owner is.
import type { Msg } from "@nats-io/transport-node";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { ShardOwner } from "../../../src/actors/owner/shard-owner.ts";

import {
  decodeMessage,
  encodePullRequest,
  hashName,
  PserverError,
} from "../../../src/protocol/index.ts";
import { JournalLine } from "../../support/journal-line.ts";
import { HANG_MS } from "../../support/limits.ts";
import { MemoryBucket } from "../../support/memory-bucket.ts";
import { MemorySnapshots } from "../../support/memory-snapshots.ts";
import { withoutPauses } from "../../support/without-pauses.ts";
import { JournalWriter, SHARD, SUBJECTS } from "../fold/journal-writer.ts";
import { makeOwner, type OwnerChanges, SHARDS } from "./make-owner.ts";

let writer: JournalWriter;
let records: MemoryBucket;
let snapshots: MemorySnapshots;
/** Of the lease of the first owner. */
let tenure: bigint | undefined;
let isLeaseRenewed: boolean;
/** Records that the journal has lost at its end. */
let lost: number;
let failures: PserverError[];
let served: number;
let owner: Owner;
let others: Owner[];

/** An owner, what delivers the journal to it, and who receives its requests. */
interface Owner {
  readonly owner: ShardOwner;
  readonly line: JournalLine;
  readonly handlers: Map<string, (error: null, message: Msg) => void>;
  readonly answered: Uint8Array[];
}

function make(deps: OwnerChanges = {}): Owner {
  const line = new JournalLine();
  const handlers: Owner["handlers"] = new Map();
  const answered: Uint8Array[] = [];
  const parts = { line, writer, records, snapshots, handlers, answered, lost: () => lost };
  return { owner: makeOwner(parts, deps), line, handlers, answered };
}

function deliver({ line }: Owner): void {
  for (const { seq, payload, subject } of writer.records) line.record(seq, payload, subject);
}

async function until({ owner: one }: Owner, expected: Record<string, unknown>): Promise<void> {
  await expect.poll(() => one.status(), { timeout: HANG_MS, interval: 5 }).toMatchObject(expected);
}

/** Pulls the first block; returns the records that the answers cover, or the codes of errors. */
async function ask({ handlers, answered }: Owner, index = 0): Promise<unknown[]> {
  const data = encodePullRequest({ epoch: 1, generation: 1, seq: 0, waitMs: 0 });
  const [subject, reply] = [SUBJECTS.pull("p0", index, "alice"), `${SUBJECTS.inbox("alice")}.7`];
  // A failed shard answers for blocks that it does not know, too.
  const receive = handlers.get(SUBJECTS.block("p0", index)) ?? handlers.get(SUBJECTS.allPulls());
  receive?.(null, { subject, reply, data } as Msg);
  await new Promise(setImmediate);
  return answered.splice(0).map((bytes) => {
    const { seq, error } = decodeMessage(bytes).fields;
    return error === undefined ? seq : (error as { code: string }).code;
  });
}

async function newestTerm(): Promise<number | undefined> {
  return (await snapshots.lastManifest())?.manifest.term;
}

beforeEach(async () => {
  writer = new JournalWriter();
  records = new MemoryBucket();
  snapshots = new MemorySnapshots();
  [tenure, lost, failures, served, others] = [1n, 0, [], 0, []];
  isLeaseRenewed = true;
  owner = make({
    tenure: () => tenure,
    isLeaseRenewed: () => isLeaseRenewed,
    listener: {
      serving: () => {
        served += 1;
      },
      trouble: (type, error) => {
        if (type === "failed") failures.push(error);
      },
    },
  });
  await owner.owner.start();
  for (let i = 0; i < 2; i++) writer.init(Float32Array.of(i), { parameter: `p${i}` });
  deliver(owner);
  await until(owner, { state: "serving", seq: 5 });
  expect(await ask(owner)).toEqual([5]);
});

afterEach(async () => {
  for (const one of [owner, ...others]) await one.owner.close();
});

/** Another owner takes the shard over, folds one record more, and is gone again. */
async function ownedByAnother(): Promise<void> {
  tenure = undefined;
  const other = make();
  others.push(other);
  await other.owner.start();
  writer.init(Float32Array.of(9), { parameter: "q" });
  deliver(other);
  await until(other, { state: "serving", seq: 7 });
  await other.owner.close();
  tenure = 2n;
}

test("it answers nothing once the lease has run out, nor when it was claimed again", async () => {
  tenure = undefined;
  expect(await ask(owner)).toEqual([]);
  tenure = 2n;
  expect(await ask(owner)).toEqual([]);
});

test("it goes on with what it has folded when the broker has taken its manifest", async () => {
  const read = vi.spyOn(snapshots, "read");
  const stored = snapshots.messages.size;
  tenure = 2n;
  await owner.owner.resume();
  expect(await ask(owner)).toEqual([5]);
  expect(await newestTerm()).toBe(2);
  expect(snapshots.messages.size).toBe(stored);
  expect(read).not.toHaveBeenCalled();
  expect(served).toBe(2);
});

test("it takes the shard over anew when another host has owned it meanwhile", async () => {
  await ownedByAnother();
  void owner.owner.resume();
  await until(owner, { state: "catching-up", term: 3 });
  expect(await ask(owner)).toEqual([]);
  deliver(owner);
  await until(owner, { state: "serving", seq: 7 });
  expect(await ask(owner)).toEqual([7]);
  expect(served).toBe(2);
  expect(failures).toEqual([]);
});

test("it asks again while the broker cannot say, and answers nothing meanwhile", async () => {
  withoutPauses();
  const commit = vi.spyOn(snapshots, "commit");
  const attempts: unknown[][] = [];
  commit.mockImplementation(async () => {
    attempts.push(await ask(owner));
    if (attempts.length === 3) commit.mockRestore();
    throw new PserverError("TIMEOUT", "the broker did not answer");
  });
  tenure = 2n;
  await owner.owner.resume();
  expect(attempts).toEqual([[], [], []]);
  expect(await ask(owner)).toEqual([5]);
  expect(owner.owner.status()).not.toHaveProperty("error");
});

test("after its connection was lost it answers nothing until the lease was renewed, and proves nothing for that", async () => {
  isLeaseRenewed = false;
  expect(await ask(owner)).toEqual([]);
  // Proven meanwhile, as by a snapshot or by a claim: the connection is another thing.
  tenure = 2n;
  await owner.owner.resume();
  expect(await ask(owner)).toEqual([]);
  const term = await newestTerm();
  isLeaseRenewed = true;
  expect(await ask(owner)).toEqual([5]);
  expect(await newestTerm()).toBe(term);
});

test("one that has failed does not say so either, until the lease was renewed", async () => {
  lost = 2;
  await owner.owner.reconnected();
  await until(owner, { state: "failed" });
  const index = (SHARD - (hashName("p0") % SHARDS) + SHARDS) % SHARDS;
  isLeaseRenewed = false;
  expect(await ask(owner, index)).toEqual([]);
  isLeaseRenewed = true;
  expect(await ask(owner, index)).toEqual(["JOURNAL_LOST"]);
});

test("it does not go on if the lease runs out before the broker has said so", async () => {
  const commit = snapshots.commit.bind(snapshots);
  vi.spyOn(snapshots, "commit").mockImplementation(async (manifest, previousSeq) => {
    const seq = await commit(manifest, previousSeq);
    tenure = undefined;
    return seq;
  });
  tenure = 2n;
  await owner.owner.resume();
  tenure = 3n;
  expect(await ask(owner)).toEqual([]);
  expect(served).toBe(1);
});

test("one whose lease was lost and claimed again while it took the shard over asks when it is done", async () => {
  await owner.owner.close();
  const commit = snapshots.commit.bind(snapshots);
  const terms: number[] = [];
  vi.spyOn(snapshots, "commit").mockImplementation((manifest, previousSeq) => {
    terms.push(manifest.term);
    tenure = 5n;
    return commit(manifest, previousSeq);
  });
  const next = make({ tenure: () => tenure });
  others.push(next);
  await next.owner.start();
  expect(terms).toEqual([2, 3]);
  deliver(next);
  await until(next, { state: "serving", seq: 5 });
  expect(await ask(next)).toEqual([5]);
});

test("one that is closed writes nothing more", async () => {
  tenure = 2n;
  await owner.owner.close();
  const messages = [...snapshots.messages.keys()];
  await owner.owner.resume();
  expect([...snapshots.messages.keys()]).toEqual(messages);
});

test("one that has found a loss, which no watermark shows, says so in a new tenure, too, and serves nothing", async () => {
  lost = 2;
  await owner.owner.reconnected();
  await until(owner, { state: "failed", error: { code: "JOURNAL_LOST" } });
  // A block that would be in the shard: where those are that it knows, a failed shard does not look.
  const index = (SHARD - (hashName("p0") % SHARDS) + SHARDS) % SHARDS;
  expect(await ask(owner, index)).toEqual(["JOURNAL_LOST"]);
  tenure = undefined;
  expect(await ask(owner, index)).toEqual([]);
  tenure = 2n;
  await owner.owner.resume();
  expect(await ask(owner, index)).toEqual(["JOURNAL_LOST"]);
  expect(owner.owner.status()).toMatchObject({ state: "failed" });
  expect(await newestTerm()).toBe(1);
});
