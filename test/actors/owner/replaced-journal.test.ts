// Proves what the manifests say of a journal that is replaced: whose it is, and what was lost; and that an owner of a replicated journal does not believe a former leader. The
// journal is a state that the test sets, snapshots are a list of headers.
import { beforeEach, describe, expect, test } from "vitest";
import { Shard } from "../../../src/actors/fold/shard.ts";
import type { Journal, JournalInfo } from "../../../src/actors/journal/journal.ts";
import { ObservedEnd } from "../../../src/actors/journal/journal-check.ts";
import type { ManifestHeader } from "../../../src/actors/journal/snapshots/snapshotter.ts";
import { OwnedJournal } from "../../../src/actors/owner/owned-journal.ts";
import type { ShardSnapshots } from "../../../src/actors/owner/shard-snapshots.ts";
import { withoutPauses } from "../../support/without-pauses.ts";
import { JournalWriter, SHARD, SUBJECTS } from "../fold/journal-writer.ts";

const FIRST: ManifestHeader = {
  ...{ term: 4, host: "h", owner: "o", generation: 2, created: "now", fallbacks: [] },
};
const STATE: JournalInfo = {
  ...{ created: "now", firstSeq: 1, lastSeq: 3, missing: [], lost: undefined },
  ...{ bytes: 70, bytesMax: 99 },
};

let headers: ManifestHeader[];
/** Sizes of the journal that the snapshots were told. */
let sizes: number[];
/** What leaders answer, one after the other; the last one again and again. */
let states: JournalInfo[];
let readable: boolean[];
/** What happens while former journals are set aside. */
let setAside: () => Promise<void>;
let shard: Shard;
let writer: JournalWriter;
let journalEnd: ObservedEnd;

beforeEach(() => {
  [headers, sizes, states, readable] = [[FIRST], [], [STATE], [true]];
  setAside = () => Promise.resolve();
  writer = new JournalWriter();
  writer.host({ verb: "rules", rules: 1 });
  while (writer.records.length < 3) writer.note({ loss: 1 });
  shard = Shard.create({ subjects: SUBJECTS, shard: SHARD });
});

function next<Answer>(answers: Answer[]): Answer | undefined {
  return answers.length > 1 ? answers.shift() : answers[0];
}

function own(storage: "file" | "memory", isReplicated = false): OwnedJournal {
  const journal = {
    ...{ shard: SHARD, rules: 1, isReplicated },
    stream: (generation: number) => `stream ${generation}`,
    info: () => Promise.resolve(next(states)),
    append: () => Promise.resolve({ generation: 2, seq: 4 }),
    record: (_generation: number, seq: number) =>
      Promise.resolve(next(readable) ? writer.records[seq - 1] : undefined),
    soundCopy: () => Promise.resolve(undefined),
    setAside: async () => {
      await setAside();
      return new Map();
    },
    remove: () => Promise.resolve(),
    open: () => Promise.resolve({ ...STATE, created: "again", lastSeq: 0, bytes: 5 }),
  } as unknown as Journal;
  const snapshots = {
    manifestHeader: () => headers.at(-1),
    get newest() {
      const manifest = headers.at(-1);
      return manifest && { seq: 1, manifest };
    },
    journalIs: ({ bytes }: JournalInfo) => sizes.push(bytes),
    commit: (made: () => ManifestHeader) => Promise.resolve(void headers.push(made())),
    commitAcrossGap: () => Promise.resolve(),
  } as unknown as ShardSnapshots;
  journalEnd = new ObservedEnd(SHARD);
  return new OwnedJournal({
    ...{ journalEnd, host: "h", owner: "o", journal, storage, shard, snapshots },
    watermarks: { read: () => Promise.resolve(undefined) },
    onReplaced: () => undefined,
    onFellBack: () => undefined,
    onReplicaDamaged: () => undefined,
    onGapRemains: () => undefined,
  });
}

describe("the manifest of a journal", () => {
  test("of a new shard is of generation 1 and term 1, and has lost nothing", async () => {
    headers = [];
    await own("file").replace();
    const first = { term: 1, host: "h", owner: "o", generation: 1, fallbacks: [] };
    expect(headers).toEqual([
      { ...first, created: "" },
      { ...first, created: "again" },
    ]);
  });

  test("that replaces another stays under the owner's term", async () => {
    await own("file").replace();
    expect(headers.map(({ term, generation }) => [term, generation])).toEqual([
      [4, 2],
      [4, 3],
      [4, 3],
    ]);
  });

  test("stays under the term under which it was renewed meanwhile", async () => {
    setAside = () =>
      Promise.resolve(void headers.push({ ...(headers.at(-1) as ManifestHeader), term: 5 }));
    await own("file").replace();
    expect(headers.slice(-3).map(({ term }) => term)).toEqual([4, 5, 5]);
  });
});

test("the size of the journal is known when it was checked, and when it was made anew", async () => {
  const owned = own("file");
  await owned.locate();
  await owned.replace();
  expect(sizes).toEqual([70, 5]);
});

describe("a former leader of a replicated journal", () => {
  beforeEach(() => {
    withoutPauses();
    for (const record of writer.records.slice(0, 2)) shard.apply(record);
  });

  test("does not make the journalEnd of the journal damaged because it cannot read it yet", async () => {
    states = [STATE, { ...STATE, lastSeq: 4, missing: [4] }];
    // The record where the fold stands, and that at the journalEnd, which comes at the third question.
    readable = [true, false, false, true];
    await own("file", true).locate();
    expect(journalEnd.seq).toBe(3);
  });

  test("does not make a gap of records that its successor holds", async () => {
    const owned = own("file", true);
    states = [{ ...STATE, lastSeq: 4, missing: [4] }];
    await owned.locate();
    const later = { ...STATE, lastSeq: 6 };
    states = [{ ...later, missing: [4, 5] }, later];
    for (const record of writer.records.slice(2)) shard.apply(record);
    await expect(owned.skipGap({ from: 4, to: 5 })).rejects.toMatchObject({
      code: "JOURNAL_DAMAGED",
      details: { expected: 4, found: 6 },
    });
  });
});
