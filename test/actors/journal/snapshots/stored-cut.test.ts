import { beforeEach, describe, expect, test } from "vitest";
import { Shard } from "../../../../src/actors/fold/shard.ts";
import { SnapshotBudget } from "../../../../src/actors/journal/snapshots/snapshot-budget.ts";
import { Snapshotter } from "../../../../src/actors/journal/snapshots/snapshotter.ts";
import { decodeMessage, PserverError } from "../../../../src/protocol/index.ts";
import { BufferPool } from "../../../../src/transport/buffers.ts";
import { foldInit } from "../../fold/folded.ts";
import { JournalWriter, SHARD, SUBJECTS } from "../../fold/journal-writer.ts";
import { HeldStore } from "./held-store.ts";

// Proves what a cut stores and under which subjects, what it takes of the worker's budget and gives back, and
// that one which has failed or was aborted leaves nothing behind: no copy, no piece that a later one would
// count on. The store is a table whose publishes the test lets through.

const MIB = 1024 * 1024;
const HEADER = { term: 1, host: "h", owner: "o", generation: 1, created: "now", fallbacks: [] };
const NAMES = Array.from({ length: 12 }, (_, i) => `p${i}`);
const LOST = new PserverError("NO_BROKER", "lost");

/** A pool that knows how many of its buffers are in use. */
class CountingPool extends BufferPool {
  inUse = 0;

  override take(bytes: number): Buffer {
    this.inUse += 1;
    return super.take(bytes);
  }

  override giveBack(buffer: Uint8Array): void {
    this.inUse -= 1;
    super.giveBack(buffer);
  }
}

let store: HeldStore;
let writer: JournalWriter;
let shard: Shard;
let pool: CountingPool;
let budget: SnapshotBudget;
let snapshotter: Snapshotter;
/** How often copies were released. */
let released: number;

function make(partBytesMax = 100_000): void {
  snapshotter = new Snapshotter({
    ...{ store, subjects: SUBJECTS, shard: SHARD, partBytesMax, budget, stored: new Map() },
    onProgress: () => {
      released += 1;
    },
  });
}

beforeEach(() => {
  [store, writer, released] = [new HeldStore(), new JournalWriter(), 0];
  pool = new CountingPool();
  budget = new SnapshotBudget(pool);
  make();
  shard = Shard.create({
    subjects: SUBJECTS,
    shard: SHARD,
    hooks: {
      beforeChange: (block) => snapshotter.beforeChange(block),
      blockRemoved: (block) => snapshotter.blockRemoved(block),
    },
  });
  shard.apply(writer.host({ verb: "rules", rules: 1 }));
  for (const parameter of NAMES) foldInit(shard, writer, Float32Array.of(1, 2), { parameter });
});

function cut(): Promise<unknown> {
  const made = snapshotter.cut(
    shard,
    () => HEADER,
    () => 0,
    () => undefined,
  );
  // Some are expected to fail before the test looks.
  made.catch(() => undefined);
  return made;
}

function update(parameter: string): void {
  const add = { op: "mix", alpha: 1, beta: 1 } as const;
  shard.apply(writer.push(Float32Array.of(1, 1), add, { parameter }));
}

/** Lets what can run run. */
async function settle(): Promise<void> {
  for (let i = 0; i < 10; i++) await new Promise((resolve) => setImmediate(resolve));
}

/** A cut of which four blocks are on their way and eight wait, copied because they have changed. */
async function halfStoredCut(): Promise<{ done: Promise<unknown> }> {
  store.hold();
  const done = cut();
  await settle();
  for (const name of NAMES) update(name);
  expect([store.waiting, budget.copiedBytes]).toEqual([4, 8 * 8]);
  return { done };
}

