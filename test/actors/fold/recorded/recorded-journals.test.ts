// Proves that this program folds recorded journals to the same results as the program that recorded them: the
// same answer to every record and the same bytes of state, values and slots, on the way and at the end. That
// the recordings reach every code that the fold refuses records with; and that none has been changed.
//
// If one of these fails, a host of this version does not go on where a host of the recording version has
// stopped: owners that fold the same journal would answer differently, and snapshots would not fit their
// journals. The rules of a released version never change, and the conditions of a refusal belong to them.
// What must change after the first release gets a new number in KNOWN_RULES and recordings of its own beside
// those that are there.
//
// PSERVER_RECORD_JOURNALS=1 records the scenes that have no file yet; a file is never written over.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { RULES_1 } from "../../../../src/actors/fold/rules.ts";
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
} from "./journal-file.ts";
import { SceneWriter } from "./scene-writer.ts";
import { RECORDINGS } from "./scenes.ts";

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

if (process.env["PSERVER_RECORD_JOURNALS"] === "1") {
  const known = new Set(recordedNames());
  for (const [name, recording] of Object.entries(RECORDINGS)) {
    const writer = new SceneWriter();
    recording.scene(writer);
    if (!known.has(name)) recordJournal(name, writer.journal.records, recording.limits);
  }
}

/** The codes that the fold's sources and the reading of records name. */
function codesOfSources(): string[] {
  const fold = readdirSync(join(SOURCES, "actors/fold"), { encoding: "utf8", recursive: true })
    .filter((file) => file.endsWith(".ts"))
    .map((file) => `actors/fold/${file}`);
  const reading = [
    "fields",
    "tensor",
    "messages/records",
    "messages/batch-records",
    "messages/columns",
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

test("every code has a recorded refusal", () => {
  const found = new Set(recordedNames().flatMap((name) => readJournal(name).answers));
  const codes = [...found].filter((answer) => typeof answer === "string");
  expect(codes.sort()).toEqual(codesOfSources());
});

test("a program that lacks the version stops at the journal or the state", () => {
  const options = { subjects: SUBJECTS, shard: SHARD };
  const other = { ...options, knownRules: new Map([[2, { ...RULES_1, version: 2 }]]) };
  const records = journalRecords(readJournal("declarations"));
  const code = expect.objectContaining({ code: "UNKNOWN_RULES" });
  const shard = Shard.create(other);
  expect(() => records.map((record) => shard.apply(record))).toThrow(code);
  expect(shard.seq).toBe(1);
  const present = Shard.create(options);
  for (const record of records) present.apply(record);
  const state = { ...present.saveState(), trainers: "of another form" };
  expect(() => Shard.restoreEmpty(other, state)).toThrow(code);
});

describe.each(recordedNames())("%s", (name) => {
  test("comes to what it came to when it was recorded", () => {
    const recorded = readJournal(name);
    const { digest, digests, answers } = foldRecords(journalRecords(recorded), recorded.limits);
    expect(answers).toEqual(recorded.answers);
    expect(digests).toEqual(recorded.digests);
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
