// Proves that this program folds recorded journals to the same results as the program that recorded them: the
// same answer to every record and the same bytes of state, values and slots, on the way and at the end. That
// the recordings reach every code that the fold refuses records with; and that none has been changed.
//
// If one of these fails, a host of this version does not go on where a host of the recording version has
// stopped: owners that fold the same journal would answer differently, and snapshots would not fit their
// journals. The rules of a released version never change, and the conditions of a refusal belong to them.
// What must change gets a new number in KNOWN_RULES and recordings of its own beside the old ones, which
// stay.
//
// PSERVER_RECORD_JOURNALS=1 records the scenes that have no file yet; a file is never written over.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { KNOWN_RULES } from "../../../../src/actors/fold/rules.ts";
import { Shard } from "../../../../src/actors/fold/shard.ts";
import { isErrorCode } from "../../../../src/protocol/errors.ts";
import { SHARD, SUBJECTS } from "../journal-writer.ts";
import {
  foldRecords,
  journalRecords,
  journalSum,
  readJournal,
  recordedNames,
  recordedSums,
  recordJournal,
  versionOf,
} from "./journal-file.ts";
import { RECORDINGS, writeScene } from "./scenes.ts";

const SOURCES = join(import.meta.dirname, "../../../../src");

/** Codes that the fold has for a journal, a snapshot or itself, and for a record that nobody could read. */
const OF_NO_RECORD = [
  "INTERNAL",
  "JOURNAL_DAMAGED",
  "SNAPSHOT_DAMAGED",
  "BAD_CHECKSUM",
  "FOLD_FAILED",
  "NO_MEMORY",
];

/** Codes that came with a version, and that the versions before it never give. */
const SINCE: Readonly<Record<string, number>> = {
  UNKNOWN_PARAMETER: 2,
  NOT_SELECTED: 2,
  QUOTA: 2,
};

if (process.env["PSERVER_RECORD_JOURNALS"] === "1") {
  const known = new Set(recordedNames());
  for (const [name, recording] of Object.entries(RECORDINGS)) {
    const { records } = writeScene(recording).journal;
    if (!known.has(name)) recordJournal(name, records, recording.limits);
  }
}

/** The codes that the fold's sources and the reading of records name. */
function codesOfSources(): string[] {
  const fold = readdirSync(join(SOURCES, "actors/fold")).map((file) => `actors/fold/${file}`);
  const reading = [
    "fields",
    "tensor",
    "messages/records",
    "messages/batch-records",
    "messages/parts",
  ].map((file) => `protocol/${file}.ts`);
  const text = [...fold, ...reading]
    .map((file) => readFileSync(join(SOURCES, file), "utf8"))
    .join("\n");
  const words = [...text.matchAll(/"([A-Z][A-Z_]+)"/g)].map(([, word = ""]) => word);
  return [...new Set(words)]
    .filter((word) => isErrorCode(word) && !OF_NO_RECORD.includes(word))
    .sort();
}

test("every scene has been recorded", () => {
  expect(recordedNames()).toEqual(expect.arrayContaining(Object.keys(RECORDINGS).sort()));
});

test("no recording has been changed", () => {
  const sums = new Map(recordedNames().map((name) => [name, journalSum(name)]));
  expect(sums).toEqual(recordedSums());
});

test.each([...KNOWN_RULES.keys()])("every code of version %i has a recorded refusal", (version) => {
  const journals = recordedNames().map(readJournal);
  const answers = journals.filter((journal) => versionOf(journal) === version);
  const found = new Set(answers.flatMap((journal) => journal.answers));
  const expected = codesOfSources().filter((code) => (SINCE[code] ?? 1) <= version);
  expect([...found].filter((answer) => typeof answer === "string").sort()).toEqual(expected);
});

test("a program that knows version 1 only stops at a journal or a state of version 2", () => {
  const first = KNOWN_RULES.get(1);
  if (first === undefined) throw new Error("expected version 1");
  const options = { subjects: SUBJECTS, shard: SHARD };
  const older = { ...options, knownRules: new Map([[1, first]]) };
  const records = journalRecords(readJournal("v2-declarations"));
  const code = expect.objectContaining({ code: "UNKNOWN_RULES" });
  const shard = Shard.create(older);
  expect(() => records.map((record) => shard.apply(record))).toThrow(code);
  expect(shard.seq).toBe(1);
  const present = Shard.create(options);
  for (const record of records) present.apply(record);
  const state = { ...present.saveState(), trainers: "of another form" };
  expect(() => Shard.restoreEmpty(older, state)).toThrow(code);
});

describe.each(recordedNames())("%s", (name) => {
  test("comes to what it came to when it was recorded", () => {
    const recorded = readJournal(name);
    const { digest, digests, answers } = foldRecords(journalRecords(recorded), recorded.limits);
    expect(answers).toEqual(recorded.answers);
    if (recorded.digests !== undefined) expect(digests).toEqual(recorded.digests);
    expect(digest).toBe(recorded.digest);
  });

  test("comes to the same through snapshots on the way", () => {
    const recorded = readJournal(name);
    const records = journalRecords(recorded);
    for (let cut = 1; cut < records.length; cut += 5) {
      expect(foldRecords(records, recorded.limits, cut).digest).toBe(recorded.digest);
    }
    expect(foldRecords(records, recorded.limits, 1).answers).toEqual(recorded.answers);
  });
});
