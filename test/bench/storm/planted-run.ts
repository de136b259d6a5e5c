import type { JournalFacts } from "../../../bench/storm/journal-facts.ts";
import type { LearnerLine, LearnerLog } from "../../../bench/storm/learner-log.ts";
import type { Tally } from "../../../src/protocol/messages/contributions.ts";

/** What may be changed to plant a bug: the same as a run has, without `readonly`. */
export interface PlantedRun {
  readonly logs: { trainer: string; lines: LearnerLine[] }[];
  readonly facts: {
    contributions: Mutable<JournalFacts["contributions"][number]>[];
    rounds: (Mutable<JournalFacts["rounds"][number]> & { merged: MergedContribution[] })[];
    values: Map<string, string>;
    accounts: Map<string, Record<"processed" | "merged" | "late" | "dropped", Tally>[]>;
    writers: Set<string>;
    members: Mutable<JournalFacts["members"][number]>[];
    notWhole: number[];
  };
}

type Mutable<Type> = { -readonly [Key in keyof Type]: Type[Key] };
type MergedContribution = Mutable<JournalFacts["rounds"][number]["merged"][number]>;

const NOTHING = { contributions: 0, steps: 0, tokens: 0 };

/**
 * Makes a small run in which all is right: `a` gave the job its values; `a` and `b` took part in the first two rounds of
 * `f`; `b` was killed after it had contributed to the third, which is open, and was too late once after its restart.
 */
export function rightRun(): PlantedRun {
  const run: PlantedRun = {
    logs: [
      { trainer: "a", lines: [] },
      { trainer: "b", lines: [] },
    ],
    facts: {
      contributions: [],
      rounds: [],
      values: new Map([
        ["f 0", "of-a"],
        ["f 1", "one"],
        ["f 2", "two"],
      ]),
      accounts: new Map(),
      writers: new Set(["a"]),
      members: [],
      notWhole: [],
    },
  };
  write(run, "a", { event: "own", sums: { f: "of-a" } });
  write(run, "b", { event: "own", sums: { f: "of-b" } });
  for (const trainer of ["a", "b"]) {
    write(run, trainer, { event: "adopted", fragment: "f", version: 0, sum: "of-a", at: 0 });
  }
  for (const round of [1, 2]) {
    const closedMs = 1_000 * round;
    run.facts.rounds.push({ fragment: "f", round, closedMs, merged: [] });
    for (const trainer of ["a", "b"]) {
      contribute(run, trainer, round - 1, round);
      const sum = round === 1 ? "one" : "two";
      write(run, trainer, { event: "adopted", fragment: "f", version: round, sum, at: 5 });
    }
  }
  run.facts.rounds.push({ fragment: "f", round: 3, closedMs: undefined, merged: [] });
  contribute(run, "b", 2, 3);
  write(run, "b", { event: "own", sums: { f: "of-b-again" } }, 2);
  write(run, "b", { event: "adopted", fragment: "f", version: 2, sum: "two", at: 0 }, 2);
  contribute(run, "b", 2, undefined, 2);
  const none = { processed: NOTHING, merged: NOTHING, late: NOTHING, dropped: NOTHING };
  run.facts.accounts.set("a", [{ ...none, processed: tally(2), merged: tally(2) }, none]);
  const dropped = { contributions: 1, ...LATER_WORK };
  const processed = { contributions: 4, steps: 40, tokens: 4_010 };
  run.facts.accounts.set("b", [{ ...none, processed, merged: tally(2), dropped }, none]);
  return run;
}

/** The log of a trainer. */
export function logOf(run: PlantedRun, trainer: string): LearnerLog & { lines: LearnerLine[] } {
  const log = run.logs.find((each) => each.trainer === trainer);
  if (log === undefined) throw new Error(`no log of ${trainer}`);
  return log;
}

type Line = LearnerLine extends infer Each ? Omit<Each & LearnerLine, "life" | "timeMs"> : never;

function write(run: PlantedRun, trainer: string, line: object, life = 1): void {
  const { lines } = logOf(run, trainer);
  lines.push({ ...(line as Line), life, timeMs: 100 * lines.length } as LearnerLine);
}

const WORK = { steps: 10, tokens: 1_000 };
/** Of later lives. */
const LATER_WORK = { steps: 10, tokens: 1_010 };

function tally(contributions: number): Tally {
  const { steps, tokens } = WORK;
  return { contributions, steps: steps * contributions, tokens: tokens * contributions };
}

/** Sends a contribution, which counts in a round, or is too late. */
function contribute(
  run: PlantedRun,
  trainer: string,
  base: number,
  round: number | undefined,
  life = 1,
): void {
  const { facts } = run;
  const seq = facts.contributions.length + 1;
  const work = life === 1 ? WORK : LATER_WORK;
  const what = { fragment: "f", base, ...work };
  write(run, trainer, { event: "begun", ...what, at: 10 }, life);
  const code = round === undefined ? ("LATE" as const) : undefined;
  facts.contributions.push({ ...what, trainer, shard: 0, seq, timeMs: 10 * seq, round, code });
  facts.rounds[(round ?? 0) - 1]?.merged.push({ trainer, base, seq, ...work });
  write(run, trainer, { event: "acknowledged", ...what, round: round ?? null }, life);
}
