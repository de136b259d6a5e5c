// Proves the protocol between trainers, journal and owners by simulation: a thousand schedules in
// which messages are lost, reordered and repeated, trainers restart, owners crash, overlap and take
// over from snapshots, disks fill and leave gaps in the journal, records are damaged in transit, and parameters are initialized
// anew, each decided by one seed. The oracles:
// folding the journal again from its beginning and from every snapshot gives the owners' state; a
// push told applied changed its element exactly once and one told rejected never did; no two answers
// contradict each other; every record does what a plain restatement of the rules says; once nothing
// fails any more, everything settles. A failure prints its seed: SIMULATION_SEED=<seed> runs that
// schedule alone, SIMULATION_SCHEDULES=<count> runs more. And the oracles are proved in turn: they
// find each of the defects of planted-bugs.ts.
import { expect, test } from "vitest";
import { MemoryPool } from "./fold-maker.ts";
import { PLANTED_BUGS } from "./planted-bugs.ts";
import { runSchedule } from "./schedule.ts";
import { findings, RUNS_ONE_SEED, runSeeds, scheduleCount, scheduleTimeoutMs } from "./seeds.ts";

const SCHEDULES = scheduleCount(1000);

/** Schedules within which every planted defect must show. */
const DEFECT_SCHEDULES = 300;
const TIMEOUT_MS = scheduleTimeoutMs(SCHEDULES);

const pool = new MemoryPool();

test("no schedule breaks a promise", { timeout: TIMEOUT_MS }, () => {
  const reports = runSeeds(SCHEDULES, (seed) => runSchedule(seed, pool));
  const sum = { records: 0, takeOvers: 0, snapshots: 0, gaps: 0, applied: 0, rejected: 0 };
  for (const { records, takeOvers, snapshots, gaps, told } of reports) {
    sum.records += records;
    sum.takeOvers += takeOvers;
    sum.snapshots += snapshots;
    sum.gaps += gaps;
    sum.applied += told.applied;
    sum.rejected += told.rejected;
  }
  // Schedules in which nothing goes wrong would prove nothing.
  if (RUNS_ONE_SEED) return;
  for (const count of Object.values(sum)) expect(count).toBeGreaterThan(reports.length);
});

test("a seed decides its schedule", () => {
  expect(runSchedule(7, pool)).toEqual(runSchedule(7, pool));
});

test.each(Object.entries(PLANTED_BUGS))("%s is found", { timeout: TIMEOUT_MS }, (_what, bug) => {
  const { variant, found } = bug;
  const messages = findings(DEFECT_SCHEDULES, found, (seed) => runSchedule(seed, pool, variant));
  expect(messages.at(-1)).toMatch(found);
});
