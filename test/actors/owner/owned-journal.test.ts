// Proves what an owner does about its journal: which record it takes for the end at a take-over, which gaps
// it skips, and that it continues behind a gap only when a snapshot says so. The journal is a state that the
// test sets; snapshots are made in memory and fail when told to.
import { beforeEach, describe, expect, test } from "vitest";
import { recordCrc } from "../../../src/actors/fold/journal-record.ts";
import { Shard } from "../../../src/actors/fold/shard.ts";
import type { Journal, JournalInfo } from "../../../src/actors/journal/journal.ts";
import { ObservedEnd } from "../../../src/actors/journal/journal-check.ts";
import type { ManifestHeader } from "../../../src/actors/journal/snapshots/snapshotter.ts";
import type { Watermark } from "../../../src/actors/journal/watermark.ts";
import { OwnedJournal } from "../../../src/actors/owner/owned-journal.ts";
import type { ShardSnapshots } from "../../../src/actors/owner/shard-snapshots.ts";
import { PserverError } from "../../../src/protocol/index.ts";
import { withoutPauses } from "../../support/without-pauses.ts";
import { JournalWriter, SHARD, SUBJECTS } from "../fold/journal-writer.ts";

const HEADER: ManifestHeader = {
  term: 2,
  host: "h",
  owner: "o",
  generation: 1,
  created: "now",
  fallbacks: [],
};
const FOLDED = 4;
const SIZE = { bytes: 9, bytesMax: 99 };

let shard: Shard;
let info: JournalInfo | undefined;
let records: JournalWriter["records"];
/** What became of each attempt to store a snapshot across a gap; then none fails. */
let failures: PserverError[];
let attempts: number;
let told: string[];
/** Where the fold was in each snapshot that was stored across a gap. */
let committed: number[];
let owned: OwnedJournal;
let journalEnd: ObservedEnd;
/** What the newest manifest says, the generations that were opened, and what was committed of them. */
let manifest: ManifestHeader;
/** Journals that are still there though they were left, how opening one ends, and those removed. */
let left: Map<number, JournalInfo>;
let openings: PserverError[];
/** How storing a snapshot elsewhere ends; then none fails. */
let commits: PserverError[];
/** Rules of the job, and those that each opened journal was begun with. */
let jobRules: number;
let begun: (number | undefined)[];
let removed: number[];
/** Whether the journal's first record is that of its rules. */
let beginsWithRules: boolean;
let opened: number[];
let headers: ManifestHeader[];
/** How far a former owner has folded, as it noted. */
let readWatermark: () => Promise<Watermark | undefined>;

function own(storage: "file" | "memory"): OwnedJournal {
  const journal = {
    shard: SHARD,
    stream: (generation: number) => `stream ${generation}`,
    info: () => Promise.resolve(info),
    setAside: (generations: readonly number[]) => {
      told.push(`set aside ${generations}`);
      return Promise.resolve(left);
    },
    remove: (generations: readonly number[]) => {
      removed.push(...generations);
      return Promise.resolve();
    },
    record: (_generation: number, seq: number) => Promise.resolve(records[seq - 1]),
    beginsWithRules: () =>
      info === undefined
        ? Promise.reject(new PserverError("JETSTREAM_UNAVAILABLE", "stream not found"))
        : Promise.resolve(beginsWithRules),
    get rules() {
      return jobRules;
    },
    open: (generation: number, rules?: number) => {
      const failure = openings.shift();
      if (failure !== undefined) return Promise.reject(failure);
      opened.push(generation);
      begun.push(rules);
      info = { created: "now", firstSeq: 1, lastSeq: 0, missing: [], lost: undefined, ...SIZE };
      return Promise.resolve(info);
    },
  } as unknown as Journal;
  const snapshots = {
    manifestHeader: () => manifest,
    get newest() {
      return { seq: 1, manifest };
    },
    journalIs: () => undefined,
    commit: (header: () => ManifestHeader) => {
      const cut = header();
      const failure = commits.shift();
      if (failure !== undefined) return Promise.reject(failure);
      manifest = cut;
      headers.push(manifest);
      return Promise.resolve();
    },
    commitAcrossGap: (header: () => ManifestHeader) => {
      header();
      attempts += 1;
      const failure = failures.shift();
      if (failure !== undefined) return Promise.reject(failure);
      committed.push(shard.seq);
      return Promise.resolve();
    },
  } as unknown as ShardSnapshots;
  journalEnd = new ObservedEnd(SHARD);
  return new OwnedJournal({
    journalEnd,
    host: "h",
    owner: "o",
    journal,
    storage,
    shard,
    snapshots,
    watermarks: { read: () => readWatermark() },
    onReplaced: () => told.push("replaced"),
    onFellBack: () => told.push("fell back"),
    onReplicaDamaged: () => undefined,
    onGapRemains: ({ code }) => told.push(code),
  });
}

