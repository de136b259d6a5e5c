// Proves which snapshots and which journal are kept, on a journal and a store that only count: the
// newest two always, older ones while the journal back to them is small enough, all but the newest
// given up when the journal is nearly full; and that no purge ever reaches the newest. What an archiver has
// not copied is kept, too, but only up to a bound.
import { describe, expect, test } from "vitest";
import { NO_RECORDS } from "../../../src/actors/fold/journal-checksum.ts";
import type { ArchivedShard } from "../../../src/actors/journal/archivers.ts";
import type { Journal, JournalInfo } from "../../../src/actors/journal/journal.ts";
import type { StoredManifest } from "../../../src/actors/journal/manifest.ts";
import { KeptSnapshots, type SnapshotStore } from "../../../src/actors/journal/snapshot-store.ts";
import { Retention } from "../../../src/actors/owner/shard-snapshots.ts";

/** A journal of records of one byte, and the messages of a snapshot stream. */
class Shelf {
  firstSeq = 1;
  lastSeq = 0;
  bytesMax = 1_000;
  keptBytesMax = 1_000;
  messages: number[] = [];
  /** Those that were removed, in order. */
  readonly removed: number[] = [];
  #next = 1;

  readonly journal = {
    info: (): Promise<JournalInfo> =>
      Promise.resolve({
        created: "now",
        firstSeq: this.firstSeq,
        lastSeq: this.lastSeq,
        missing: [],
        lost: undefined,
        bytes: this.lastSeq - this.firstSeq + 1,
        bytesMax: this.bytesMax,
      }),
    purgeBelow: (_generation: number, seq: number): Promise<void> => {
      this.firstSeq = Math.max(this.firstSeq, seq);
      return Promise.resolve();
    },
  } as unknown as Journal;

  readonly store = {
    list: () => Promise.resolve(new Map(this.messages.map((seq) => [seq, 1]))),
    remove: (gone: Iterable<number>) => {
      const set = new Set(gone);
      this.removed.push(...set);
      this.messages = this.messages.filter((seq) => !set.has(seq));
      return Promise.resolve();
    },
  } as unknown as SnapshotStore;

  message(): number {
    const seq = this.#next++;
    this.messages.push(seq);
    return seq;
  }

  /** A manifest at the end of the journal, with a state part and a piece of its own. */
  manifest(generation = 1): StoredManifest {
    const state = [{ seq: this.message(), crc: 0 }];
    const pieces = [this.message()];
    const head = {
      term: 1,
      host: "h",
      owner: "o",
      created: "now",
      recordCrc: 0,
      checksum: NO_RECORDS,
      fallbacks: [],
    };
    return {
      seq: this.message(),
      manifest: { ...head, generation, seq: this.lastSeq, state, pieces },
    };
  }
}

function retention(
  shelf: Shelf,
  retainBytes: number,
  kept: StoredManifest[] = [],
  archived: () => readonly ArchivedShard[] = () => [],
  onLeftBehind: (seq: number) => void = () => expect.unreachable(),
): Retention {
  return new Retention({
    journal: shelf.journal,
    store: shelf.store,
    kept: new KeptSnapshots(retainBytes, kept),
    keptBytesMax: () => shelf.keptBytesMax,
    archived: () => Promise.resolve(archived()),
    onLeftBehind,
  });
}

/** An archiver that has copied all up to these sequences of a generation. */
function copied(recordSeq: number, snapshotSeq: number, generation = 1): ArchivedShard {
  return {
    record: { generation, seq: recordSeq },
    snapshot: { generation, seq: snapshotSeq },
  };
}

