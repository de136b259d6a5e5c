// Proves synchronization by steps by simulation: hundreds of schedules of `sync` and `ssp` jobs in which
// trainers die, restart, come late, leave and lose their leases, hosts die between a change of members
// and its telling, owners die and take over from any snapshot, and messages are lost, reordered and
// repeated, each decided by one seed. The oracles: every record of every shard is answered, and every
// value is, what a plain restatement of the rules says; the journal folded anew and from every snapshot
// gives the same bytes; no gradient is late or early that must not be; what was told applied is in the
// values, once; and when nothing fails any more every trainer that is left gets on. A failure prints its
// seed: SIMULATION_SEED=<seed> runs that schedule alone, SIMULATION_SCHEDULES=<count> runs more. And the
// oracles find each of a few planted defects.
import { expect, test } from "vitest";
import { ensureError } from "../../src/protocol/errors.ts";
import { MemoryPool } from "./fold-maker.ts";
import { runSchedule, type ScheduleReport, type Variant } from "./steps/schedule.ts";

const ONLY_SEED = process.env["SIMULATION_SEED"];
const SCHEDULES = Number(process.env["SIMULATION_SCHEDULES"] ?? 600);

/** Schedules within which every planted defect must show. */
const DEFECT_SCHEDULES = 200;
const TIMEOUT_MS = 60_000 + SCHEDULES * 100;

const pool = new MemoryPool();

function run(seed: number): ScheduleReport {
  try {
    return runSchedule(seed, pool);
  } catch (cause) {
    const text = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`SIMULATION_SEED=${seed}: ${text}`, { cause });
  }
}

test("no schedule breaks a promise", { timeout: TIMEOUT_MS }, () => {
  const seeds =
    ONLY_SEED === undefined
      ? Array.from({ length: SCHEDULES }, (_, i) => i + 1)
      : [Number(ONLY_SEED)];
  const sum = { records: 0, stormSteps: 0, restarts: 0, takeOvers: 0, revisions: 0, late: 0 };
  for (const seed of seeds) {
    const report = run(seed);
    for (const key of Object.keys(sum) as (keyof ScheduleReport)[]) sum[key] += report[key];
  }
  // Schedules in which nothing goes wrong would prove nothing.
  if (ONLY_SEED !== undefined) return;
  for (const [what, count] of Object.entries(sum))
    expect(count, what).toBeGreaterThan(seeds.length);
});

test("a seed decides its schedule", () => {
  expect(run(7)).toEqual(run(7));
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
  "a trainer that ends a step before it has sent its gradients": [
    { trainer: { clocksEarly: true } },
    /told LATE/,
  ],
};

test.each(Object.entries(PLANTED))("%s is found", { timeout: TIMEOUT_MS }, (_what, planted) => {
  const [variant, found] = planted;
  const findings: string[] = [];
  for (let seed = 1; seed <= DEFECT_SCHEDULES; seed++) {
    try {
      runSchedule(seed, pool, variant);
    } catch (error) {
      findings.push(ensureError(error).message);
      if (found.test(findings.at(-1) ?? "")) break;
    }
  }
  expect(findings.at(-1)).toMatch(found);
});