beforeEach(() => {
  const writer = new JournalWriter();
  writer.host({ verb: "rules", rules: 1 });
  while (writer.records.length < FOLDED) writer.note({ loss: 1 });
  records = writer.records;
  shard = Shard.create({ subjects: SUBJECTS, shard: SHARD });
  for (const record of records) shard.apply(record);
  info = { created: "now", firstSeq: 1, lastSeq: 4, missing: [], lost: undefined, ...SIZE };
  [failures, attempts, told, committed] = [[], 0, [], []];
  [manifest, opened, headers] = [HEADER, [], []];
  [left, openings, removed, commits] = [new Map(), [], [], []];
  [jobRules, begun, beginsWithRules] = [1, [], true];
  readWatermark = () => Promise.resolve(undefined);
  owned = own("file");
});

/** The stream has used up sequences 5 to 8 without records, and holds record 9 if it `goesOn`. */
function makeGap(goesOn: boolean): void {
  info = { ...(info as JournalInfo), lastSeq: goesOn ? 9 : 8, missing: [5, 6, 7, 8] };
}

describe("a take-over", () => {
  test("has caught up at the last record, whatever sequences were used up after it", async () => {
    makeGap(false);
    expect(await owned.locate()).toEqual({ stream: "stream 1", generation: 1, noted: [] });
    expect(journalEnd.seq).toBe(FOLDED);
  });

  test("finds out that its last record is damaged instead of waiting for it", async () => {
    info = { ...(info as JournalInfo), lastSeq: 5 };
    await expect(owned.locate()).rejects.toMatchObject({ code: "JOURNAL_DAMAGED" });
  });
});

function watermarkOf(seq: number, recordCrc: number): Watermark {
  const earlier = [{ seq: 1, checksum: [4, 5, 6] as const }];
  return { ...{ term: 1, generation: 1, seq, recordCrc, earlier }, checksum: [1, 2, 3] };
}

