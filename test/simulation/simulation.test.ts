// Proves the protocol between trainers, journal and owners by simulation: thousands of schedules in
// which messages are lost, reordered and repeated, trainers restart, owners crash, overlap and take
// over from snapshots, disks fill and leave holes in the journal, and parameters are initialized
// anew, each decided by one seed. The oracles:
// folding the journal again from its beginning and from every snapshot gives the owners' state; a
// push told applied changed its element exactly once and one told rejected never did; no two answers
// contradict each other; every record does what a plain restatement of the rules says; once nothing
// fails any more, everything settles. A failure prints its seed: SIMULATION_SEED=<seed> runs that
// schedule alone, SIMULATION_SCHEDULES=<count> runs more. And the oracles are proved in turn: they
// find each of the defects of planted-bugs.ts.
import { expect, test } from "vitest";
import { ensureError } from "../../src/protocol/errors.ts";
import { MemoryPool } from "./fold-maker.ts";
import { PLANTED_BUGS, type PlantedBug } from "./planted-bugs.ts";
import { runSchedule, type ScheduleReport } from "./schedule.ts";

const ONLY_SEED = process.env["SIMULATION_SEED"];
const SCHEDULES = Number(process.env["SIMULATION_SCHEDULES"] ?? 3000);

/** Schedules within which every planted defect must show. */
const DEFECT_SCHEDULES = 300;
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

/** What the oracles say of a defect: all that they found up to what is expected, newest last. */
function findings({ variant, found }: PlantedBug): string[] {
  const messages: string[] = [];
  for (let seed = 1; seed <= DEFECT_SCHEDULES; seed++) {
    try {
      runSchedule(seed, pool, variant);
    } catch (error) {
      messages.push(ensureError(error).message);
      if (found.test(messages.at(-1) ?? "")) break;
    }
  }
  return messages;
}

test("no schedule breaks a promise", { timeout: TIMEOUT_MS }, () => {
  const seeds =
    ONLY_SEED === undefined
      ? Array.from({ length: SCHEDULES }, (_, i) => i + 1)
      : [Number(ONLY_SEED)];
  const sum = { records: 0, takeOvers: 0, snapshots: 0, holes: 0, applied: 0, rejected: 0 };
  for (const seed of seeds) {
    const { records, takeOvers, snapshots, holes, told } = run(seed);
    sum.records += records;
    sum.takeOvers += takeOvers;
    sum.snapshots += snapshots;
    sum.holes += holes;
    sum.applied += told.applied;
    sum.rejected += told.rejected;
  }
  // Schedules in which nothing goes wrong would prove nothing.
  if (ONLY_SEED !== undefined) return;
  for (const count of Object.values(sum)) expect(count).toBeGreaterThan(seeds.length);
});

test("a seed decides its schedule", () => {
  expect(run(7)).toEqual(run(7));
});

test.each(Object.entries(PLANTED_BUGS))("%s is found", { timeout: TIMEOUT_MS }, (_what, bug) => {
  expect(findings(bug).at(-1)).toMatch(bug.found);
});
