// Proves from which states a shard may continue, which losses each is said to have, and which states are not
// offered.
import { describe, expect, test } from "vitest";
import {
  type ChoiceFacts,
  choicesOf,
  type FoundArchive,
  type FoundJournal,
  type FoundRest,
  type FoundSnapshot,
  type Tally,
} from "../../../src/actors/recovery/findings.ts";

const JOURNAL: FoundJournal = { stream: "s", firstSeq: 1, lastSeq: 20, bytes: 9, gaps: [] };

function snapshot(
  manifestSeq: number,
  seq: number,
  more: Partial<FoundSnapshot> = {},
): FoundSnapshot {
  return { manifestSeq, generation: 1, seq, recordCrc: 7, host: "h", lacks: [], ...more };
}

function facts(more: Partial<ChoiceFacts>): ChoiceFacts {
  return {
    generation: 1,
    snapshots: [],
    journal: JOURNAL,
    archive: undefined,
    rest: undefined,
    prefixEnd: 0,
    prefixLacks: [],
    lastKnownSeq: 20,
    lostFrom: undefined,
    behind: (seq) => ({
      trainers: [{ trainer: "a", records: Math.max(0, 18 - seq) }],
      hostRecords: 1,
    }),
    ...more,
  };
}

const brief = (given: Partial<ChoiceFacts>): string[] =>
  choicesOf(facts(given)).map(
    ({ from, seq, lost }) =>
      `${from} ${seq}: ${lost.from}-${lost.to} ${lost.records}/${lost.unknown}`,
  );

test("the prefix comes first, then the whole snapshots, each once", () => {
  const snapshots = [
    snapshot(9, 12),
    snapshot(8, 12),
    snapshot(7, 9, { problem: "a piece is gone" }),
    snapshot(5, 4),
  ];
  expect(brief({ snapshots, prefixEnd: 15 })).toEqual([
    "prefix 15: 16-20 5/1",
    "snapshot 12: 13-20 8/1",
    "snapshot 4: 5-20 16/1",
  ]);
  expect(choicesOf(facts({ snapshots, prefixEnd: 15 }))[0]).toMatchObject({ manifestSeq: 9 });
});

test("a prefix that adds nothing to the newest whole snapshot is no choice", () => {
  expect(brief({ snapshots: [snapshot(9, 12)], prefixEnd: 12 })).toEqual([
    "snapshot 12: 13-20 8/1",
  ]);
});

test("without a snapshot a journal is folded from its first record, and from no other", () => {
  expect(brief({ prefixEnd: 10 })).toEqual(["prefix 10: 11-20 10/1"]);
  expect(brief({ prefixEnd: 10, journal: { ...JOURNAL, firstSeq: 2 } })).toEqual([]);
  // A later journal begins with a state, which only a snapshot holds.
  expect(brief({ prefixEnd: 10, generation: 2 })).toEqual([]);
});

test("a journal that is another than the one that was folded is of no use", () => {
  const journal = { ...JOURNAL, problem: "the stream was made again" };
  expect(brief({ snapshots: [snapshot(9, 12)], journal, prefixEnd: 15 })).toEqual([
    "snapshot 12: 13-20 8/1",
  ]);
});

test("a state that lacks a block of an initialized parameter is not offered", () => {
  const lacks = [{ parameter: "w", index: 0, number: 1 }];
  const snapshots = [snapshot(9, 0, { lacks })];
  expect(brief({ snapshots, prefixEnd: 10 })).toEqual(["prefix 10: 11-20 10/1"]);
  expect(brief({ snapshots, prefixEnd: 10, prefixLacks: lacks })).toEqual([]);
});

test("a snapshot of all that is known to have existed loses nothing", () => {
  expect(brief({ snapshots: [snapshot(9, 20)], journal: undefined })).toEqual([
    "snapshot 20: 21-20 0/0",
  ]);
});

test("records in the place of lost ones do not hide the loss", () => {
  expect(brief({ snapshots: [snapshot(9, 2)], prefixEnd: 18, lostFrom: 16 })).toEqual([
    "prefix 18: 16-20 5/4",
    "snapshot 2: 3-20 18/1",
  ]);
});

