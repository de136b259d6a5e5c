// Proves that what is found of a stopped shard fits narrow terminals, whole, and with its choices below
// each other.
import { expect, test } from "vitest";
import type { ShardFindings } from "../../../src/actors/recovery/findings.ts";
import { describeFindings } from "../../../src/cli/commands/recover.ts";
import { makePaint } from "../../../src/cli/output/colors.ts";

const lost = {
  generation: 2,
  from: 1_201,
  to: 1_240,
  records: 40,
  unknown: 3,
  hostRecords: 1,
  trainers: Array.from({ length: 6 }, (_, i) => ({ trainer: `trainer-${i}`, records: 6 })),
};

const FINDINGS: ShardFindings = {
  shard: 3,
  condition: "stopped",
  error: {
    code: "JOURNAL_LOST",
    message: "journal of shard 3: expected records up to 1240, which were acknowledged; found 1200",
    details: {},
  },
  generation: 2,
  manifestSeq: 9,
  snapshots: [
    { manifestSeq: 9, generation: 2, seq: 1_150, recordCrc: 7, host: "alpha", lacks: [] },
  ],
  journal: {
    stream: "PS_mnist_3_2",
    firstSeq: 1,
    lastSeq: 1_200,
    bytes: 123_456_789,
    gaps: [{ from: 17, to: 19, kind: "unreadable" }],
  },
  lastKnownSeq: 1_240,
  choices: [
    { from: "prefix", generation: 2, seq: 1_200, lost },
    { from: "snapshot", manifestSeq: 9, generation: 2, seq: 1_150, lost },
  ],
};

test.each([60, 80, 120])("fits %i columns", (width) => {
  const lines = describeFindings(FINDINGS, { paint: makePaint(false), width });
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(width);
  const wide = describeFindings(FINDINGS, {
    paint: makePaint(false),
    width: Number.POSITIVE_INFINITY,
  });
  const words = (text: readonly string[]): string[] => text.join(" ").trim().split(/ +/);
  expect(words(lines)).toEqual(words(wide));
});

test("what a choice gives up stands below it", () => {
  const lines = describeFindings(FINDINGS, { paint: makePaint(false), width: 60 });
  const first = lines.findIndex((line) => /^ {2}choices {4}1\. prefix/.test(line));
  expect(lines.slice(first + 1).find((line) => /gives up/.test(line))).toMatch(/^ {16}gives up/);
});
