import { ensureError } from "../../src/protocol/errors.ts";

const ONLY_SEED = process.env["SIMULATION_SEED"];

/** The seed of the first schedule: SIMULATION_FIRST, so that many can be shared out among processes. */
const FIRST_SEED = Number(process.env["SIMULATION_FIRST"] ?? 1);

/** Whether SIMULATION_SEED asks for a single schedule, which need not show the rare things. */
export const RUNS_ONE_SEED: boolean = ONLY_SEED !== undefined;

/** How many schedules to run: SIMULATION_SCHEDULES, or as many as usual. */
export function scheduleCount(usual: number): number {
  return Number(process.env["SIMULATION_SCHEDULES"] ?? usual);
}

/** Time after which a test of so many schedules hangs; a schedule takes some 20 ms of an idle processor. */
export function scheduleTimeoutMs(schedules: number): number {
  return 60_000 + schedules * 1_000;
}

/** The seeds of so many schedules, which follow upon each other, or the only one asked for. */
export function seedsOf(schedules: number): number[] {
  if (ONLY_SEED !== undefined) return [Number(ONLY_SEED)];
  return Array.from({ length: schedules }, (_, i) => FIRST_SEED + i);
}

/**
 * Runs so many schedules, of seeds that follow upon each other, or the only one asked for. What it throws
 * says how to run the schedule that failed alone.
 */
export function runSeeds<Report>(schedules: number, run: (seed: number) => Report): Report[] {
  return seedsOf(schedules).map((seed) => {
    try {
      return run(seed);
    } catch (cause) {
      const text = cause instanceof Error ? cause.message : String(cause);
      throw new Error(`SIMULATION_SEED=${seed}: ${text}`, { cause });
    }
  });
}

/** What the oracles say of a defect: all that they found up to what is expected, newest last. */
export function findings(
  schedules: number,
  found: RegExp,
  run: (seed: number) => unknown,
): readonly string[] {
  const messages: string[] = [];
  for (let seed = 1; seed <= schedules; seed++) {
    try {
      run(seed);
    } catch (error) {
      messages.push(ensureError(error).message);
      if (found.test(messages.at(-1) ?? "")) break;
    }
  }
  return messages;
}
