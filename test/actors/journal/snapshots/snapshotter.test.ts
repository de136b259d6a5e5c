import { beforeEach, describe, expect, test } from "vitest";
import { Shard } from "../../../../src/actors/fold/shard.ts";
import { SnapshotBudget } from "../../../../src/actors/journal/snapshots/snapshot-budget.ts";
import { Snapshotter } from "../../../../src/actors/journal/snapshots/snapshotter.ts";
import { decodeMessage, PserverError, toSynchronization } from "../../../../src/protocol/index.ts";
import { BufferPool } from "../../../../src/transport/buffers.ts";
import { foldInit } from "../../fold/folded.ts";
import { JournalWriter, SHARD, SUBJECTS } from "../../fold/journal-writer.ts";
import { HeldStore } from "./held-store.ts";

// Proves that a cut holds the blocks as they were when it was made, whatever happens while its
// pieces are stored: updates, blocks removed and made anew, a cut that failed before it and whose
// stores are still under way. The store is a table whose publishes the test lets through.

let store: HeldStore;
let writer: JournalWriter;
let shard: Shard;
let snapshotter: Snapshotter;
let budget: SnapshotBudget;

const HEADER = { term: 1, host: "h", owner: "o", generation: 1, created: "now", fallbacks: [] };
const NAMES = Array.from({ length: 12 }, (_, i) => `p${i}`);

beforeEach(() => {
  store = new HeldStore();
  writer = new JournalWriter();
  budget = new SnapshotBudget(new BufferPool());
  snapshotter = new Snapshotter({
    store,
    subjects: SUBJECTS,
    shard: SHARD,
    partBytesMax: 100_000,
    budget,
    onProgress: () => undefined,
    stored: new Map(),
  });
  shard = Shard.create({
    subjects: SUBJECTS,
    shard: SHARD,
    hooks: {
      beforeChange: (block) => snapshotter.beforeChange(block),
      blockRemoved: (block) => snapshotter.blockRemoved(block),
    },
  });
  const synchronization = toSynchronization({ mode: "sync", trainers: 2 });
  shard.apply(writer.host({ verb: "rules", rules: 1, synchronization }));
  const trainers = ["alice", "bob"];
  shard.apply(writer.host({ verb: "members", revision: 1, started: true, trainers }));
  for (const parameter of NAMES) foldInit(shard, writer, Float32Array.of(1, 2), { parameter });
});

function cut(): Promise<unknown> {
  return snapshotter.cut(
    shard,
    () => HEADER,
    () => 0,
    () => undefined,
  );
}

function update(parameter: string): void {
  const add = { op: "mix", alpha: 1, beta: 1 } as const;
  shard.apply(writer.push(Float32Array.of(1, 1), add, { parameter }));
}

/** A gradient of the open step: it changes a slot, but neither values nor version. */
function addToStep(parameter: string, trainer: string): void {
  const gradient = { op: "grad", lr: 0.5, step: 1 } as const;
  const settled = shard.apply(writer.push(Float32Array.of(1, 1), gradient, { parameter, trainer }));
  expect(settled?.outcome.code).toBeUndefined();
}

/** Lets what can run run, until so many publishes wait. */
async function waitFor(publishes: number): Promise<void> {
  while (store.waiting < publishes) await new Promise((resolve) => setImmediate(resolve));
}

