// Proves that --json and --csv tell the same of every kind of update, and that CSV survives any text.
import { expect, test } from "vitest";
import { CSV_COLUMNS, csvLine } from "../../../src/cli/history/update-columns.ts";
import { updateEntry } from "../../../src/history/reports/update-entry.ts";
import { event, note } from "./events.ts";

test("a gradient", () => {
  expect(updateEntry(event())).toEqual({
    ...{ time: "2026-11-23T04:12:07.250Z", shard: 3, generation: 1, seq: 1200, entry: 0 },
    ...{
      trainer: "trainer-2",
      session: 8,
      number: 1042,
      verb: "push",
      op: "grad",
      learningRate: 0.1,
    },
    ...{ parameter: "fc1.weight", block: 0, dtype: "float32", elements: 3000, bytes: 12_000 },
    ...{ norm: 15.94, min: -0.5, max: 0.4996, mean: 0.000_448, zeros: 30, nonFinite: 0 },
    ...{ version: 17, behind: 2, outcome: "applied" },
  });
});

const GUARD = {
  action: "set-aside",
  norm: 15.94,
  limit: 3,
  median: 1,
  norms: 32,
  others: 0,
  entry: 0,
} as const;

test("what a guard has decided", () => {
  expect(updateEntry(event({ outcome: { kind: "set-aside" }, guard: GUARD }))).toMatchObject({
    ...{ outcome: "set-aside", guard: "set-aside", norm: 15.94, limit: 3, median: 1, norms: 32 },
  });
  expect(updateEntry(note({ fragment: "f" }, { guard: GUARD }))).toMatchObject({ norm: 15.94 });
});

test("every entry has its column", () => {
  const kinds = [
    event(),
    note({ loss: 1 }),
    event({ outcome: { kind: "rejected", code: "LATE", message: "late" } }),
    event({ outcome: { kind: "repeated", seq: 7 } }),
    event({ outcome: { kind: "set-aside" }, guard: GUARD }),
  ];
  for (const each of kinds) {
    for (const name of Object.keys(updateEntry(each))) expect(CSV_COLUMNS).toContain(name);
    expect(csvLine(each).startsWith("2026-11-23T04:12:07.250Z,3,1,1200,0,trainer-2,8,1042,")).toBe(
      true,
    );
  }
});

test.each([
  ["=HYPERLINK(1)", "'=HYPERLINK(1)"],
  ["+1", "'+1"],
  ["-1+cmd", "'-1+cmd"],
  ["@SUM(A1)", "'@SUM(A1)"],
  ["a=b", "a=b"],
  ["\u001b[31mred", "\\x1b[31mred"],
  ["a\u202eb", "a\\u202eb"],
  ["\t=1", "\\x09=1"],
])("a trainer called %j is %j in CSV", (trainer, cell) => {
  expect(csvLine(event({ trainer })).split(",")[5]).toBe(cell);
});

test("commas and quotes are quoted, and line ends are shown", () => {
  const message = 'expected "w", received\nnothing';
  const line = csvLine(event({ outcome: { kind: "rejected", code: "LATE", message } }));
  expect(line).toContain('LATE,"expected ""w"", received\\x0anothing"');
});

test("a norm beyond float64 is a text in JSON", () => {
  const { block } = event();
  if (block?.statistics === undefined) throw new Error("expected statistics");
  const statistics = { ...block.statistics, norm: Number.POSITIVE_INFINITY };
  expect(JSON.stringify(updateEntry(event({ block: { ...block, statistics } })))).toContain(
    '"norm":"Infinity"',
  );
});
