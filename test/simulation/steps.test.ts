// Proves synchronization by steps by simulation: hundreds of schedules of `sync` and `ssp` jobs in which
// trainers die, restart, come late, leave, retire and lose their leases, requests to enter come twice and much
// later, hosts die between a change of members and its telling, owners die and take over from any snapshot, and
// messages are lost, reordered and repeated, each decided by one seed. The oracles: every record of every shard
// is answered, and every value is, what a plain restatement of the rules says; the journal folded anew and from
// every snapshot gives the same bytes; about half of the gradients are batches for two blocks, applied to both
// or to none; no gradient is late or early that must not be; what was told applied is in the values, once; and
// when nothing fails any more every trainer that is left gets on. A failure prints its seed:
// SIMULATION_SEED=<seed> runs that schedule alone, SIMULATION_SCHEDULES=<count> runs more. And the oracles find
// each of a few planted defects.
import { expect, test } from "vitest";
import { MemoryPool } from "./fold-maker.ts";
import { findings, RUNS_ONE_SEED, runSeeds, scheduleCount, scheduleTimeoutMs } from "./seeds.ts";
import { runSchedule, type ScheduleReport, type Variant } from "./steps/schedule.ts";

const SCHEDULES = scheduleCount(300);

/** Schedules within which every planted defect must show. */
const DEFECT_SCHEDULES = 200;
const TIMEOUT_MS = scheduleTimeoutMs(SCHEDULES);

const pool = new MemoryPool();

test("no schedule breaks a promise", { timeout: TIMEOUT_MS }, () => {
  const reports = runSeeds(SCHEDULES, (seed) => runSchedule(seed, pool));
  const sum = {
    records: 0,
    stormSteps: 0,
    restarts: 0,
    takeOvers: 0,
    revisions: 0,
    late: 0,
    batches: 0,
  };
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
  "an owner that tells a step closed too early": [{ owner: { closesEarly: true } }, /told EARLY/],
  "a snapshot without the sums of the open step": [
    { owner: { forgetsSums: true } },
    /replays differently|another state/,
  ],
  "a snapshot without the members' clocks": [
    { owner: { forgetsClocks: true } },
    /answered|replays differently|another state|closed another step/,
  ],
  "an owner that applies the first half of a batch": [
    { owner: { batches: "half" } },
    /element \d+ of v in shard/,
  ],
  "an owner that applies a batch twice": [
    { owner: { batches: "twice" } },
    /element \d+ of [wv] in shard/,
  ],
  "an owner that applies a batch after the record behind it": [
    { owner: { batches: "late" } },
    /answered|another state|replays differently/,
  ],
  "an owner that lets members wait for steps of an earlier membership": [
    { owner: { trustsMembers: true } },
    /wait for ever/,
  ],
  "hosts that let in a trainer whose request comes after its exit": [
    { forgetsExits: true },
    /wait for ever/,
  ],
  "a trainer that ends a step before it has sent its gradients": [
    { trainer: { clocksEarly: true } },
    /told LATE/,
  ],
};

test.each(Object.entries(PLANTED))("%s is found", { timeout: TIMEOUT_MS }, (_what, planted) => {
  const [variant, found] = planted;
  const messages = findings(DEFECT_SCHEDULES, found, (seed) => runSchedule(seed, pool, variant));
  expect(messages.at(-1)).toMatch(found);
});