describe("the watermark of a former owner", () => {
  const crc = (seq: number): number => recordCrc(records[seq - 1]?.payload ?? new Uint8Array(0));

  test("tells what the journal has lost", async () => {
    readWatermark = () => Promise.resolve(watermarkOf(6, 7));
    await expect(owned.locate()).rejects.toMatchObject({
      code: "JOURNAL_LOST",
      details: { from: 5, to: 6 },
    });
    info = undefined;
    await expect(owned.locate()).rejects.toMatchObject({ details: { from: 1, to: 6 } });
  });

  test("is read before the journal: what a former owner folds meanwhile is no loss", async () => {
    const [last] = records.splice(FOLDED - 1);
    shard = Shard.create({ subjects: SUBJECTS, shard: SHARD });
    for (const record of records) shard.apply(record);
    info = { ...(info as JournalInfo), lastSeq: FOLDED - 1 };
    owned = own("file");
    readWatermark = () => {
      // Between the two questions a record is stored, and folded and marked by the former owner.
      if (last !== undefined) records.push(last);
      info = { ...(info as JournalInfo), lastSeq: FOLDED };
      return Promise.resolve(watermarkOf(FOLDED, crc(FOLDED)));
    };
    const { noted } = await owned.locate();
    expect(journalEnd.seq).toBe(FOLDED);
    // What the journal is compared with when it is folded again.
    expect(noted).toMatchObject([
      { seq: 1, checksum: [4, 5, 6] },
      { seq: FOLDED, checksum: [1, 2, 3] },
    ]);
  });

  test("does not apply to a journal that was made anew since", async () => {
    manifest = { ...HEADER, generation: 2 };
    readWatermark = () => Promise.resolve(watermarkOf(99, 7));
    expect(await owned.locate()).toEqual({ stream: "stream 2", generation: 2, noted: [] });
    info = undefined;
    await expect(owned.locate()).rejects.toMatchObject({ details: { from: 1, to: FOLDED } });
  });

  test("names what a journal in memory has lost, however many attempts it takes to replace it", async () => {
    const watermark = watermarkOf(FOLDED, crc(FOLDED));
    readWatermark = () => Promise.resolve(watermark);
    info = undefined;
    const memory = own("memory");
    commits = [new PserverError("TIMEOUT", "the manifest may be stored")];
    await expect(memory.locate()).rejects.toMatchObject({ code: "TIMEOUT" });
    expect(await memory.locate()).toEqual({ stream: "stream 2", generation: 2, noted: [] });
    // Nothing: all was folded.
    const nothing = { generation: 1, from: FOLDED + 1, to: FOLDED };
    expect(manifest.fallbacks).toEqual([nothing]);
  });

  test("does not keep a journal in memory from being replaced", async () => {
    readWatermark = () => Promise.resolve(watermarkOf(99, 7));
    info = undefined;
    expect(await own("memory").locate()).toEqual({ stream: "stream 2", generation: 2, noted: [] });
    expect(told).toContain("fell back");
    expect(manifest.fallbacks).toEqual([{ generation: 1, from: FOLDED + 1, to: 99 }]);
  });
});

describe("a journal in memory that is there, but is another than the one that was folded,", () => {
  const emptied = { firstSeq: 0, lastSeq: 0, missing: [] };
  const shorter = { lastSeq: FOLDED - 1 };
  const anew = { created: "later" };

  test.each([
    ["empty under its creation time", emptied],
    ["shorter", shorter],
    ["made anew", anew],
  ])("%s, is replaced by what its owner holds", async (_how, change) => {
    info = { ...(info as JournalInfo), ...change };
    expect(await own("memory").locate()).toEqual({ stream: "stream 2", generation: 2, noted: [] });
    expect(manifest.fallbacks).toEqual([{ generation: 1, from: FOLDED + 1, to: FOLDED }]);
  });

  test.each([
    [FOLDED, false],
    [FOLDED + 1, true],
  ])("whose former owner has noted record %i, has held more: %j", async (seq, hasHeldMore) => {
    info = undefined;
    readWatermark = () => Promise.resolve(watermarkOf(seq, 7));
    await own("memory").locate();
    expect(told.includes("fell back")).toBe(hasHeldMore);
  });

  test("is no loss for the owner that has folded it, which it may have done after its last watermark", async () => {
    const memory = own("memory");
    await memory.locate();
    info = undefined;
    await memory.locate();
    expect(told).not.toContain("fell back");
    expect(manifest.generation).toBe(2);
  });

  test("with other records in the place of those that were folded, is replaced as well", async () => {
    records = [...records.slice(0, -1), records[0] as JournalWriter["records"][number]];
    expect(await own("memory").locate()).toEqual({ stream: "stream 2", generation: 2, noted: [] });
  });

  test("is left in favour of its replacement, once that was begun", async () => {
    info = { ...(info as JournalInfo), ...emptied };
    const memory = own("memory");
    commits = [new PserverError("TIMEOUT", "the manifest may be stored")];
    await expect(memory.locate()).rejects.toMatchObject({ code: "TIMEOUT" });
    expect(await memory.locate()).toEqual({ stream: "stream 2", generation: 2, noted: [] });
  });

  test("emptied, is replaced also if its snapshot ends before its first record", async () => {
    shard = Shard.create({ subjects: SUBJECTS, shard: SHARD });
    info = { ...(info as JournalInfo), lastSeq: 1 };
    beginsWithRules = false;
    expect(await own("memory").locate()).toEqual({ stream: "stream 2", generation: 2, noted: [] });
    expect(begun).toEqual([1]);
    beginsWithRules = true;
    expect(await own("memory").locate()).toEqual({ stream: "stream 2", generation: 2, noted: [] });
  });

  test("or that is gone before anything of it was folded, is replaced", async () => {
    shard = Shard.create({ subjects: SUBJECTS, shard: SHARD });
    info = undefined;
    expect(await own("memory").locate()).toEqual({ stream: "stream 2", generation: 2, noted: [] });
  });

  test.each([emptied, shorter, anew])("is no reason to replace one on file", async (change) => {
    info = { ...(info as JournalInfo), ...change };
    await expect(own("file").locate()).rejects.toMatchObject({ code: "JOURNAL_LOST" });
    expect(opened).toEqual([]);
  });
});

