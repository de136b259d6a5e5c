// Proves what surrounds a snapshot of a shard: the tape before its commit, progress after it, and how it ends
// when the broker is lost, the shard is closed, or what it need not keep cannot be removed; and how its manifest
// is renewed. Snapshots are in memory; commits wait and fail as they are told to.
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { NO_RECORDS } from "../../../src/actors/fold/journal-checksum.ts";
import { Shard } from "../../../src/actors/fold/shard.ts";
import type { ArchiverWatch } from "../../../src/actors/journal/archivers.ts";
import type { Journal } from "../../../src/actors/journal/journal.ts";
import type { Manifest } from "../../../src/actors/journal/manifest.ts";
import type { SnapshotStore } from "../../../src/actors/journal/snapshot-store.ts";
import { SnapshotBudget } from "../../../src/actors/journal/snapshots/snapshot-budget.ts";
import {
  ShardSnapshots,
  type SnapshotBeginning,
} from "../../../src/actors/owner/shard-snapshots.ts";
import { PserverError } from "../../../src/protocol/index.ts";
import { BufferPool } from "../../../src/transport/buffers.ts";
import { MemorySnapshots } from "../../support/memory-snapshots.ts";
import { JournalWriter, SHARD, SUBJECTS } from "../fold/journal-writer.ts";

const FIRST: Manifest = {
  ...{ term: 4, host: "h", owner: "o", generation: 2, created: "now", fallbacks: [] },
  ...{ seq: 1, recordCrc: 7, checksum: NO_RECORDS, state: [], pieces: [] },
};
const TIMED_OUT = new PserverError("TIMEOUT", "the broker did not answer");

let store: MemorySnapshots;
let commit: MemorySnapshots["commit"];
/** Whether the commit that was begun last has ended. */
let ended: () => PserverError | undefined;
/** What happens, in order. */
let told: string[];
let shard: Shard;
let writer: JournalWriter;
let copied: ArchiverWatch["copied"];

beforeEach(() => {
  vi.useFakeTimers();
  [store, told, writer] = [new MemorySnapshots(), [], new JournalWriter()];
  commit = (manifest, previousSeq) => store.commit(manifest, previousSeq);
  copied = () => Promise.resolve([]);
  shard = Shard.create({ subjects: SUBJECTS, shard: SHARD });
  shard.apply(writer.host({ verb: "rules", rules: 1 }));
});

afterEach(() => {
  vi.useRealTimers();
});

async function make(
  { tape }: Pick<SnapshotBeginning, "tape"> = {},
  first = FIRST,
): Promise<ShardSnapshots> {
  const manifest = { seq: await store.commit(first, 0), manifest: first };
  return new ShardSnapshots(
    {
      shard: SHARD,
      journal: {
        info: () => Promise.resolve({ bytes: 1, bytesMax: 0 }),
        purgeBelow: () => Promise.resolve(),
      } as unknown as Journal,
      store: {
        publish: (subject: string, bytes: Uint8Array) => store.publish(subject, bytes),
        commit: async (made: Manifest, previousSeq: number, hasEnded: typeof ended) => {
          ended = hasEnded;
          const seq = await commit(made, previousSeq);
          told.push(`commit ${made.seq}`);
          return seq;
        },
        list: () => store.list(),
        requireRoom: () => Promise.resolve(),
        remove: (gone: Iterable<number>) => store.remove(gone),
      } as unknown as SnapshotStore,
      worker: {
        subjects: SUBJECTS,
        archivers: { copied: (of) => copied(of) },
        snapshotBudget: new SnapshotBudget(new BufferPool()),
        settings: {
          snapshotBytes: 1_000,
          retainBytes: 5_000,
          olderBytesMax: 9e9,
          partBytesMax: 1_000,
        },
      },
    },
    { recovered: { shard, stored: new Map(), manifest }, kept: [manifest], tape },
    {
      onProgress: () => told.push("progress"),
      onDeposed: ({ code }) => told.push(`deposed: ${code}`),
      onSnapshotMade: () => undefined,
      onSnapshotFailed: ({ code }) => told.push(code),
      onArchiverBehind: ({ code }) => told.push(`behind: ${code}`),
    },
  );
}

const settle = (ms = 0): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);

describe("the tape", () => {
  test("has all lines before a snapshot is committed that covers their records", async () => {
    let flushed: () => void = () => undefined;
    const flush = async ({ seq }: { seq: number }): Promise<void> => {
      await new Promise<void>((resolve) => {
        flushed = resolve;
      });
      told.push(`tape ${seq}`);
    };
    const snapshots = await make({ tape: { flush } });
    snapshots.advanced(1_000, true);
    await settle();
    expect(told).toEqual([]);
    flushed();
    await settle();
    expect(told).toEqual(["tape 1", "commit 1", "progress"]);
    snapshots.close();
  });

  test("that cannot be written keeps a snapshot from being committed", async () => {
    const snapshots = await make({ tape: { flush: () => Promise.reject(TIMED_OUT) } });
    snapshots.advanced(1_000, true);
    await settle();
    expect(told).toEqual(["TIMEOUT", "progress"]);
    snapshots.close();
  });
});

test("the fold is told to go on after each snapshot, stored or failed", async () => {
  const failures = [TIMED_OUT];
  commit = (manifest, previousSeq) => {
    const failure = failures.shift();
    return failure === undefined ? store.commit(manifest, previousSeq) : Promise.reject(failure);
  };
  const snapshots = await make();
  snapshots.advanced(1_000, true);
  await settle(500);
  expect(told).toEqual(["TIMEOUT", "progress", "commit 1", "progress"]);
});

