// Proves when a shard is snapshotted: after so many bytes of journal, early when the journal fills, again
// after one that failed, and not once closed or deposed; and that each commit follows the one before and
// starts the removal of old ones. The store is a list of manifests that fails when told to.
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { NO_RECORDS } from "../../../src/actors/fold/journal-checksum.ts";
import { Shard } from "../../../src/actors/fold/shard.ts";
import type { Journal } from "../../../src/actors/journal/journal.ts";
import type { Manifest, StoredManifest } from "../../../src/actors/journal/manifest.ts";
import type { SnapshotStore } from "../../../src/actors/journal/snapshot-store.ts";
import { SnapshotBudget } from "../../../src/actors/journal/snapshots/snapshot-budget.ts";
import { ShardSnapshots } from "../../../src/actors/owner/shard-snapshots.ts";
import { type Position, PserverError } from "../../../src/protocol/index.ts";
import { BufferPool } from "../../../src/transport/buffers.ts";
import { foldInit } from "../fold/folded.ts";
import { JournalWriter, SHARD, SUBJECTS } from "../fold/journal-writer.ts";

const FIRST: Manifest = {
  ...{ term: 4, host: "h", owner: "o", generation: 2, created: "now", fallbacks: [] },
  ...{ seq: 1, recordCrc: 7, checksum: NO_RECORDS, state: [], pieces: [] },
};

/** Commits: the manifest that each one follows, and the record it is of. */
let commits: [number, number][];
/** Subjects of the pieces that were stored. */
let published: string[];
/** What the next commits end with instead. */
let failures: PserverError[];
/** Until when commits wait. */
let held: Promise<void>;
/** What the next questions for room end with. */
let room: PserverError[];
let removed: number[];
let purged: [number, number][];
let told: string[];
let journal: { bytes: number; bytesMax: number };
let shard: Shard;
let writer: JournalWriter;
let budget: SnapshotBudget;
let snapshots: ShardSnapshots;

beforeEach(() => {
  vi.useFakeTimers();
  [commits, failures, room, removed, purged, told] = [[], [], [], [], [], []];
  published = [];
  held = Promise.resolve();
  journal = { bytes: 0, bytesMax: 0 };
  writer = new JournalWriter();
  shard = Shard.create({ subjects: SUBJECTS, shard: SHARD });
  shard.apply(writer.host({ verb: "rules", rules: 1 }));
  budget = new SnapshotBudget(new BufferPool());
  let next = 100;
  const store = {
    publish: (subject: string) => {
      if (subject.includes(".piece.")) published.push(subject);
      return Promise.resolve({ seq: ++next, crc: 1 });
    },
    commit: async (manifest: Manifest, previousSeq: number) => {
      await held;
      const failure = failures.shift();
      if (failure !== undefined) throw failure;
      commits.push([previousSeq, manifest.seq]);
      return ++next;
    },
    list: () => Promise.resolve(new Map([2, 9, next + 1].map((seq) => [seq, 1]))),
    requireRoom: async () => {
      const refusal = room.shift();
      if (refusal !== undefined) throw refusal;
    },
    remove: (seqs: number[]) => {
      removed.push(...seqs);
      return Promise.resolve();
    },
  } as unknown as SnapshotStore;
  const manifest: StoredManifest = { seq: 9, manifest: FIRST };
  snapshots = new ShardSnapshots(
    {
      shard: SHARD,
      journal: {
        info: () => Promise.resolve(journal),
        purgeBelow: (generation: number, seq: number) => {
          purged.push([generation, seq]);
          return Promise.resolve();
        },
      } as unknown as Journal,
      store,
      worker: {
        subjects: SUBJECTS,
        archivers: { copied: () => Promise.resolve([]) },
        snapshotBudget: budget,
        settings: {
          snapshotBytes: 1_000,
          retainBytes: 5_000,
          olderBytesMax: 9e9,
          partBytesMax: 1_000,
        },
      },
    },
    { recovered: { shard, stored: new Map(), manifest }, kept: [manifest] },
    {
      onProgress: () => undefined,
      onDeposed: ({ code }) => told.push(`deposed: ${code}`),
      onSnapshotMade: () => undefined,
      onSnapshotFailed: ({ code }) => told.push(code),
      onArchiverBehind: ({ code }) => told.push(`behind: ${code}`),
    },
  );
});

afterEach(() => {
  snapshots.close();
  vi.useRealTimers();
});

/** Where the fold stands. */
const here = (): Position => ({ generation: FIRST.generation, seq: shard.seq });

/** Lets what can run run. */
const settle = (ms = 0): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);

const LOST = new PserverError("TIMEOUT", "the broker did not answer");

