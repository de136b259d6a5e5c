// Proves what is told of a journal from the sequences and subjects of its records: gaps and their kind,
// how far its prefix reaches, and whose records lie behind each place that a shard may go back to.
import { expect, test } from "vitest";
import type { SeqRange } from "../../../src/actors/recovery/findings.ts";
import { JournalTally } from "../../../src/actors/recovery/inspect-shard.ts";
import { SHARD, SUBJECTS } from "../fold/journal-writer.ts";

const push = (trainer: string): string => SUBJECTS.log(SHARD, trainer, "push", "w", 0);

function tally(options: {
  baseSeq?: number;
  firstSeq?: number;
  missing?: number[];
  changed?: SeqRange;
}): JournalTally {
  const { baseSeq = 0, firstSeq = 1, missing = [], changed } = options;
  return new JournalTally({
    subjects: SUBJECTS,
    firstSeq,
    baseSeq,
    places: [baseSeq],
    missing,
    changed,
  });
}

test("a whole journal has no gap, and its prefix is all of it", () => {
  const whole = tally({});
  whole.record(1, SUBJECTS.hostLog(SHARD, "rules"));
  for (let seq = 2; seq <= 4; seq++) whole.record(seq, push("a"));
  whole.record(5, push("b"));
  whole.end(5);
  expect(whole.gaps).toEqual([]);
  expect(whole.prefixEnd).toBe(5);
  expect(whole.behind(0)).toEqual({
    trainers: [
      { trainer: "a", records: 3 },
      { trainer: "b", records: 1 },
    ],
    hostRecords: 1,
  });
  expect(whole.behind(5)).toEqual({ trainers: [], hostRecords: 0 });
});

test("gaps are empty where the stream says so and unreadable where it counts a record", () => {
  const hurt = tally({ missing: [4, 5] });
  for (const seq of [1, 2, 7, 8]) hurt.record(seq, push("a"));
  hurt.end(9);
  expect(hurt.gaps).toEqual([
    { from: 3, to: 3, kind: "unreadable" },
    { from: 4, to: 5, kind: "empty" },
    { from: 6, to: 6, kind: "unreadable" },
    { from: 9, to: 9, kind: "unreadable" },
  ]);
  expect(hurt.prefixEnd).toBe(2);
  // What lies behind the first gap is counted from there on.
  expect(hurt.behind(2).trainers).toEqual([{ trainer: "a", records: 2 }]);
  expect(hurt.behind(0).trainers).toEqual([{ trainer: "a", records: 4 }]);
});

test("a prefix ends before the first record that has changed, or before an earlier gap", () => {
  for (const [lost, end] of [
    [7, 3],
    [2, 1],
  ] as const) {
    const other = tally({ changed: { from: 4, to: 6 } });
    for (let seq = 1; seq <= 8; seq++) if (seq !== lost) other.record(seq, push("a"));
    other.end(8);
    expect(other.prefixEnd).toBe(end);
    const records = 8 - end - 1;
    expect(other.behind(other.prefixEnd).trainers).toEqual([{ trainer: "a", records }]);
  }
});

test("what is missing before the snapshot does not end the prefix", () => {
  const older = tally({ baseSeq: 5 });
  for (const seq of [1, 2, 4, 5, 6]) older.record(seq, push("a"));
  older.end(6);
  expect(older.gaps).toEqual([{ from: 3, to: 3, kind: "unreadable" }]);
  expect(older.prefixEnd).toBe(6);
});

test("a journal that begins behind the snapshot has no prefix; one that begins before it is whole", () => {
  const late = tally({ baseSeq: 3, firstSeq: 6 });
  for (const seq of [6, 7]) late.record(seq, push("a"));
  late.end(7);
  expect(late.gaps).toEqual([{ from: 4, to: 5, kind: "unreadable" }]);
  expect(late.prefixEnd).toBe(3);
  const purged = tally({ baseSeq: 8, firstSeq: 6 });
  for (const seq of [6, 7, 8, 9]) purged.record(seq, push("a"));
  purged.end(9);
  expect(purged.gaps).toEqual([]);
  expect(purged.prefixEnd).toBe(9);
});

test("a record that cannot be folded ends the prefix, and what can be read goes on", () => {
  const all = { subjects: SUBJECTS, firstSeq: 1, baseSeq: 0, places: [0], missing: [] };
  const failed = new JournalTally({ ...all, failedSeq: 3 });
  for (const seq of [1, 2, 3, 4, 6]) failed.record(seq, push("a"));
  failed.end(6);
  expect(failed.prefixEnd).toBe(2);
  expect(failed.readableEnd).toBe(4);
  expect(failed.behind(2).trainers).toEqual([{ trainer: "a", records: 3 }]);
  expect(failed.behind(4).trainers).toEqual([{ trainer: "a", records: 1 }]);
});

test("a journal that ends before the snapshot reaches as far as the snapshot", () => {
  const short = tally({ baseSeq: 9 });
  for (const seq of [1, 2]) short.record(seq, push("a"));
  short.end(2);
  expect(short.prefixEnd).toBe(9);
});

test("blocks that the prefix initializes are not lacking; those behind a gap are", () => {
  const init = (parameter: string): string => SUBJECTS.log(SHARD, "a", "init", parameter, 0);
  const inits = tally({});
  inits.record(1, init("w"));
  inits.record(3, init("b"));
  inits.end(3);
  const block = (parameter: string) => ({ parameter, index: 0, number: 1 });
  expect(inits.stillLacked([block("w"), block("b"), block("c")])).toEqual([block("b"), block("c")]);
});

test("batches of the prefix are listed; those before the base and behind a gap are not", () => {
  const batch = SUBJECTS.batch(SHARD, "a");
  const batches = tally({ baseSeq: 2 });
  for (const seq of [1, 2, 3]) batches.record(seq, batch);
  batches.record(4, push("a"));
  for (const seq of [5, 7]) batches.record(seq, batch);
  batches.end(7);
  expect(batches.batches).toEqual([3, 5]);
});

test("records whose sender is unknown count as a host's", () => {
  const strange = tally({});
  strange.record(1, "ps.test.log.3.trainer.a.dance.w.0");
  strange.end(1);
  expect(strange.behind(0)).toEqual({ trainers: [], hostRecords: 1 });
});