describe("retention", () => {
  test("keeps the newest two snapshots whatever the journal's size", async () => {
    const shelf = new Shelf();
    const kept = retention(shelf, 10);
    for (let i = 0; i < 5; i++) {
      shelf.lastSeq += 100;
      await kept.committed(shelf.manifest());
    }
    expect(kept.oldestSeq).toBe(400);
    expect(shelf.firstSeq).toBe(400);
    expect(shelf.messages).toEqual([10, 11, 12, 13, 14, 15]);
  });

  test("keeps older ones while the journal back to them is small enough", async () => {
    const shelf = new Shelf();
    const kept = retention(shelf, 350);
    for (let i = 0; i < 6; i++) {
      shelf.lastSeq += 100;
      await kept.committed(shelf.manifest());
    }
    expect(kept.oldestSeq).toBe(300);
    expect(shelf.firstSeq).toBe(300);
  });

  test("drops the oldest when the snapshots take more than they may, and the journal before the next", async () => {
    const shelf = new Shelf();
    // Each has three messages of one byte.
    shelf.keptBytesMax = 11;
    const kept = retention(shelf, 1_000_000);
    for (let i = 0; i < 5; i++) {
      shelf.lastSeq += 10;
      await kept.committed(shelf.manifest());
    }
    expect(kept.oldestSeq).toBe(30);
    expect(shelf.firstSeq).toBe(30);
    expect(shelf.messages).toEqual([7, 8, 9, 10, 11, 12, 13, 14, 15]);
  });

  test("keeps the newest two however much they take, and the newest alone where the stream is full", async () => {
    const shelf = new Shelf();
    shelf.keptBytesMax = 0;
    const kept = retention(shelf, 1_000_000);
    for (let i = 0; i < 3; i++) {
      shelf.lastSeq += 10;
      await kept.committed(shelf.manifest());
    }
    expect(kept.oldestSeq).toBe(20);
    await kept.enforce(true);
    expect([kept.oldestSeq, shelf.firstSeq]).toEqual([30, 30]);
    expect(shelf.messages).toEqual([7, 8, 9]);
  });

  test("gives up the snapshots of an abandoned journal first where the stream is full", async () => {
    const shelf = new Shelf();
    const kept = retention(shelf, 1_000_000);
    shelf.lastSeq = 10;
    await kept.committed(shelf.manifest(1));
    const { seq, manifest } = shelf.manifest(2);
    await kept.committed({ seq, manifest: { ...manifest, past: 1 } });
    expect(shelf.messages).toEqual([1, 2, 3, 4, 5, 6]);
    await kept.enforce(true);
    expect(shelf.messages).toEqual([4, 5, 6]);
  });

  test("gives up all but the newest when the journal is nearly full", async () => {
    const shelf = new Shelf();
    const kept = retention(shelf, 1_000_000);
    shelf.lastSeq = 100;
    await kept.committed(shelf.manifest());
    shelf.lastSeq = 760;
    await kept.committed(shelf.manifest());
    expect(kept.oldestSeq).toBe(760);
    expect(shelf.firstSeq).toBe(760);
    expect(shelf.messages).toEqual([4, 5, 6]);
  });

  test("removes the snapshots of a journal that was replaced, and unnamed pieces", async () => {
    const shelf = new Shelf();
    const kept = retention(shelf, 1_000);
    shelf.lastSeq = 10;
    await kept.committed(shelf.manifest(1));
    shelf.message();
    shelf.lastSeq = 0;
    await kept.committed(shelf.manifest(2));
    expect(shelf.messages).toEqual([5, 6, 7]);
  });

  test("removes a manifest before what it names: a host may crash in between", async () => {
    const shelf = new Shelf();
    const kept = retention(shelf, 10);
    for (let i = 0; i < 3; i++) {
      shelf.lastSeq += 100;
      await kept.committed(shelf.manifest());
    }
    expect(shelf.removed).toEqual([3, 2, 1]);
  });

  test("leaves alone what is newer than the newest snapshot: another's may be under way", async () => {
    const shelf = new Shelf();
    const kept = retention(shelf, 1_000);
    const manifest = shelf.manifest();
    const newer = shelf.message();
    await kept.committed(manifest);
    expect(shelf.messages).toContain(newer);
  });

  test("keeps nothing from before a journal gap: no replay leads across it", async () => {
    const shelf = new Shelf();
    const kept = retention(shelf, 1_000_000);
    shelf.lastSeq = 100;
    await kept.committed(shelf.manifest());
    shelf.lastSeq = 200;
    await kept.committedAcrossGap(shelf.manifest());
    expect(kept.oldestSeq).toBe(200);
    expect(shelf.firstSeq).toBe(200);
    expect(shelf.messages).toEqual([4, 5, 6]);
    shelf.lastSeq = 300;
    await kept.committed(shelf.manifest());
    expect(kept.oldestSeq).toBe(200);
  });

  test.each([0, -1])(
    "takes no journal with the limit %i, which is none, for full",
    async (bytesMax) => {
      const shelf = new Shelf();
      shelf.bytesMax = bytesMax;
      const kept = retention(shelf, 1_000);
      for (let i = 0; i < 3; i++) {
        shelf.lastSeq += 100;
        await kept.committed(shelf.manifest());
      }
      expect([kept.oldestSeq, shelf.firstSeq]).toEqual([100, 1]);
    },
  );

  test("removes what an owner that died has left of a journal that was replaced", async () => {
    const shelf = new Shelf();
    const manifests = [shelf.manifest(1), shelf.manifest(2)];
    await retention(shelf, 1_000, manifests).enforce();
    expect(shelf.messages).toEqual([4, 5, 6]);
  });

  test("finishes what an owner that died had begun", async () => {
    const shelf = new Shelf();
    const manifests = [1, 2, 3].map(() => {
      shelf.lastSeq += 300;
      return shelf.manifest();
    });
    shelf.message();
    const kept = retention(shelf, 1_000_000, manifests);
    await kept.enforce();
    expect(shelf.firstSeq).toBe(600);
    expect(shelf.messages).toEqual([4, 5, 6, 7, 8, 9, 10]);
  });
});