test("a snapshot whose broker is lost ends at once, is reported, and made again", async () => {
  const { commit: stored } = store;
  commit = () => new Promise(() => undefined);
  const snapshots = await make();
  snapshots.advanced(1_000, true);
  await settle();
  snapshots.abort();
  await settle();
  expect(told).toEqual(["NO_BROKER", "progress"]);
  commit = stored.bind(store);
  await settle(500);
  expect(told.slice(2)).toEqual(["commit 1", "progress"]);
});

describe("once closed", () => {
  test("a snapshot under way that fails is not reported", async () => {
    let fail: (error: PserverError) => void = () => undefined;
    commit = () =>
      new Promise((_resolve, reject) => {
        fail = reject;
      });
    const snapshots = await make();
    snapshots.advanced(1_000, true);
    await settle();
    snapshots.close();
    fail(new PserverError("NOT_OWNER", "another has taken over"));
    await settle();
    expect(told).toEqual(["progress"]);
  });

  test("no timer for another attempt is left", async () => {
    commit = () => Promise.reject(TIMED_OUT);
    const snapshots = await make();
    snapshots.advanced(1_000, true);
    await settle();
    snapshots.close();
    expect(vi.getTimerCount()).toBe(0);
  });
});

test("a snapshot across a gap is made when one under way has removed what need not be kept", async () => {
  let archived: () => void = () => undefined;
  const snapshots = await make();
  copied = () => new Promise((resolve) => (archived = () => resolve([])));
  snapshots.advanced(1_000, true);
  await settle();
  copied = () => Promise.resolve([]);
  shard.skipTo(7);
  const made = snapshots.commitAcrossGap(() => snapshots.manifestHeader());
  await settle();
  expect(told).toEqual(["commit 1"]);
  archived();
  await made;
  expect(told).toEqual(["commit 1", "progress", "commit 7"]);
});

test("each snapshot names the abandoned journal that is kept, as the one before", async () => {
  const snapshots = await make({}, { ...FIRST, past: 1 });
  const { manifest } = await snapshots.make({ generation: 2, seq: 2 });
  expect([snapshots.manifestHeader().past, manifest.past]).toEqual([1, 1]);
});

test("what a former owner has left and cannot be removed now is reported, and keeps nobody from serving", async () => {
  const snapshots = await make();
  copied = () => Promise.reject(TIMED_OUT);
  await snapshots.tidy();
  expect(told).toEqual(["TIMEOUT"]);
});

test.each([0, -1])(
  "a journal with the limit %i, which is none, needs no early snapshots",
  async (bytesMax) => {
    const snapshots = await make();
    snapshots.journalIs({ bytes: 500, bytesMax });
    snapshots.advanced(999, true);
    await settle();
    expect(told).toEqual([]);
  },
);

describe("a renewal of the manifest", () => {
  test("names the same snapshot under the next term, in place of the former manifest", async () => {
    const snapshots = await make();
    await snapshots.renew();
    expect(await store.manifests()).toEqual([{ seq: 2, manifest: { ...FIRST, term: 5 } }]);
    expect(snapshots.newest).toEqual({ seq: 2, manifest: { ...FIRST, term: 5 } });
    expect(snapshots.oldestSeq).toBe(FIRST.seq);
  });

  test("is followed by snapshots under that term, which keep it as long as any", async () => {
    const snapshots = await make();
    await snapshots.renew();
    shard.apply(writer.note({ loss: 1 }));
    await snapshots.make({ generation: 2, seq: 2 });
    expect((await store.manifests()).map(({ manifest }) => [manifest.term, manifest.seq])).toEqual([
      [5, 1],
      [5, 2],
    ]);
    expect(snapshots.oldestSeq).toBe(FIRST.seq);
  });

  test("waits for a snapshot under way, and renews that", async () => {
    const snapshots = await make();
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    commit = async (manifest, previousSeq) => {
      await held;
      return await store.commit(manifest, previousSeq);
    };
    shard.apply(writer.note({ loss: 1 }));
    const made = snapshots.make({ generation: 2, seq: 2 });
    const renewed = snapshots.renew();
    await settle();
    release();
    await Promise.all([made, renewed]);
    expect(snapshots.newest?.manifest).toMatchObject({ term: 5, seq: 2 });
    expect(told).toContain("commit 2");
  });

  test("is refused if another owner has written a manifest, and changes nothing then", async () => {
    const snapshots = await make();
    await store.commit({ ...FIRST, term: 5, owner: "another" }, 1);
    await expect(snapshots.renew()).rejects.toMatchObject({ code: "NOT_OWNER" });
    expect(snapshots.newest).toEqual({ seq: 1, manifest: FIRST });
    expect(told).toEqual([]);
  });

  test("ends with the connection, and what is left of it is not written any more", async () => {
    const snapshots = await make();
    commit = () => new Promise(() => undefined);
    const renewed = snapshots.renew();
    renewed.catch(() => undefined);
    await settle();
    expect(ended()).toBeUndefined();
    snapshots.abort();
    await expect(renewed).rejects.toMatchObject({ code: "NO_BROKER" });
    expect(ended()).toBeDefined();
    commit = (manifest, previousSeq) => store.commit(manifest, previousSeq);
    await snapshots.renew();
    expect(snapshots.newest?.manifest.term).toBe(5);
  });

  test("is done even if the former manifest cannot be removed", async () => {
    const snapshots = await make();
    store.remove = () => Promise.reject(TIMED_OUT);
    await snapshots.renew();
    expect(snapshots.newest?.manifest.term).toBe(5);
    expect(told).toEqual(["commit 1", "TIMEOUT"]);
  });
});