describe("a journal that a manifest announces and that does not exist", () => {
  beforeEach(() => {
    shard = Shard.create({ subjects: SUBJECTS, shard: SHARD });
    info = undefined;
    manifest = { ...HEADER, created: "" };
  });

  test("is made on file under its own generation: a deposed owner may be making it, too", async () => {
    expect(await own("file").locate()).toEqual({ stream: "stream 1", generation: 1, noted: [] });
    expect(opened).toEqual([1]);
    expect(headers).toEqual([HEADER]);
    expect(told).toEqual(["set aside "]);
  });

  test("is replaced in memory, where it may have held records", async () => {
    expect(await own("memory").locate()).toEqual({ stream: "stream 2", generation: 2, noted: [] });
    expect(opened).toEqual([2]);
    expect(headers.map(({ created }) => created)).toEqual(["", "now"]);
    expect(told).toEqual(["replaced", "set aside 1"]);
  });

  test("is lost on file if it had been made", async () => {
    manifest = HEADER;
    await expect(own("file").locate()).rejects.toMatchObject({ code: "JOURNAL_LOST" });
    expect(opened).toEqual([]);
  });
});

describe("a journal that is replaced", () => {
  test("says what of the old one is not kept: by itself nothing that was folded", async () => {
    await own("memory").replace();
    expect(
      headers.map(({ generation, created, fallbacks }) => [generation, created, fallbacks]),
    ).toEqual([
      [2, "", [{ generation: 1, from: FOLDED + 1, to: FOLDED }]],
      [2, "now", [{ generation: 1, from: FOLDED + 1, to: FOLDED }]],
    ]);
    expect(shard.seq).toBe(0);
  });

  test("says what it is told, and what was stored until the old one was set aside", async () => {
    left = new Map([[1, { ...(info as JournalInfo), lastSeq: 9, missing: [9] }]]);
    manifest = { ...HEADER, fallbacks: [{ generation: 7, from: 1, to: 2 }] };
    await own("file").replace({ generation: 1, from: 3, to: 6 });
    expect(headers.map(({ fallbacks }) => fallbacks)).toEqual([
      [
        { generation: 7, from: 1, to: 2 },
        { generation: 1, from: 3, to: 6 },
      ],
      [
        { generation: 7, from: 1, to: 2 },
        { generation: 1, from: 3, to: 8 },
      ],
    ]);
    // Nobody goes on under the old one before the manifest says so.
    expect(told).toEqual(["replaced", "set aside 7,1"]);
  });

  test("begins with the job's rules only if the shard has older ones", async () => {
    await own("file").replace();
    jobRules = 3;
    await own("file").replace();
    expect(begun).toEqual([undefined, 3]);
  });

  test("removes abandoned journals if the broker has no storage left", async () => {
    openings = [new PserverError("NO_SPACE", "no room")];
    await own("file").replace();
    expect([removed, opened]).toEqual([[1], [2]]);
    openings = [new PserverError("TIMEOUT", "no answer")];
    await expect(own("file").replace()).rejects.toMatchObject({ code: "TIMEOUT" });
    expect(removed).toEqual([1]);
  });
});

