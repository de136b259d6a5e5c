// Proves what a take-over makes of the snapshots that it finds: the newest one under the next term, so
// that the former owner is refused; the one before it if that is damaged; nothing of another journal;
// and that a shard without a manifest is new only if nothing else is left of it. And who may call a loss
// another owner's doing. Snapshots are made by the real code, in memory.
import { beforeEach, describe, expect, test, vi } from "vitest";
import { Shard } from "../../../src/actors/fold/shard.ts";
import type { Manifest, StoredManifest } from "../../../src/actors/journal/manifest.ts";
import type { SnapshotStore } from "../../../src/actors/journal/snapshot-store.ts";
import { SnapshotBudget } from "../../../src/actors/journal/snapshots/snapshot-budget.ts";
import {
  type ManifestHeader,
  Snapshotter,
} from "../../../src/actors/journal/snapshots/snapshotter.ts";
import type { Watermark } from "../../../src/actors/journal/watermark.ts";
import {
  isDeposed,
  type RecoveredShard,
  recoverShard,
} from "../../../src/actors/owner/recover-shard.ts";
import { draftMessage, PserverError, packValue, sealMessage } from "../../../src/protocol/index.ts";
import { BufferPool } from "../../../src/transport/buffers.ts";
import { MemorySnapshots } from "../../support/memory-snapshots.ts";
import { foldInit } from "../fold/folded.ts";
import { JournalWriter, SHARD, SUBJECTS } from "../fold/journal-writer.ts";

const HEADER: ManifestHeader = {
  term: 4,
  host: "old",
  owner: "former",
  generation: 2,
  created: "now",
  fallbacks: [],
};

let snapshots: MemorySnapshots;
let writer: JournalWriter;
let shard: Shard;

beforeEach(() => {
  snapshots = new MemorySnapshots();
  writer = new JournalWriter();
  shard = Shard.create({ subjects: SUBJECTS, shard: SHARD });
  shard.apply(writer.host({ verb: "rules", rules: 1 }));
});

/** Stores a snapshot of the shard with one more block. */
async function snapshot(parameter: string, header = HEADER): Promise<StoredManifest> {
  foldInit(shard, writer, Float32Array.of(1, 2), { parameter });
  const previous = (await snapshots.lastManifest())?.seq ?? 0;
  const snapshotter = new Snapshotter({
    store: snapshots.store,
    subjects: SUBJECTS,
    shard: SHARD,
    partBytesMax: 100_000,
    budget: new SnapshotBudget(new BufferPool()),
    onProgress: () => undefined,
    stored: new Map(),
  });
  return await snapshotter.cut(
    shard,
    () => header,
    () => previous,
    () => undefined,
  );
}

let takings = 0;

function takeOver(reserve: (bytes: number) => void = () => undefined): Promise<RecoveredShard> {
  takings += 1;
  return recoverShard({
    subjects: SUBJECTS,
    shard: SHARD,
    owner: `new ${takings}`,
    host: "new",
    store: snapshots.store,
    journal: {
      shard: SHARD,
      lastSeq: () => Promise.resolve(undefined),
      newestGeneration: () => Promise.resolve(0),
    },
    watermarks: { read: () => Promise.resolve(undefined) },
    reserve,
  });
}