describe("a cut", () => {
  test("stores each slot and each part of the state under its own subject", async () => {
    make(40);
    const config = { optimizer: "adagrad", learningRate: 0.5 };
    foldInit(shard, writer, Float32Array.of(1), { parameter: "m", config });
    await cut();
    const manifest = store.manifests.at(-1);
    const parts = manifest?.state.map(({ seq }) => seq) ?? [];
    expect(parts.length).toBeGreaterThan(2);
    for (const [part, seq] of parts.entries()) {
      expect(store.subjects.get(seq)).toBe(SUBJECTS.snapshotState(SHARD, part));
      expect(decodeMessage(store.messages.get(seq) ?? new Uint8Array()).fields).toEqual({ part });
      expect(store.data(seq).length).toBeLessThanOrEqual(40);
    }
    const pieces = manifest?.pieces.map((seq) => store.subjects.get(seq)) ?? [];
    expect(pieces.slice(-2)).toEqual([0, 1].map((slot) => SUBJECTS.piece(SHARD, "m", 0, slot)));
    expect(new Set(pieces).size).toBe(NAMES.length + 2);
    expect(store.restore().digest()).toBe(shard.digest());
  });

  test("holds a block as it was, however often that changes meanwhile", async () => {
    const digest = shard.digest();
    const { done } = await halfStoredCut();
    for (const name of NAMES) update(name);
    store.release();
    await done;
    expect(store.restore().digest()).toBe(digest);
  });

  test("that failed leaves nothing behind once the next one begins", async () => {
    store.hold();
    const made = cut();
    await settle();
    await store.failOne();
    store.release();
    await expect(made).rejects.toMatchObject({ code: "TIMEOUT" });
    await settle();
    const left = [...store.messages.keys()];
    expect(left.length).toBeGreaterThan(0);
    await cut();
    for (const seq of left) expect(store.messages.has(seq)).toBe(false);
    expect(store.restore().digest()).toBe(shard.digest());
  });

  test("whose manifest may have been stored leaves everything that it names", async () => {
    store.afterCommit = () => Promise.reject(LOST);
    await expect(cut()).rejects.toMatchObject({ code: "NO_BROKER" });
    store.afterCommit = () => Promise.resolve();
    const digest = store.restore().digest();
    const first = store.manifests.length;
    await cut();
    const named = store.manifests[first - 1]?.pieces ?? [];
    expect(named.every((seq) => store.messages.has(seq))).toBe(true);
    expect(store.restore().digest()).toBe(digest);
  });

  test("for which there is no room is refused before anything is stored", async () => {
    store.room = 12 * 8 - 1;
    await expect(cut()).rejects.toMatchObject({ code: "JOURNAL_FULL" });
    expect(store.messages.size).toBe(0);
    store.room = 12 * 8;
    await cut();
    update(NAMES[0] ?? "");
    store.room = 8;
    await cut();
    expect(store.restore().digest()).toBe(shard.digest());
  });

  test("sends nothing while others have used up what may be under way, and leaves it to them at its end", async () => {
    await budget.acquire(4 * MIB);
    store.hold();
    const made = cut();
    await settle();
    expect(store.waiting).toBe(0);
    budget.release(4 * MIB);
    await settle();
    expect(store.waiting).toBe(4);
    store.release();
    await made;
    await budget.acquire(4 * MIB);
  });

  test("gives a message's buffer back once it is acknowledged, not before", async () => {
    store.hold();
    const made = cut();
    await settle();
    expect(pool.inUse).toBe(4);
    store.release();
    await made;
    expect(pool.inUse).toBe(0);
  });

  test("releases copies as their blocks are stored, and reports that", async () => {
    const { done } = await halfStoredCut();
    store.release();
    await done;
    expect([budget.copiedBytes, released, pool.inUse]).toEqual([0, 8, 0]);
  });

  test("holds the fold up only while a change may need a copy and copies take all their room", async () => {
    budget.copied(32 * MIB);
    expect(snapshotter.holdsUp).toBe(false);
    budget.copied(-4 * MIB);
    store.hold();
    const made = cut();
    await settle();
    expect(snapshotter.holdsUp).toBe(false);
    budget.copied(4 * MIB);
    expect(snapshotter.holdsUp).toBe(true);
    store.release();
    await made;
    expect(snapshotter.holdsUp).toBe(false);
  });
});

describe("a cut that ends early", () => {
  test("releases its copies at once and once, and sends nothing more", async () => {
    const { done } = await halfStoredCut();
    snapshotter.abort(LOST);
    await expect(done).rejects.toBe(LOST);
    expect([budget.copiedBytes, released]).toEqual([0, 8]);
    store.release();
    await settle();
    expect([store.messages.size, store.manifests.length]).toEqual([4, 0]);
    expect([budget.copiedBytes, released]).toEqual([0, 8]);
    await budget.acquire(4 * MIB);
  });

  test("sends no second slot of a block either", async () => {
    const config = { optimizer: "adagrad", learningRate: 0.5 };
    await cut();
    const before = store.messages.size;
    foldInit(shard, writer, Float32Array.of(1), { parameter: "m", config });
    store.hold();
    const made = cut();
    await settle();
    snapshotter.abort(LOST);
    store.release();
    await expect(made).rejects.toBe(LOST);
    await settle();
    expect(store.messages.size - before).toBe(1);
  });

  test("keeps the buffers of messages without an answer: they may still be sent", async () => {
    const { done } = await halfStoredCut();
    await store.failOne();
    await expect(done).rejects.toMatchObject({ code: "TIMEOUT" });
    expect(pool.inUse).toBe(4);
  });

  test("at its commit has stored nothing that the next counts on: its pieces may be removed", async () => {
    store.afterCommit = () => Promise.reject(new PserverError("TIMEOUT", "no answer"));
    await expect(cut()).rejects.toMatchObject({ code: "TIMEOUT" });
    const failed = new Set(store.manifests.at(-1)?.pieces);
    store.afterCommit = () => Promise.resolve();
    await cut();
    expect(store.manifests.at(-1)?.pieces.filter((seq) => failed.has(seq))).toEqual([]);
  });

  test("before its commit is answered says nothing of blocks made anew since", async () => {
    let answer: () => void = () => undefined;
    store.afterCommit = () =>
      new Promise((resolve) => {
        answer = resolve;
      });
    const made = cut();
    await settle();
    snapshotter.abort(LOST);
    await expect(made).rejects.toBe(LOST);
    shard.apply(writer.host({ verb: "drop", parameter: "p1", epoch: 1 }));
    foldInit(shard, writer, Float32Array.of(8, 9), { parameter: "p1" });
    answer();
    await settle();
    store.afterCommit = () => Promise.resolve();
    await cut();
    expect(store.restore().digest()).toBe(shard.digest());
  });
});
