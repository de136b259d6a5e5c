// Proves how a storm is planned and measured: which faults befall whom and when, which learners count as present in a round,
// and what the figures and the report make of times and contributions.
import { describe, expect, test } from "vitest";
import { measureRun, type RunRecord } from "../../../bench/storm/figures.ts";
import type { LearnerLog } from "../../../bench/storm/learner-log.ts";
import { readStormOptions } from "../../../bench/storm/options.ts";
import { reportRun } from "../../../bench/storm/report.ts";
import { FAULT_KINDS, planStorm, type StormSize } from "../../../bench/storm/schedule.ts";
import type { TimelineEvent } from "../../../bench/storm/timeline.ts";
import { Random } from "../../simulation/random.ts";

const SIZE: StormSize = {
  ...{ durationMs: 300_000, learners: 16, hosts: 2 },
  ...{ learnerFaults: 11, hostKills: 2, brokerKills: 1 },
};

describe("a plan", () => {
  test("has all faults of every kind, in time, and again for the same seed", () => {
    const plan = planStorm(SIZE, new Random(7));
    expect(planStorm(SIZE, new Random(7))).toEqual(plan);
    expect(planStorm(SIZE, new Random(8))).not.toEqual(plan);
    const counts = FAULT_KINDS.map((kind) => plan.filter((fault) => fault.kind === kind).length);
    expect(counts).toEqual([4, 4, 3, 2, 1]);
    expect(plan.map(({ atMs }) => atMs)).toEqual(
      plan.map(({ atMs }) => atMs).sort((a, b) => a - b),
    );
    for (const { atMs, lastsMs } of plan) {
      expect(atMs).toBeGreaterThan(0);
      expect(atMs + lastsMs).toBeLessThan(SIZE.durationMs);
    }
    const killed = plan.flatMap((fault) => (fault.kind === "kill" ? [fault.newId] : []));
    expect(new Set(killed)).toEqual(new Set([true, false]));
    const hosts = plan.flatMap((fault) => (fault.kind === "kill-host" ? [fault.host] : []));
    expect(hosts.sort()).toEqual([0, 1]);
  });

  test("never gives a learner two faults at one time", () => {
    for (let seed = 0; seed < 50; seed++) {
      const faults = planStorm({ ...SIZE, learners: 4 }, new Random(seed));
      for (const [i, one] of faults.entries()) {
        for (const other of faults.slice(i + 1)) {
          if (!("learner" in one) || !("learner" in other)) continue;
          if (one.learner !== other.learner) continue;
          expect(other.atMs).toBeGreaterThan(one.atMs + one.lastsMs);
        }
      }
    }
  });
});

/** A run of two learners; the second one is killed at 2,000 and has the job's values again at 3,500, under another id. */
function run(changes: Partial<RunRecord> = {}): RunRecord {
  const timeline: TimelineEvent[] = [
    { timeMs: 0, what: "started", learner: 0, trainer: "a" },
    { timeMs: 0, what: "started", learner: 1, trainer: "b" },
    { timeMs: 2_000, what: "killed", learner: 1, trainer: "b" },
    { timeMs: 3_000, what: "started", learner: 1, trainer: "b-2" },
  ];
  const adopted = (trainer: string, timeMs: number): LearnerLog => ({
    trainer,
    lines: [{ event: "adopted", fragment: "f", version: 0, sum: "", at: 0, life: 1, timeMs }],
  });
  const rounds: [closedMs: number, ...trainers: string[]][] = [
    [1_000, "a", "b"],
    [1_900, "a"],
    [2_500, "a"],
    [3_600, "a"],
    [4_500, "a", "b-2"],
  ];
  const work = { fragment: "f", shard: 0, steps: 10, tokens: 10, code: undefined };
  const contributions = rounds.flatMap(([closedMs, ...trainers], i) =>
    trainers.map((trainer, j) => {
      const place = { base: i, round: i + 1, seq: 10 * i + j, timeMs: closedMs - 100 };
      return { ...work, trainer, ...place };
    }),
  );
  return {
    ...{ fromMs: 500, untilMs: 5_000, timeline },
    logs: [adopted("a", 100), adopted("b", 100), adopted("b-2", 3_500)],
    facts: {
      contributions: [
        ...contributions,
        {
          ...work,
          trainer: "b",
          base: 1,
          steps: 20,
          seq: 99,
          timeMs: 1_950,
          round: undefined,
          code: "LATE",
        },
      ],
      rounds: rounds.map(([closedMs, ...trainers], i) => ({
        ...{ fragment: "f", round: i + 1, closedMs },
        merged: contributions.filter(
          (each) => each.round === i + 1 && trainers.includes(each.trainer),
        ),
      })),
      ...{ values: new Map(), accounts: new Map(), writers: new Set(), members: [], notWhole: [] },
    },
    ...changes,
  };
}

