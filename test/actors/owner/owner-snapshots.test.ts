// Proves that an owner's parts do what one of them alone cannot: a take-over tidies up and keeps what the former
// owner kept, snapshots hold the shard as it was and hold up its fold, and a close, a reconnect, a lost shard or a
// gap ends what is under way. There is no broker: the journal is that of a writer, snapshots are in memory.
import type { Msg } from "@nats-io/transport-node";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Shard } from "../../../src/actors/fold/shard.ts";
import { HostMemory } from "../../../src/actors/host/host-memory.ts";
import type { StoredManifest } from "../../../src/actors/journal/manifest.ts";
import { loadSnapshot } from "../../../src/actors/journal/snapshot-store.ts";
import { SnapshotBudget } from "../../../src/actors/journal/snapshots/snapshot-budget.ts";
import type { ShardOwner } from "../../../src/actors/owner/shard-owner.ts";
import { PserverError } from "../../../src/protocol/index.ts";
import { BufferPool } from "../../../src/transport/buffers.ts";
import { JournalLine } from "../../support/journal-line.ts";
import { HANG_MS } from "../../support/limits.ts";
import { MemoryBucket } from "../../support/memory-bucket.ts";
import { MemorySnapshots } from "../../support/memory-snapshots.ts";
import { withoutPauses } from "../../support/without-pauses.ts";
import { JournalWriter, SHARD, SUBJECTS } from "../fold/journal-writer.ts";
import { makeOwner, type OwnerChanges, SHARDS } from "./make-owner.ts";

const COPIES_MAX = 32 * 1024 * 1024;
const TIMED_OUT = new PserverError("TIMEOUT", "the broker did not answer");

let line: JournalLine;
let writer: JournalWriter;
let records: MemoryBucket;
let snapshots: MemorySnapshots;
let memory: HostMemory;
let budget: SnapshotBudget;
let skipped: number[];
/** Failures of the owner, and of its snapshots. */
let failures: string[];
let reported: string[];
let owner: ShardOwner;

beforeEach(() => {
  [writer, records, snapshots] = [new JournalWriter(), new MemoryBucket(), new MemorySnapshots()];
  memory = HostMemory.open({ shards: SHARDS, freeBytes: () => 1e9, limitBytes: 1e9 });
  [skipped, failures, reported] = [[], [], []];
  budget = new SnapshotBudget(new BufferPool());
});

afterEach(async () => {
  await owner.close();
});

function make(deps: OwnerChanges = {}): ShardOwner {
  line = new JournalLine();
  const handlers = new Map<string, (error: null, message: Msg) => void>();
  const parts = { line, writer, records, snapshots, handlers, answered: [] };
  owner = makeOwner(
    { ...parts, lost: () => 0, skipped: () => skipped },
    {
      memory,
      snapshotBudget: budget,
      listener: {
        trouble: (type, { code }) => {
          if (type === "failed") failures.push(code);
          if (type === "snapshot-failed") reported.push(code);
        },
      },
      ...deps,
    },
  );
  return owner;
}

/** Writes so many blocks, or updates those that there are. */
function write(count: number): void {
  const add = { op: "mix", alpha: 1, beta: 1 } as const;
  for (let i = 0; i < count; i++) {
    const parameter = `p${i}`;
    const isThere = writer.records.some(({ subject }) => subject.includes(`.${parameter}.`));
    if (isThere) writer.push(Float32Array.of(1), add, { parameter });
    else writer.init(Float32Array.of(i), { parameter });
  }
}

/** Delivers the records from `first` on. */
function deliver(first: number): void {
  for (const { seq, payload, subject } of writer.records) {
    if (seq >= first) line.record(seq, payload, subject);
  }
}

async function until(check: () => void): Promise<void> {
  await vi.waitFor(check, { timeout: HANG_MS, interval: 5 });
}

async function settle(): Promise<void> {
  for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
}

/** Starts an owner and has it fold so many blocks. */
async function serve(blocks: number, deps: OwnerChanges = {}): Promise<void> {
  await make(deps).start();
  write(blocks);
  deliver(1);
  await until(() =>
    expect(owner.status()).toMatchObject({ state: "serving", seq: 1 + 2 * blocks }),
  );
  await settle();
}

/** As {@link serve}, with a snapshot under way of the state after that; stores it when the result is called. */
async function serveAndHold(blocks: number): Promise<() => void> {
  await make({ snapshotBytes: 1 }).start();
  const release = holdPieces();
  write(blocks);
  deliver(1);
  await until(() =>
    expect(owner.status()).toMatchObject({ state: "serving", seq: 1 + 2 * blocks }),
  );
  await settle();
  return release;
}

/** Folds updates of so many blocks. */
async function update(blocks: number): Promise<void> {
  const first = writer.records.length + 1;
  write(blocks);
  deliver(first);
  await settle();
}

/** Digest of the shard after so many records. */
function digestAt(seq: number): string {
  const shard = Shard.create({ subjects: SUBJECTS, shard: SHARD });
  for (const record of writer.records) if (record.seq <= seq) shard.apply(record);
  return shard.digest();
}