describe("with an archiver", () => {
  /** Snapshots of records 100, 200, …, with 100 bytes to retain; what `archived` says may change. */
  async function keep(snapshots: number, archived: () => readonly ArchivedShard[]) {
    const shelf = new Shelf();
    const left: number[] = [];
    const kept = retention(shelf, 300, [], archived, (seq) => left.push(seq));
    const commit = async (count: number): Promise<void> => {
      for (let i = 0; i < count; i++) {
        shelf.lastSeq += 100;
        await kept.committed(shelf.manifest());
      }
    };
    await commit(snapshots);
    return { shelf, kept, left, commit };
  }

  test("that has copied nothing, all is kept up to twice the bytes to retain", async () => {
    const { shelf, kept } = await keep(6, () => [copied(0, 0, 0)]);
    expect([kept.oldestSeq, shelf.firstSeq]).toEqual([100, 1]);
    expect(shelf.messages).toHaveLength(6 * 3);
  });

  test("that stays behind, no more is kept than twice the bytes to retain", async () => {
    let archived = copied(0, 0, 0);
    const { shelf, left, commit } = await keep(9, () => [archived]);
    expect(shelf.lastSeq - shelf.firstSeq + 1).toBeLessThanOrEqual(600);
    expect(shelf.firstSeq).toBe(400);
    // It is told when that begins, and again when it begins anew.
    expect(left).toEqual([199]);
    archived = copied(900, 900);
    await commit(1);
    expect(left).toEqual([199]);
    await commit(9);
    expect(left).toHaveLength(2);
  });

  test("no record and no snapshot goes that it has not copied", async () => {
    let archived = copied(199, 50);
    const { shelf, kept } = await keep(5, () => [archived]);
    expect(shelf.firstSeq).toBe(1);
    archived = copied(198, 100);
    await kept.enforce();
    expect(shelf.firstSeq).toBe(1);
    archived = copied(199, 100);
    await kept.enforce();
    expect([shelf.firstSeq, kept.oldestSeq]).toEqual([200, 200]);
  });

  test("that is the slowest of several, its progress decides", async () => {
    const { shelf } = await keep(5, () => [copied(500, 500), copied(150, 100)]);
    expect(shelf.firstSeq).toBe(1);
  });

  test("of an earlier generation, it has copied nothing of this one", async () => {
    const shelf = new Shelf();
    const kept = retention(shelf, 300, [], () => [copied(900, 900, 1)]);
    for (let i = 0; i < 5; i++) {
      shelf.lastSeq += 100;
      await kept.committed(shelf.manifest(2));
    }
    expect(shelf.firstSeq).toBe(1);
  });

  /** A journal whose records 101 to 150 were never stored, and a snapshot of record 200 behind them. */
  async function skipGap(archived: () => readonly ArchivedShard[], bytesMax = 1_000) {
    const shelf = new Shelf();
    const kept = retention(shelf, 300, [], archived, () => undefined);
    shelf.bytesMax = bytesMax;
    shelf.lastSeq = 100;
    await kept.committed(shelf.manifest());
    shelf.lastSeq = 200;
    await kept.committedAcrossGap(shelf.manifest());
    return { shelf, kept };
  }

  test("the records before a skipped gap stay until it has copied them", async () => {
    let archived = copied(60, 0);
    const { shelf, kept } = await skipGap(() => [archived, copied(200, 200)]);
    expect([shelf.firstSeq, kept.oldestSeq]).toEqual([1, 200]);
    // The snapshots before the gap go.
    expect(shelf.messages).toEqual([4, 5, 6]);
    archived = copied(100, 0);
    await kept.enforce();
    expect(shelf.firstSeq).toBe(1);
    archived = copied(200, 0);
    await kept.enforce();
    expect(shelf.firstSeq).toBe(200);
  });

  test("that stays behind, the records before a gap go at twice the bytes to retain", async () => {
    const { shelf, kept } = await skipGap(() => [copied(60, 0)]);
    shelf.lastSeq = 600;
    await kept.committed(shelf.manifest());
    expect(shelf.firstSeq).toBe(1);
    shelf.lastSeq = 601;
    await kept.committed(shelf.manifest());
    expect(shelf.firstSeq).toBe(200);
  });

  test("the records before a gap go at once when the journal is nearly full", async () => {
    const { shelf } = await skipGap(() => [copied(60, 0)], 250);
    expect(shelf.firstSeq).toBe(200);
  });

  test("history is given up all the same when the journal is nearly full", async () => {
    const shelf = new Shelf();
    const left: number[] = [];
    const kept = retention(
      shelf,
      1_000_000,
      [],
      () => [copied(0, 0, 0)],
      (seq) => left.push(seq),
    );
    shelf.lastSeq = 100;
    await kept.committed(shelf.manifest());
    shelf.lastSeq = 760;
    await kept.committed(shelf.manifest());
    expect([shelf.firstSeq, left]).toEqual([760, [759]]);
  });
});