test("a learner counts in a round if it was there from one close to the next", () => {
  const found = measureRun(run());
  expect(found.rounds).toBe(5);
  // Of both in the first and second round, of one in the next two, and of both in the last.
  expect(found.participation).toBeCloseTo((1 + 0.5 + 1 + 1 + 1) / 5);
  expect(found.leastParticipation).toBe(0.5);
  expect(found.longestGapMs).toBe(1_100);
  expect(found.droppedShare).toBeCloseTo(20 / 90);
  expect(found.stepsEach).toEqual({ min: 10, max: 20, median: 10 });
});

test("rounds outside of the time that counts do not count", () => {
  expect(measureRun(run({ fromMs: 1_500, untilMs: 4_500 })).rounds).toBe(3);
});

test("a learner is absent while it is stopped or cut off, and comes back with what counts next", () => {
  const event = (timeMs: number, what: "stopped" | "continued" | "cut" | "joined") => {
    return { timeMs, what, learner: 0, trainer: "a" } as const;
  };
  const { timeline } = run();
  const stopped = [...timeline, event(1_200, "stopped"), event(1_300, "continued")];
  const found = measureRun(run({ timeline: stopped }));
  expect(found.resumptionMs).toEqual([500]);
  expect(found.recoveryMs).toEqual([1_400]);
  // Only the other one could take part in the second round, and did not.
  expect(found.leastParticipation).toBe(0);
  const cut = [...timeline, event(4_600, "cut"), event(4_700, "joined")];
  expect(measureRun(run({ timeline: cut })).resumptionMs).toEqual([Number.POSITIVE_INFINITY]);
});

test("the report says which aims were met, and what the checker found", () => {
  const options = readStormOptions(["--minutes", "1"]);
  if ("help" in options) throw new Error("expected options");
  const calm = {
    figures: measureRun(run({ timeline: run().timeline.slice(0, 2) })),
    isRight: true,
  };
  const storm = { figures: { ...measureRun(run()), rounds: 4 }, isRight: false };
  const lines = reportRun("a machine", options, calm, storm).split("\n");
  const line = (begin: string): string | undefined =>
    lines.find((each) => each.startsWith(`| ${begin}`))?.replaceAll(/ +/g, " ");
  expect(line("closed rounds")).toBe("| closed rounds | 5 | 4 (80.0 %) | ≥ 97.7 % | missed |");
  expect(line("restart to next")).toContain("| 1.4 s, 1.4 s | < 15.0 s | met |");
  expect(line("checks")).toBe("| checks | passed | failed | passed | missed |");
});

test("options have defaults, and others are refused by name", () => {
  const found = readStormOptions([]);
  expect(found).toMatchObject({ minutes: 5, learners: 16, hosts: 2, seed: 1, faultsAnHour: 125 });
  expect(found).toMatchObject({ hostKills: 2, brokerKills: 1, hostFlags: ["--quorum", "8"] });
  expect(readStormOptions(["--quorum", "3"])).toMatchObject({ hostFlags: ["--quorum", "3"] });
  expect(readStormOptions(["--help"])).toHaveProperty("help");
  expect(() => readStormOptions(["--learners", "1"])).toThrow("--learners: expected a number of 2");
  expect(() => readStormOptions(["--minutes", "soon"])).toThrow("--minutes: expected a number");
  expect(() => readStormOptions(["--wind"])).toThrow("--wind");
});