describe("taking over", () => {
  test("that another owner has prevented leaves the newest manifest", async () => {
    const newest = await snapshot("a");
    const refused = new PserverError("NOT_OWNER", "another was faster");
    vi.spyOn(snapshots, "commit").mockRejectedValue(refused);
    await expect(takeOver()).rejects.toBe(refused);
    expect(await snapshots.lastManifest()).toEqual(newest);
  });

  test("reserves the memory of all values before it reads any, and reads none without", async () => {
    const { manifest } = await snapshot("a");
    const read = vi.spyOn(snapshots, "read");
    const noMemory = new PserverError("NO_MEMORY", "too little memory");
    const reserved: number[] = [];
    const taken = takeOver((bytes) => {
      reserved.push(bytes);
      throw noMemory;
    });
    await expect(taken).rejects.toBe(noMemory);
    expect(reserved).toEqual([shard.valueBytes]);
    expect(read.mock.calls.map(([piece]) => piece)).toEqual(manifest.state);
  });

  test("holds what the newest snapshot does, under the next term and a name of its own", async () => {
    await snapshot("a");
    const { manifest: newest } = await snapshot("b");
    const held = await takeOver();
    expect(held.shard.digest()).toBe(shard.digest());
    expect(held.manifest?.manifest).toEqual({
      ...newest,
      term: 5,
      host: "new",
      owner: held.manifest?.manifest.owner,
    });
    expect(held.manifest?.manifest.owner).not.toBe("former");
    expect([...held.stored.keys()].sort()).toEqual(["0:a", "0:b"]);
  });

  test("refuses the former owner's next commit, and leaves no second copy of its manifest", async () => {
    await snapshot("a");
    const newest = await snapshot("b");
    const held = await takeOver();
    await expect(snapshots.commit(newest.manifest, newest.seq)).rejects.toMatchObject({
      code: "NOT_OWNER",
    });
    const terms = (await snapshots.manifests()).map(({ manifest }) => manifest.term);
    expect(terms).toEqual([4, 5]);
    expect((await snapshots.lastManifest())?.seq).toBe(held.manifest?.seq);
  });

  test("twice gives each owner its own term", async () => {
    await snapshot("a");
    const [first, second] = [await takeOver(), await takeOver()];
    expect(first.manifest?.manifest.term).toBe(5);
    expect(second.manifest?.manifest.term).toBe(6);
    expect(second.manifest?.manifest.owner).not.toBe(first.manifest?.manifest.owner);
  });
});

describe("a damaged snapshot", () => {
  /** Loses a message that a manifest names. */
  function lose({ manifest }: { manifest: Manifest }, what: "piece" | "state"): void {
    const seq = what === "piece" ? manifest.pieces.at(-1) : manifest.state[0]?.seq;
    snapshots.messages.delete(seq ?? 0);
  }

  test.each(["piece", "state"] as const)("of which a %s is lost is skipped", async (what) => {
    const older = await snapshot("a");
    const digest = shard.digest();
    lose(await snapshot("b"), what);
    const held = await takeOver();
    expect(held.shard.digest()).toBe(digest);
    expect(held.manifest?.manifest).toMatchObject({
      ...{ term: 5, host: "new", seq: older.manifest.seq, pieces: older.manifest.pieces },
    });
    expect((await snapshots.lastManifest())?.seq).toBe(held.manifest?.seq);
    const terms = (await snapshots.manifests()).map(({ manifest }) => manifest.term);
    expect(terms).toEqual([4, 5]);
  });

  test("is skipped for the newest of several older ones", async () => {
    await snapshot("a");
    const second = await snapshot("b");
    const digest = shard.digest();
    lose(await snapshot("c"), "piece");
    const held = await takeOver();
    expect(held.shard.digest()).toBe(digest);
    expect(held.manifest?.manifest.seq).toBe(second.manifest.seq);
  });

  test("is none that cannot be read now: neither it nor an older one is skipped", async () => {
    await snapshot("a");
    const older = await snapshot("b");
    const newest = await snapshot("c");
    const timedOut = new PserverError("TIMEOUT", "the broker did not answer");
    const unanswered = new Set<number | undefined>();
    const read = snapshots.read.bind(snapshots);
    vi.spyOn(snapshots, "read").mockImplementation((piece) =>
      unanswered.has(piece.seq) ? Promise.reject(timedOut) : read(piece),
    );
    unanswered.add(newest.manifest.state[0]?.seq);
    await expect(takeOver()).rejects.toBe(timedOut);
    unanswered.clear();
    unanswered.add(older.manifest.state[0]?.seq);
    lose(newest, "piece");
    await expect(takeOver()).rejects.toBe(timedOut);
  });

  test.each([
    ["generation", { ...HEADER, generation: 1 }],
    ["creation", { ...HEADER, created: "before" }],
  ])("is not replaced by one of a journal of another %s", async (_what, header) => {
    await snapshot("a", header);
    lose(await snapshot("b"), "piece");
    await expect(takeOver()).rejects.toMatchObject({ code: "SNAPSHOT_DAMAGED" });
  });

  test("is an error if every older one is damaged, too", async () => {
    for (const parameter of ["a", "b", "c"]) lose(await snapshot(parameter), "piece");
    await expect(takeOver()).rejects.toMatchObject({ code: "SNAPSHOT_DAMAGED" });
  });

  test("is one whose state names no pieces of a block that it has", async () => {
    const { manifest, seq } = await snapshot("a");
    const bytes = packValue({ fold: shard.saveState(), pieces: [] });
    const draft = draftMessage({ part: 0 }, bytes.length);
    draft.data.set(bytes);
    const state = await snapshots.publish("", sealMessage(draft));
    await snapshots.commit({ ...manifest, state: [state] }, seq);
    snapshots.messages.delete(seq);
    await expect(takeOver()).rejects.toMatchObject({ code: "SNAPSHOT_DAMAGED" });
  });
});