describe("an abandoned journal that is kept as history", () => {
  /** Two snapshots of generation 1, and a first one of generation 2 that keeps generation `past`. */
  async function replaced(past?: number) {
    const shelf = new Shelf();
    const old = [shelf.manifest(), shelf.manifest()];
    const kept = retention(shelf, 1_000, old);
    const { seq, manifest } = shelf.manifest(2);
    const keeps = past === undefined ? {} : { past };
    await kept.committed({ seq, manifest: { ...manifest, ...keeps } });
    return { shelf, kept };
  }

  test("keeps all of its snapshots, and only then", async () => {
    expect((await replaced(1)).shelf.messages).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect((await replaced()).shelf.messages).toEqual([7, 8, 9]);
    expect((await replaced(3)).shelf.messages).toEqual([7, 8, 9]);
  });

  test("does not count for the present journal, nor delay its trimming", async () => {
    const { shelf, kept } = await replaced(1);
    expect(kept.oldestSeq).toBe(0);
    shelf.bytesMax = 100;
    for (const lastSeq of [40, 80, 95]) {
      shelf.lastSeq = lastSeq;
      const { seq, manifest } = shelf.manifest(2);
      await kept.committed({ seq, manifest: { ...manifest, past: 1 } });
    }
    expect(kept.oldestSeq).toBe(40);
    expect(shelf.messages.slice(0, 6)).toEqual([1, 2, 3, 4, 5, 6]);
  });

  test("loses them with the first snapshot that does not name it", async () => {
    const { shelf, kept } = await replaced(1);
    await kept.committed(shelf.manifest(2));
    expect(shelf.messages.slice(0, 1)).toEqual([7]);
  });
});