describe("the rest of a journal with a record that cannot be folded", () => {
  const rest = (more: Partial<FoundRest> = {}): FoundRest => {
    return { seq: 20, without: [{ seq: 8, trainer: "b" }], lacks: [], ...more };
  };
  const given = { snapshots: [snapshot(9, 4)], prefixEnd: 7 };

  test("comes first, and loses only what is put aside", () => {
    const behind = (): Tally => ({ trainers: [], hostRecords: 0 });
    const choices = choicesOf(facts({ ...given, behind, rest: rest() }));
    expect(choices.map(({ from, seq }) => `${from} ${seq}`)).toEqual([
      "rest 20",
      "prefix 7",
      "snapshot 4",
    ]);
    expect(choices[0]).toEqual({
      ...{ from: "rest", manifestSeq: 9, generation: 1, seq: 20, without: [8] },
      lost: {
        ...{ generation: 1, from: 8, to: 8, records: 1, unknown: 0, hostRecords: 0 },
        trainers: [{ trainer: "b", records: 1 }],
      },
    });
  });

  test("loses what lies behind its end, too", () => {
    const without = [{ seq: 8, trainer: "a" }, { seq: 10 }];
    expect(brief({ ...given, rest: rest({ seq: 15, without }) })[0]).toBe("rest 15: 8-20 7/1");
    const [choice] = choicesOf(facts({ ...given, rest: rest({ seq: 15, without }) }));
    expect(choice?.lost).toMatchObject({
      trainers: [{ trainer: "a", records: 4 }],
      hostRecords: 2,
    });
  });

  test("is no choice if it cannot be folded, or lacks a block of an initialized parameter", () => {
    const none = brief(given);
    expect(brief({ ...given, rest: rest({ problem: "too many" }) })).toEqual(none);
    const lacks = [{ parameter: "w", index: 0, number: 1 }];
    expect(brief({ ...given, rest: rest({ lacks }) })).toEqual(none);
  });
});

describe("an archive", () => {
  const archive = (seq: number, more: Partial<FoundArchive> = {}): FoundArchive => {
    return { name: "a", generation: 1, seq, archivedSeq: seq, lacks: [], ...more };
  };
  const snapshots = [snapshot(9, 12), snapshot(5, 4)];

  test.each([
    [18, ["archive 18: 19-20 2/1", "prefix 15: 16-20 5/1", "snapshot 12: 13-20 8/1"]],
    [15, ["prefix 15: 16-20 5/1", "archive 15: 16-20 5/1", "snapshot 12: 13-20 8/1"]],
    [13, ["prefix 15: 16-20 5/1", "archive 13: 14-20 7/1", "snapshot 12: 13-20 8/1"]],
  ])("up to record %i has its place by what is lost", (seq, choices) => {
    const found = brief({ snapshots, prefixEnd: 15, archive: archive(seq) });
    expect(found.slice(0, 3)).toEqual(choices);
  });

  test("may be all that is left", () => {
    expect(brief({ archive: archive(20) })).toEqual(["archive 20: 21-20 0/0"]);
  });

  test("of an earlier generation comes last, and gives up the whole present one", () => {
    const older = archive(70, { generation: 1 });
    const present = [snapshot(9, 12, { generation: 2 })];
    expect(brief({ generation: 2, snapshots: present, archive: older })).toEqual([
      "snapshot 12: 13-20 8/1",
      "archive 70: 1-20 20/1",
    ]);
  });

  test("loses no record that it holds, in whose place the journal has another one", () => {
    const given = { snapshots, prefixEnd: 15, lostFrom: 14 };
    expect(brief({ ...given, archive: archive(16) })[0]).toBe("archive 16: 17-20 4/1");
    // It holds records up to 13; those up to 16 are the broker's.
    const short = archive(16, { archivedSeq: 13 });
    expect(brief({ ...given, archive: short })).toContain("archive 16: 14-20 7/4");
  });

  test("is no choice if it cannot be used, or lacks a block of an initialized parameter", () => {
    const none = brief({ snapshots });
    expect(brief({ snapshots, archive: archive(18, { problem: "of another job" }) })).toEqual(none);
    const lacks = [{ parameter: "w", index: 0, number: 1 }];
    expect(brief({ snapshots, archive: archive(18, { lacks }) })).toEqual(none);
  });
});
