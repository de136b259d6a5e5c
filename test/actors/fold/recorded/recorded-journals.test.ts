// Proves that this program makes of recorded journals what the program that recorded them made: the same
// answer to every record and, at the end, the same bytes of state, values and slots.
//
// If one of these fails, a host of this version does not go on where a host of the recording version has
// stopped: owners that fold the same journal would answer differently, and snapshots would not fit their
// journals. The rules of a released version never change. What must change gets a new number in
// KNOWN_RULES and recordings of its own beside the old ones, which stay.
//
// PSERVER_RECORD_JOURNALS=1 records the scenes that have no file yet; a file is never written over.
import { readdirSync } from "node:fs";
import { describe, expect, test } from "vitest";
import {
  foldRecords,
  JOURNALS,
  journalRecords,
  readJournal,
  recordJournal,
} from "./journal-file.ts";
import { SCENE_LIMITS, SCENES, writeScene } from "./scenes.ts";

const ENDING = ".journal";

function recordedNames(): string[] {
  return readdirSync(JOURNALS)
    .filter((file) => file.endsWith(ENDING))
    .map((file) => file.slice(0, -ENDING.length))
    .sort();
}

if (process.env["PSERVER_RECORD_JOURNALS"] === "1") {
  const known = new Set(recordedNames());
  for (const [name, scene] of Object.entries(SCENES)) {
    const { records } = writeScene(scene).journal;
    if (!known.has(name)) recordJournal(name, records, SCENE_LIMITS[name]);
  }
}

test("every scene has been recorded", () => {
  expect(recordedNames()).toEqual(expect.arrayContaining(Object.keys(SCENES).sort()));
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