describe("a snapshot", () => {
  test("is not made of records that may be others than were folded before, but as soon as that is known", async () => {
    snapshots.advanced(2_000, false);
    await settle();
    expect(commits).toEqual([]);
    snapshots.advanced(1, true);
    await settle();
    expect(commits).toHaveLength(1);
  });

  test("is made after so many bytes of journal, and counts anew from there", async () => {
    snapshots.advanced(999, true);
    await settle();
    expect(commits).toEqual([]);
    snapshots.advanced(1, true);
    await settle();
    expect(commits).toEqual([[9, 1]]);
    snapshots.advanced(999, true);
    await settle();
    expect(commits).toHaveLength(1);
    snapshots.advanced(1, true);
    await settle();
    expect(commits).toEqual([
      [9, 1],
      [102, 1],
    ]);
  });

  test("says where the fold stands, under the header of the one before", async () => {
    foldInit(shard, writer, Float32Array.of(1));
    const { manifest } = await snapshots.make(here());
    const { term, host, owner, generation, created } = FIRST;
    expect(manifest).toMatchObject({ term, host, owner, generation, created });
    expect(manifest).toMatchObject({ seq: 3, recordCrc: shard.lastCrc, state: [{}] });
    expect(snapshots.newest?.manifest).toEqual(manifest);
    expect(snapshots.manifestHeader()).toEqual({
      term: 4,
      host: "h",
      owner: "o",
      generation: 2,
      created: "now",
      fallbacks: [],
    });
    expect(manifest.pieces).toHaveLength(1);
  });

  test("is made early in a journal that is half full, but not after each record", async () => {
    snapshots.journalIs({ bytes: 500, bytesMax: 1_600 });
    snapshots.advanced(200, true);
    snapshots.advanced(100, true);
    await settle();
    expect(commits).toEqual([]);
    snapshots.advanced(1, true);
    await settle();
    expect(commits).toHaveLength(1);
    journal = { bytes: 801, bytesMax: 1_600 };
    snapshots.journalIs(journal);
    snapshots.advanced(100, true);
    await settle();
    expect(commits).toHaveLength(1);
    snapshots.advanced(1, true);
    await settle();
    expect(commits).toHaveLength(2);
  });

  describe("that is due while steps run", () => {
    beforeEach(() => {
      for (const parameter of ["a", "b", "c", "d"]) {
        foldInit(shard, writer, Float32Array.of(1), { parameter });
      }
    });

    /** Folds so many bytes, as a step does. */
    async function step(bytes: number): Promise<void> {
      snapshots.advanced(bytes, true);
      await settle();
    }

    test("goes on as the journal grows, and is stored when half of the way to the next is over", async () => {
      await step(1_000);
      const stored = [published.length];
      for (let steps = 0; steps < 4; steps++) {
        await step(125);
        stored.push(published.length);
      }
      expect(stored).toEqual([0, 1, 2, 3, 4]);
      expect(commits).toHaveLength(1);
    });

    test("is stored at once when the steps end", async () => {
      await step(1_000);
      await settle(19);
      expect(published).toHaveLength(0);
      await settle(1);
      expect(commits).toHaveLength(1);
    });

    test("is stored at once when somebody waits for it, and no later one is", async () => {
      await step(1_000);
      expect(published).toHaveLength(0);
      void snapshots.make(here());
      await settle();
      expect(commits).toHaveLength(1);
      for (const parameter of ["a", "b"]) {
        foldInit(shard, writer, Float32Array.of(1), { parameter: `${parameter}2` });
      }
      await step(1_000);
      expect(published).toHaveLength(4);
    });

    test("is stored at once when records are missing: the fold waits for a snapshot behind them", async () => {
      await step(1_000);
      void snapshots.commitAcrossGap(() => snapshots.manifestHeader());
      await settle();
      expect(commits).toHaveLength(2);
    });

    test("is not put off in a journal that is three quarters full", async () => {
      journal = { bytes: 9_001, bytesMax: 12_000 };
      snapshots.journalIs(journal);
      await step(1_000);
      expect(commits).toHaveLength(1);
    });

    test("is stored at once when the shard is given up, so that no other waits for it", async () => {
      await step(1_000);
      snapshots.close();
      await settle();
      expect(commits).toHaveLength(1);
    });
  });

  test("that failed is reported and made again, with all records folded since the last one", async () => {
    failures = [LOST];
    snapshots.advanced(1_000, true);
    await settle();
    expect([commits, told]).toEqual([[], ["TIMEOUT"]]);
    await settle(500);
    expect(commits).toEqual([[9, 1]]);
    await settle(60_000);
    expect(commits).toHaveLength(1);
  });

  test("that fails again for the same reason is not reported again, but for another, and after a success", async () => {
    const full = new PserverError("NO_SPACE", "no space is left");
    failures = [LOST, LOST, LOST, full, full];
    snapshots.advanced(1_000, true);
    await settle(1_000);
    expect([failures.length, told]).toEqual([2, ["TIMEOUT"]]);
    await settle(1_500);
    expect([commits.length, told]).toEqual([1, ["TIMEOUT", "NO_SPACE"]]);
    failures = [full];
    snapshots.advanced(1_000, true);
    await settle();
    expect(told).toEqual(["TIMEOUT", "NO_SPACE", "NO_SPACE"]);
  });

  test("that finds no room is reported; older ones go, and it is made again", async () => {
    snapshots.advanced(1_000, true);
    await settle();
    expect(commits).toEqual([[9, 1]]);
    removed = [];
    room = [new PserverError("JOURNAL_FULL", "no room")];
    shard.apply(writer.note({ loss: 1 }));
    snapshots.advanced(1_000, true);
    await settle();
    expect([commits.length, told]).toEqual([1, ["JOURNAL_FULL"]]);
    // The one that the owner began with; records go on meanwhile.
    expect(removed).toContain(9);
    snapshots.advanced(1_000, true);
    await settle(500);
    expect(commits.map(([, seq]) => seq)).toEqual([1, 2]);
  });

  test("that failed is not made again by each record that follows, but after a pause", async () => {
    failures = [LOST, LOST];
    for (let records = 0; records < 100; records++) {
      snapshots.advanced(1_000, true);
      await settle();
    }
    expect(failures).toHaveLength(1);
    await settle(500);
    expect(failures).toEqual([]);
  });

  test("includes the records folded while it waited for its turn, so that no further one is due", async () => {
    let end: () => void = () => undefined;
    const other = budget.runInOrder(() => new Promise<void>((resolve) => (end = resolve)));
    snapshots.advanced(1_000, true);
    await settle();
    shard.apply(writer.note({ loss: 1 }));
    snapshots.advanced(1_000, true);
    end();
    await other;
    await settle();
    expect(commits).toEqual([[9, 2]]);
  });

  test("that another owner has refused is not made again", async () => {
    failures = [new PserverError("NOT_OWNER", "another has taken over")];
    snapshots.advanced(1_000, true);
    await settle(60_000);
    expect([commits, told]).toEqual([[], ["deposed: NOT_OWNER"]]);
  });

  test("is not made once closed", async () => {
    failures = [LOST];
    snapshots.advanced(1_000, true);
    await settle();
    snapshots.close();
    snapshots.advanced(1_000, true);
    await settle(60_000);
    expect([commits, told]).toEqual([[], ["TIMEOUT"]]);
  });

  describe("that was asked for", () => {
    let store: () => void = () => undefined;

    beforeEach(() => {
      held = new Promise((resolve) => {
        store = resolve;
      });
    });

    test("is made after one under way that is older", async () => {
      snapshots.advanced(1_000, true);
      await settle();
      shard.apply(writer.note({ loss: 1 }));
      const asked = snapshots.make(here());
      store();
      await asked;
      expect(commits.map(([, seq]) => seq)).toEqual([1, 2]);
    });

    test("is made once, however often the request is repeated, under way and afterwards", async () => {
      shard.apply(writer.note({ loss: 1 }));
      const at = here();
      const asked = [snapshots.make(at), snapshots.make(at)];
      await settle();
      asked.push(snapshots.make(at));
      shard.apply(writer.note({ loss: 2 }));
      store();
      const answers = [...(await Promise.all(asked)), await snapshots.make(at)];
      expect(new Set(answers.map(({ manifest }) => manifest.seq))).toEqual(new Set([2]));
      expect(commits.map(([, seq]) => seq)).toEqual([2]);
    });

    test("is the newest one if that is of a later generation", async () => {
      store();
      expect(await snapshots.make({ generation: 1, seq: 1_000 })).toBe(snapshots.newest);
      expect(commits).toEqual([]);
    });
  });

  test("is due again at once if enough records came while it was made", async () => {
    let store: () => void = () => undefined;
    held = new Promise((resolve) => {
      store = resolve;
    });
    snapshots.advanced(1_000, true);
    await settle();
    snapshots.advanced(1_000, true);
    store();
    await settle();
    expect(commits).toHaveLength(2);
  });

  test("removes pieces that no manifest names, and the journal's size is known after it", async () => {
    journal = { bytes: 77, bytesMax: 1_000 };
    shard.apply(writer.note({ loss: 1 }));
    await snapshots.make(here());
    expect(removed).toEqual([2]);
    expect(snapshots.journalBytes).toBe(77);
    expect(snapshots.oldestSeq).toBe(1);
  });

  test("across a journal gap is the only one that stays, with the journal after it", async () => {
    shard.apply(writer.note({ loss: 1 }));
    await snapshots.commitAcrossGap(() => {
      shard.skipTo(7);
      return snapshots.manifestHeader();
    });
    expect(commits).toEqual([[9, 7]]);
    expect(purged).toEqual([[2, 7]]);
    expect(snapshots.oldestSeq).toBe(7);
    expect(removed).toEqual([9, 2]);
  });
});