describe("a cut", () => {
  test("has the state of the moment at which it was made, though every block changes meanwhile", async () => {
    const digest = shard.digest();
    store.hold();
    const made = cut();
    await waitFor(4);
    for (const name of NAMES) update(name);
    expect(budget.copiedBytes).toBe(16 * (NAMES.length - 4));
    shard.apply(writer.host({ verb: "drop", parameter: "p11", epoch: 1 }));
    store.release();
    await made;
    expect(store.restore().digest()).toBe(digest);
    expect(budget.copiedBytes).toBe(0);
  });

  test("stores only the blocks that have changed since the last", async () => {
    await cut();
    const before = store.messages.size;
    update("p3");
    await cut();
    // The values, the sum of the open step, and the state.
    expect(store.messages.size - before).toBe(3);
    expect(store.restore().digest()).toBe(shard.digest());
  });

  test("that failed leaves nothing behind for the next, though its stores continue", async () => {
    await cut();
    for (const name of NAMES) update(name);
    store.hold();
    const failing = cut();
    failing.catch(() => undefined);
    await waitFor(4);
    await store.failOne();
    await expect(failing).rejects.toMatchObject({ code: "TIMEOUT" });
    for (const name of NAMES) update(name);
    const next = cut();
    await waitFor(7);
    store.release();
    await next;
    expect(store.restore().digest()).toBe(shard.digest());
  });

  test("whose broker is lost ends at once, and what it has sent does not count", async () => {
    store.hold();
    const lost = cut();
    lost.catch(() => undefined);
    await waitFor(4);
    snapshotter.abort(new PserverError("NO_BROKER", "lost"));
    await expect(lost).rejects.toMatchObject({ code: "NO_BROKER" });
    for (const name of NAMES) update(name);
    const next = cut();
    await waitFor(8);
    store.release();
    await next;
    expect(store.manifests).toHaveLength(1);
    expect(store.restore().digest()).toBe(shard.digest());
  });

  test("whose broker is lost when all but the manifest is stored commits nothing", async () => {
    await cut();
    store.hold();
    const lost = cut();
    lost.catch(() => undefined);
    // Nothing has changed: only the state is stored again.
    await waitFor(1);
    snapshotter.abort(new PserverError("NO_BROKER", "lost"));
    store.release();
    await expect(lost).rejects.toMatchObject({ code: "NO_BROKER" });
    await new Promise((resolve) => setImmediate(resolve));
    expect(store.manifests).toHaveLength(1);
  });

  test("waits for one that is under way, and then has the state of its own moment", async () => {
    store.hold();
    const first = cut();
    await waitFor(4);
    const second = cut();
    update("p0");
    update("p11");
    const digest = shard.digest();
    store.release();
    await Promise.all([first, second]);
    expect(store.manifests.map(({ seq }) => seq)).toEqual([26, 28]);
    expect(store.restore().digest()).toBe(digest);
  });

  test("does not take a block made anew for the one it knows, at the same epoch and version", async () => {
    await cut();
    shard.apply(writer.host({ verb: "drop", parameter: "p1", epoch: 1 }));
    foldInit(shard, writer, Float32Array.of(8, 9), { parameter: "p1" });
    await cut();
    expect(store.restore().digest()).toBe(shard.digest());
    store.hold();
    update("p2");
    const made = cut();
    await waitFor(1);
    shard.apply(writer.host({ verb: "drop", parameter: "p1", epoch: 1 }));
    foldInit(shard, writer, Float32Array.of(5, 5), { parameter: "p1" });
    store.release();
    await made;
    await cut();
    expect(store.restore().digest()).toBe(shard.digest());
  });
});

describe("slots", () => {
  const config = { optimizer: "adam", learningRate: 0.5, sparse: true };
  // Values, two moments, counts of 3 rows, the open step's sum and 3 bytes for its rows.
  const lengths = [24, 24, 24, 12, 24, 3];

  beforeEach(() => {
    foldInit(shard, writer, new Float32Array(6), { parameter: "emb", config, shape: [3, 2] });
  });

  function addRow(row: number, trainer: string): void {
    const part = { rows: Uint32Array.of(row) };
    const gradient = { op: "grad", step: 1 } as const;
    const input = { parameter: "emb", trainer, part };
    const settled = shard.apply(writer.push(Float32Array.of(1, 2), gradient, input));
    expect(settled?.outcome.code).toBeUndefined();
  }

  test("are stored with their values, each with its own length", async () => {
    addRow(1, "alice");
    await cut();
    expect(store.restore().digest()).toBe(shard.digest());
    const stored = [...store.messages.values()].map((bytes) => decodeMessage(bytes));
    const pieces = stored.filter(({ fields }) => fields["parameter"] === "emb");
    expect(pieces.map(({ fields, data }) => [fields["slot"], data.length])).toEqual(
      lengths.map((length, slot) => [slot, length]),
    );
  });

  test("are stored again when only the open step has changed", async () => {
    await cut();
    for (const trainer of ["alice", "bob"]) {
      addToStep("p3", trainer);
      const before = store.messages.size;
      await cut();
      expect(store.messages.size - before).toBe(3);
      expect(store.restore().digest()).toBe(shard.digest());
    }
  });

  test("are copied before a gradient is added to a step that is being stored", async () => {
    addRow(1, "alice");
    addToStep("p11", "alice");
    const digest = shard.digest();
    store.hold();
    const made = cut();
    await waitFor(4);
    addRow(2, "bob");
    addToStep("p11", "bob");
    const held = lengths.reduce((sum, length) => sum + length, 0);
    expect(budget.copiedBytes).toBe(held + 16);
    store.release();
    await made;
    expect(store.restore().digest()).toBe(digest);
    expect(budget.copiedBytes).toBe(0);
    await cut();
    expect(store.restore().digest()).toBe(shard.digest());
  });
});

test("a cut that waited for its turn begins with what the one before has stored", async () => {
  let header = HEADER;
  let previousSeq = 0;
  const next = (): Promise<unknown> =>
    snapshotter.cut(
      shard,
      () => header,
      () => previousSeq,
      (stored) => {
        header = { ...HEADER, generation: stored.manifest.generation + 1 };
        previousSeq = stored.seq;
      },
    );
  await Promise.all([next(), next(), next()]);
  expect(store.manifests.map(({ generation }) => generation)).toEqual([1, 2, 3]);
});