describe("a loss is another owner's doing", () => {
  const LOST = new PserverError("JOURNAL_LOST", "ends too early");
  const DAMAGED = new PserverError("JOURNAL_DAMAGED", "record 7 is missing");

  test("if the newest manifest is another's", async () => {
    await snapshot("a");
    for (const error of [LOST, DAMAGED]) {
      expect(await isDeposed(error, snapshots.store, "me")).toBe(true);
      expect(await isDeposed(error, snapshots.store, "former")).toBe(false);
    }
  });

  test("only if it is one of the journal, and the manifest can be read", async () => {
    await snapshot("a");
    const other = new PserverError("SNAPSHOT_DAMAGED", "a piece is lost");
    expect(await isDeposed(other, snapshots.store, "me")).toBe(false);
    const silent = { lastManifest: () => Promise.reject(new PserverError("TIMEOUT", "no answer")) };
    expect(await isDeposed(LOST, silent, "me")).toBe(false);
  });
});

describe("a shard without a manifest", () => {
  const WATERMARK: Watermark = {
    term: 1,
    generation: 2,
    seq: 9,
    recordCrc: 7,
    checksum: [1, 2, 3],
    earlier: [],
  };

  function takeOver(left: {
    manifests?: (StoredManifest | undefined)[];
    /** Of the only journal there is. */
    generation?: number;
    watermark?: Watermark;
  }): ReturnType<typeof recoverShard> {
    const manifests = [...(left.manifests ?? [])];
    return recoverShard({
      subjects: SUBJECTS,
      shard: SHARD,
      owner: "o",
      host: "h",
      store: {
        lastManifest: () => Promise.resolve(manifests.shift()),
        commit: () => Promise.reject(new PserverError("NOT_OWNER", "another was faster")),
      } as unknown as SnapshotStore,
      journal: {
        shard: SHARD,
        lastSeq: (generation) => Promise.resolve(generation === left.generation ? 9 : undefined),
        newestGeneration: () => Promise.resolve(left.generation ?? 0),
      },
      watermarks: { read: () => Promise.resolve(left.watermark) },
      reserve: () => undefined,
    });
  }

  test("is new if nothing else is left of it", async () => {
    const { manifest, shard } = await takeOver({});
    expect([manifest, shard.seq]).toEqual([undefined, 0]);
  });

  test("has lost its snapshots if it has a journal", async () => {
    await expect(takeOver({ generation: 1 })).rejects.toMatchObject({
      code: "SNAPSHOT_DAMAGED",
      details: { shard: SHARD, generation: 1 },
    });
    for (const watermark of [{ watermark: WATERMARK }, {}]) {
      await expect(takeOver({ generation: 2, ...watermark })).rejects.toMatchObject({
        code: "SNAPSHOT_DAMAGED",
        details: { shard: SHARD, generation: 2 },
      });
    }
  });

  test("has lost everything if only the watermark is left", async () => {
    await expect(takeOver({ watermark: WATERMARK })).rejects.toMatchObject({
      code: "JOURNAL_LOST",
      details: { shard: SHARD, from: 1, to: 9 },
    });
  });

  test("is being made by another host if its manifest is there a moment later", async () => {
    const made = { seq: 5, manifest: { term: 1 } } as unknown as StoredManifest;
    await expect(takeOver({ manifests: [undefined, made], generation: 1 })).rejects.toMatchObject({
      code: "NOT_OWNER",
    });
  });
});