/** Holds what snapshots store until the returned function is called. */
function holdPieces(): () => void {
  let go: () => void = () => undefined;
  const held = new Promise<void>((resolve) => {
    go = resolve;
  });
  const publish = snapshots.publish.bind(snapshots);
  vi.spyOn(snapshots, "publish").mockImplementation(async (subject, bytes) => {
    await held;
    return await publish(subject, bytes);
  });
  return () => go();
}

describe("a take-over", () => {
  test("removes pieces of a snapshot that the former owner could not commit", async () => {
    await serve(2);
    const { seq: orphan } = await snapshots.publish("", new Uint8Array(64));
    await owner.close();
    await make().start();
    expect(snapshots.messages.has(orphan)).toBe(false);
  });

  test("keeps the older snapshots that the former owner kept, with all their pieces", async () => {
    await serve(2, { snapshotBytes: 1 });
    await until(async () => expect(await snapshots.manifests()).not.toHaveLength(1));
    await update(2);
    await owner.close();
    const kept = await snapshots.manifests();
    await make({ snapshotBytes: 1 }).start();
    deliver(1);
    await until(() => expect(owner.isServing).toBe(true));
    await update(2);
    await until(async () =>
      expect((await snapshots.lastManifest())?.manifest.seq).toBe(writer.records.length),
    );
    const after = await snapshots.manifests();
    expect(after.length).toBeGreaterThan(kept.length);
    for (const stored of after.filter(({ manifest }) => manifest.seq > 0)) {
      const { shard } = await loadSnapshot(
        { subjects: SUBJECTS, shard: SHARD, store: snapshots },
        stored,
      );
      expect(shard.digest()).toBe(digestAt(stored.manifest.seq));
    }
  });

  test("that was refused because another host was faster is tried again", async () => {
    withoutPauses();
    await serve(1);
    await owner.close();
    const refused = new PserverError("NOT_OWNER", "another was faster");
    vi.spyOn(snapshots, "commit").mockRejectedValueOnce(refused);
    await make().start();
    deliver(1);
    await until(() => expect(owner.isServing).toBe(true));
    expect(failures).toEqual([]);
  });

  test.each(["lastManifest", "list"] as const)(
    "of an owner that was closed while the store had not answered, %s, holds no memory and reads no journal",
    async (question) => {
      await serve(1);
      await owner.close();
      const freeBytes = memory.freeBytes;
      make();
      const ask = snapshots[question].bind(snapshots);
      let answer: () => void = () => undefined;
      const held = new Promise<void>((resolve) => {
        answer = resolve;
      });
      vi.spyOn(snapshots, question).mockImplementation(async (): Promise<never> => {
        await held;
        return (await ask()) as never;
      });
      const started = owner.start();
      await settle();
      await owner.close();
      answer();
      await started;
      expect([memory.freeBytes, line.consumers, line.open]).toEqual([freeBytes, [], 0]);
    },
  );
});

describe("a snapshot under way", () => {
  test("holds the shard as it was, whatever is folded meanwhile", async () => {
    const release = await serveAndHold(6);
    await update(6);
    release();
    await until(async () => expect((await snapshots.lastManifest())?.manifest.seq).toBe(19));
    for (const stored of await snapshots.manifests()) {
      if (stored.manifest.seq === 0) continue;
      const { shard } = await loadSnapshot(
        { subjects: SUBJECTS, shard: SHARD, store: snapshots },
        stored,
      );
      expect(shard.digest()).toBe(digestAt(stored.manifest.seq));
    }
  });

  test("does not hold what was dropped and made anew for stored", async () => {
    await serve(2, { snapshotBytes: 1 });
    await until(async () => expect((await snapshots.lastManifest())?.manifest.seq).toBe(5));
    const first = writer.records.length + 1;
    writer.host({ verb: "drop", parameter: "p1", epoch: 1 });
    writer.init(Float32Array.of(77), { parameter: "p1" });
    deliver(first);
    await until(async () => expect((await snapshots.lastManifest())?.manifest.seq).toBe(8));
    const stored = await snapshots.lastManifest();
    if (stored === undefined) throw new Error("no manifest");
    const { shard } = await loadSnapshot(
      { subjects: SUBJECTS, shard: SHARD, store: snapshots },
      stored,
    );
    expect(shard.digest()).toBe(digestAt(8));
  });

  test("holds the fold up while copies take all their room", async () => {
    const release = await serveAndHold(6);
    budget.copied(COPIES_MAX);
    await update(1);
    expect(owner.status()).toMatchObject({ seq: 13 });
    release();
    await until(() => expect(owner.status()).toMatchObject({ seq: 14 }));
  });

  test("ends with the connection, and the journal is read anew", async () => {
    await serveAndHold(2);
    await owner.reconnected();
    await until(() => expect(reported).toEqual(["NO_BROKER"]));
    expect(line.consumers).toHaveLength(2);
  });

  test("that fails after the owner is closed is not reported", async () => {
    const release = await serveAndHold(2);
    vi.spyOn(snapshots, "commit").mockRejectedValue(TIMED_OUT);
    await owner.close();
    release();
    await settle();
    expect(reported).toEqual([]);
  });

  test("that another owner refuses ends the shard here: nothing more is folded", async () => {
    await serve(2);
    const last = await snapshots.lastManifest();
    if (last === undefined) throw new Error("no manifest");
    await snapshots.commit({ ...last.manifest, term: 2, owner: "another" }, last.seq);
    await owner.close();
    failures = [];
    await make({ snapshotBytes: 1 }).start();
    const newest = await snapshots.lastManifest();
    await snapshots.commit({ ...last.manifest, term: 9, owner: "another" }, newest?.seq ?? 0);
    deliver(1);
    await until(() => expect(failures).toEqual(["NOT_OWNER"]));
    await update(1);
    expect(owner.status()).toMatchObject({ state: "failed", seq: 5 });
  });
});

