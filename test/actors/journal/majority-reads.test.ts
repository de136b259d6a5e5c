// Proves what is believed of a journal's leader: of a replicated journal only answers that cover a record
// appended just before, however often a former leader answers first; of any other journal every answer. A
// full journal, which takes no record, can still be read. The leaders are scripts of answers.
import { beforeEach, expect, test } from "vitest";
import type { JournalRecord } from "../../../src/actors/fold/journal-record.ts";
import {
  type JournalInfo,
  majorityInfo,
  majorityLastSeq,
  majorityRecord,
} from "../../../src/actors/journal/journal.ts";
import type { ReplicaDamage } from "../../../src/actors/journal/replicas.ts";
import { type HostRecord, type Position, PserverError } from "../../../src/protocol/index.ts";
import { withoutPauses } from "../../support/without-pauses.ts";

const RECORD = { seq: 7, subject: "s", payload: new Uint8Array(1) };

/** Last sequences that are answered, one after the other; the last one again and again. */
let answers: (number | undefined)[];
let isReplicated: boolean;
let questions: number;
let appended: HostRecord[];
/** The record in the copies of the brokers. */
let copies: JournalRecord[];
/** How an append ends. */
let append: () => Promise<Position>;
/** Pauses between two questions. */
let pauses: readonly number[];

beforeEach(() => {
  pauses = withoutPauses();
  [isReplicated, questions, appended] = [true, 0, []];
  copies = [];
  append = () => Promise.resolve({ generation: 2, seq: 9 });
});

function answer(): number | undefined {
  questions += 1;
  return answers.length > 1 ? answers.shift() : answers[0];
}

const journal = {
  shard: 3,
  get isReplicated() {
    return isReplicated;
  },
  info: () => {
    const lastSeq = answer();
    return Promise.resolve(lastSeq === undefined ? undefined : ({ lastSeq } as JournalInfo));
  },
  lastSeq: () => Promise.resolve(answer()),
  record: () => Promise.resolve(answer() === undefined ? undefined : RECORD),
  soundCopy: (_generation: number, _seq: number, isSound: (record: JournalRecord) => boolean) =>
    Promise.resolve(copies.find(isSound)),
  leader: () => Promise.resolve("broker-0"),
  append: (record: HostRecord) => {
    appended.push(record);
    return append();
  },
};

test("the state is one that covers a record appended before, and none of a former leader", async () => {
  answers = [5, 5, 5, 9];
  expect(await majorityInfo(journal, 2)).toEqual({ lastSeq: 9 });
  expect([questions, appended]).toEqual([4, [{ verb: "floor", session: 0 }]]);
});

test("a leader that never hears of the record is not believed", async () => {
  answers = [5];
  await expect(majorityInfo(journal, 2)).rejects.toMatchObject({
    code: "JETSTREAM_UNAVAILABLE",
    details: { shard: 3, expected: 9, received: 5 },
  });
});

test("a leader is asked for ten seconds until it must have heard of its successor", async () => {
  answers = [5];
  await expect(majorityInfo(journal, 2)).rejects.toBeDefined();
  answers = [undefined];
  await majorityRecord(journal, 2, 7);
  expect(pauses).toEqual(Array(2 * 99).fill(100));
});

test("a journal that is removed meanwhile is gone, and is not asked for again", async () => {
  answers = [5, undefined];
  expect(await majorityInfo(journal, 2)).toBeUndefined();
  expect(questions).toBe(2);
});

test("a leader that cannot append is not believed", async () => {
  answers = [5];
  append = () => Promise.reject(new PserverError("TIMEOUT", "no majority", {}));
  await expect(majorityInfo(journal, 2)).rejects.toMatchObject({ code: "TIMEOUT" });
  await expect(majorityLastSeq(journal, { generation: 2, seq: 6 })).rejects.toMatchObject({
    code: "TIMEOUT",
  });
});

test.each([
  ["without replicas", false, "JOURNAL_FULL", 0],
  ["that is full", true, "JOURNAL_FULL", 1],
  ["whose broker cannot write", true, "JOURNAL_FAULT", 1],
] as const)(
  "the state of a journal %s is taken as it is told",
  async (_what, replicated, code, records) => {
    [answers, isReplicated] = [[5, 9], replicated];
    append = () => Promise.reject(new PserverError(code, "no record", {}));
    expect(await majorityInfo(journal, 2)).toEqual({ lastSeq: 5 });
    expect(appended).toHaveLength(records);
  },
);

test("a journal that is gone, or was replaced by another generation, gets no second look", async () => {
  answers = [undefined];
  expect(await majorityInfo(journal, 2)).toBeUndefined();
  expect(appended).toEqual([]);
  answers = [5, 9];
  expect(await majorityInfo(journal, 1)).toEqual({ lastSeq: 5 });
});

test("the end of a journal is confirmed by a record only if a position lies behind it", async () => {
  answers = [5];
  expect(await majorityLastSeq(journal, { generation: 2, seq: 5 })).toBe(5);
  expect(appended).toEqual([]);
  // Record 9 is the one that was appended.
  expect(await majorityLastSeq(journal, { generation: 2, seq: 6 })).toBe(8);
  expect(await majorityLastSeq(journal, { generation: 1, seq: 6 })).toBeUndefined();
  isReplicated = false;
  expect(await majorityLastSeq(journal, { generation: 2, seq: 6 })).toBe(5);
});

test("the end of a full journal is not known", async () => {
  answers = [5];
  append = () => Promise.reject(new PserverError("JOURNAL_FULL", "full", {}));
  expect(await majorityLastSeq(journal, { generation: 2, seq: 6 })).toBeUndefined();
});

test("a record that a former leader does not have is asked for again", async () => {
  answers = [undefined, undefined, 7];
  expect(await majorityRecord(journal, 2, 7)).toBe(RECORD);
  answers = [undefined, 7];
  isReplicated = false;
  expect(await majorityRecord(journal, 2, 7)).toBeUndefined();
});

test("a record that no leader can read is missing", async () => {
  answers = [undefined];
  expect(await majorityRecord(journal, 2, 7)).toBeUndefined();
});

test("a leader that has another record is told of, and the sound copy of another broker is taken", async () => {
  const sound = { ...RECORD, payload: Uint8Array.of(1) };
  const isSound = ({ payload }: JournalRecord): boolean => payload[0] === 1;
  const damaged: ReplicaDamage[] = [];
  const onReplicaDamaged = (damage: ReplicaDamage): unknown => damaged.push(damage);
  copies = [RECORD, sound];
  answers = [7];
  expect(await majorityRecord(journal, 2, 7, { isSound, onReplicaDamaged })).toBe(sound);
  expect(damaged).toEqual([{ broker: "broker-0", from: 7, to: 7, isOther: false }]);
  // If no copy has it, the leader's record shows what is there instead.
  copies = [RECORD];
  expect(await majorityRecord(journal, 2, 7, { isSound, onReplicaDamaged })).toBe(RECORD);
  expect(damaged).toHaveLength(1);
});

test("a leader without the record may be a former one: another copy is taken, and nobody is told", async () => {
  const onReplicaDamaged = (): never => expect.unreachable();
  [copies, answers] = [[RECORD], [undefined]];
  expect(await majorityRecord(journal, 2, 7, { onReplicaDamaged })).toBe(RECORD);
});
