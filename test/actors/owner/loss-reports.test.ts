// Proves that every report of a loss is counted and shown, and that the operator is told of one a minute.
import { expect, test } from "vitest";
import { LossReports } from "../../../src/actors/owner/shard-owner.ts";
import { PserverError } from "../../../src/protocol/index.ts";

test("reports are counted, and passed on once a minute with the trainers that made them", () => {
  let nowMs = 5;
  const told: unknown[] = [];
  const reports = new LossReports(
    (error) => told.push([error.details, error.message]),
    () => nowMs,
  );
  const error = new PserverError("JOURNAL_LOST", "record 9 is lost", { shard: 3 });
  const report = (asker: string, seq: number): void =>
    reports.add(error, { asker, generation: 2, seq });
  expect(reports.entry()).toEqual({});
  report("alice", 9);
  nowMs += 59_999;
  report("bob", 10);
  expect(reports.entry()).toEqual({
    reportedLoss: { asker: "bob", generation: 2, seq: 10, count: 2 },
  });
  nowMs += 1;
  report("carol", 11);
  expect(told).toEqual([
    [{ shard: 3, asker: "alice" }, 'record 9 is lost; asker: "alice"'],
    [{ shard: 3, asker: "carol" }, 'record 9 is lost; asker: "carol"'],
  ]);
});