describe("an owner that saves its shard", () => {
  test("first folds what the journal holds, then stores it, and folds nothing more", async () => {
    await serve(2);
    const first = writer.records.length + 1;
    write(2);
    const last = writer.records.length;
    let isSaved = false;
    const saved = owner.save().then(() => {
      isSaved = true;
    });
    await settle();
    expect(isSaved).toBe(false);
    deliver(first);
    await saved;
    const manifest = await snapshots.lastManifest();
    expect(manifest?.manifest).toMatchObject({ seq: last });
    await update(2);
    expect(owner.status()).toMatchObject({ seq: last });
    const stored = { subjects: SUBJECTS, shard: SHARD, store: snapshots };
    const { shard } = await loadSnapshot(stored, manifest as StoredManifest);
    expect(shard.digest()).toBe(digestAt(last));
  });

  test("waits for its take-over and all that it has to catch up with", async () => {
    await serve(2);
    await owner.close();
    write(2);
    make();
    void owner.start();
    const saved = owner.save();
    await settle();
    deliver(1);
    await saved;
    expect((await snapshots.lastManifest())?.manifest.seq).toBe(writer.records.length);
  });

  test("tries again after an error that passes, and stores what it had folded at first", async () => {
    withoutPauses();
    await serve(2);
    vi.spyOn(snapshots, "commit").mockRejectedValueOnce(TIMED_OUT);
    await owner.save();
    expect((await snapshots.lastManifest())?.manifest.seq).toBe(writer.records.length);
  });

  test("says why it cannot, and does nothing for a shard that has failed", async () => {
    await serve(2);
    const deposed = new PserverError("NOT_OWNER", "another host has taken over");
    vi.spyOn(snapshots, "commit").mockRejectedValue(deposed);
    await expect(owner.save()).rejects.toMatchObject({ code: "NOT_OWNER" });
    await until(() => expect(owner.status()).toMatchObject({ state: "failed" }));
    await owner.save();
  });
});

test("an owner that is closed gives the memory of its shard back", async () => {
  const freeBytes = memory.freeBytes;
  await serve(4);
  owner.status();
  expect(memory.freeBytes).toBeLessThan(freeBytes);
  await owner.close();
  expect(memory.freeBytes).toBe(freeBytes);
});

describe("a gap", () => {
  /** Records 1 to 5, no records 6 to 8, and record 9. */
  async function jump(deps: OwnerChanges = {}): Promise<void> {
    await serve(2, deps);
    skipped = [6, 7, 8];
    const { payload, subject } = writer.note({ loss: 7 });
    const last = { seq: 9, payload, subject };
    writer.records[writer.records.length - 1] = last;
    // A gap is one only when a second consumer delivers the same.
    for (let i = 0; i < 2; i++) {
      line.record(last.seq, payload, subject);
      await settle();
    }
  }

  test("whose snapshot cannot be stored is reported at each attempt, until the owner is closed", async () => {
    withoutPauses();
    const stored = snapshots.commit.bind(snapshots);
    let attempts = 0;
    vi.spyOn(snapshots, "commit").mockImplementation((manifest, previousSeq) => {
      if (manifest.seq < 8) return stored(manifest, previousSeq);
      attempts += 1;
      return Promise.reject(TIMED_OUT);
    });
    await jump();
    await until(() => expect(attempts).toBeGreaterThan(3));
    expect(new Set(reported)).toEqual(new Set(["TIMEOUT"]));
    await owner.close();
    await settle();
    const made = attempts;
    await settle();
    expect(attempts).toBe(made);
  });

  test("is no record for a watermark: a shard that stands behind one writes none", async () => {
    await jump();
    await until(() => expect(owner.status()).toMatchObject({ seq: 9 }));
    await owner.close();
    records = new MemoryBucket();
    await make().start();
    expect(owner.status()).toMatchObject({ seq: 8 });
    await owner.writeWatermark();
    expect(await records.keys("")).toEqual([]);
  });
});