describe("a gap", () => {
  test("that came later is skipped, and a snapshot says so before the fold continues", async () => {
    await owned.locate();
    makeGap(true);
    await owned.skipGap({ from: 5, to: 8 });
    expect([shard.seq, shard.lastCrc]).toEqual([8, 0]);
    expect(committed).toEqual([8]);
  });

  test("at the end of the journal that was taken over is skipped, too", async () => {
    makeGap(false);
    await owned.locate();
    makeGap(true);
    await owned.skipGap({ from: 5, to: 8 });
    expect(committed).toEqual([8]);
  });

  test("that is found when taking over is a loss: the former owner may have folded it", async () => {
    makeGap(true);
    records[8] = { seq: 9, subject: "", payload: new Uint8Array() };
    await owned.locate();
    expect(journalEnd.seq).toBe(9);
    await expect(owned.skipGap({ from: 5, to: 8 })).rejects.toMatchObject({
      code: "JOURNAL_DAMAGED",
      details: { expected: 5, found: 9 },
    });
    expect([shard.seq, attempts]).toEqual([FOLDED, 0]);
  });

  test("is evaluated by the first look at the journal, not by one after a reconnect", async () => {
    await owned.locate();
    makeGap(true);
    await owned.locate();
    await owned.skipGap({ from: 5, to: 8 });
    expect(committed).toEqual([8]);
  });

  test("is evaluated anew in a journal that was made anew", async () => {
    owned = own("memory");
    await owned.locate();
    info = undefined;
    await owned.locate();
    info = { created: "now", firstSeq: 1, lastSeq: 9, missing: [1, 2], lost: undefined, ...SIZE };
    await owned.skipGap({ from: 1, to: 2 });
    expect(committed).toEqual([2]);
  });

  test("is tried again while the broker cannot store the snapshot", async () => {
    await owned.locate();
    makeGap(true);
    failures = [new PserverError("JOURNAL_FULL", "no space left on device")];
    await owned.skipGap({ from: 5, to: 8 });
    expect(told).toEqual(["JOURNAL_FULL"]);
    expect([attempts, committed]).toEqual([2, [8]]);
  });

  test("is not skipped where the snapshot fails without a known reason: each attempt is reported, the tenth ends it", async () => {
    withoutPauses();
    await owned.locate();
    makeGap(true);
    failures = Array(50).fill(new PserverError("INTERNAL", "x is undefined"));
    await expect(owned.skipGap({ from: 5, to: 8 })).rejects.toMatchObject({ code: "INTERNAL" });
    expect([attempts, committed]).toEqual([10, []]);
    expect(told).toEqual(Array(9).fill("INTERNAL"));
  });

  test("is left to another owner that has taken over", async () => {
    await owned.locate();
    makeGap(true);
    failures = [new PserverError("NOT_OWNER", "another has taken over")];
    await expect(owned.skipGap({ from: 5, to: 8 })).rejects.toMatchObject({ code: "NOT_OWNER" });
    expect(committed).toEqual([]);
  });

  test("is not tried again once the owner is closed", async () => {
    await owned.locate();
    makeGap(true);
    failures = [new PserverError("JOURNAL_FULL", "no space left on device")];
    const passed = owned.skipGap({ from: 5, to: 8 });
    owned.close();
    await passed;
    expect(committed).toEqual([]);
  });
});
