// Proves rounds of fragments by simulation: hundreds of schedules in which trainers contribute in one record or in parts,
// die and restart, join and leave, records and answers are lost, repeated and reordered, owners die and take over from any
// snapshot while the former one still closes rounds, and timers fire in any order, each decided by one seed. The oracles:
// every contribution counts whole or not at all, once, in the round that its sender was told, values are what the merged
// contributions, as guards have clipped them, give at every record, every account adds up, every owner comes to the same bytes, and when nothing fails
// any more rounds close. A failure prints its seed: SIMULATION_SEED=<seed> runs that schedule alone,
// SIMULATION_SCHEDULES=<count> runs more. And the oracles find each of a few planted defects.
import { expect, test } from "vitest";
import { MemoryPool } from "./fold-maker.ts";
import { runSchedule, type ScheduleReport, type Variant } from "./rounds/schedule.ts";
import { findings, RUNS_ONE_SEED, runSeeds, scheduleCount, scheduleTimeoutMs } from "./seeds.ts";

const SCHEDULES = scheduleCount(300);

/** Schedules within which every planted defect must show. */
const DEFECT_SCHEDULES = 200;
const TIMEOUT_MS = scheduleTimeoutMs(SCHEDULES);

const pool = new MemoryPool();

test("no schedule breaks a promise", { timeout: TIMEOUT_MS }, () => {
  const reports = runSeeds(SCHEDULES, (seed) => runSchedule(seed, pool));
  const sum = { records: 0, rounds: 0, late: 0, restarts: 0, takeOvers: 0, inParts: 0, clipped: 0 };
  for (const report of reports) {
    for (const key of Object.keys(sum) as (keyof ScheduleReport)[]) sum[key] += report[key];
  }
  // Schedules in which nothing goes wrong would prove nothing.
  if (RUNS_ONE_SEED) return;
  for (const [what, count] of Object.entries(sum))
    expect(count, what).toBeGreaterThan(reports.length);
});

test("a seed decides its schedule", () => {
  expect(runSchedule(7, pool)).toEqual(runSchedule(7, pool));
});

const PLANTED: Readonly<Record<string, readonly [variant: Variant, found: RegExp]>> = {
  "a snapshot without the parts of incomplete contributions": [
    { owner: { forgetsParts: true } },
    /another state|was told/,
  ],
  "a snapshot without accounts": [
    { owner: { forgetsAccounts: true } },
    /another state|tallies do not add up/,
  ],
  "a snapshot without the norms that guards compare with": [
    { owner: { forgetsNorms: true } },
    /another state| is /,
  ],
  "a snapshot that forgets from which versions trainers have contributed": [
    { owner: { forgetsBases: true } },
    /another state|was told/,
  ],
  "an owner that closes with contributions which it has not folded": [
    { owner: { closesAhead: true } },
    /does not close/,
  ],
  "an owner that leaves records out": [{ owner: { skipsRecords: true } }, /another state|was told/],
};

test.each(Object.entries(PLANTED))("%s is found", { timeout: TIMEOUT_MS }, (_what, planted) => {
  const [variant, found] = planted;
  const messages = findings(DEFECT_SCHEDULES, found, (seed) => runSchedule(seed, pool, variant));
  expect(messages.at(-1)).toMatch(found);
});
