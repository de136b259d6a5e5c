// Proves that the checker of the storm passes a run in which all is right, and finds each kind of bug that is planted into
// it: what a server might have done to contributions, rounds, accounts and values, and what a learner might have adopted.
import { describe, expect, test } from "vitest";
import { checkRun, type Finding } from "../../../bench/storm/check.ts";
import { parseLearnerLog } from "../../../bench/storm/learner-log.ts";
import { logOf, type PlantedRun, rightRun } from "./planted-run.ts";

/** What the checker finds after a bug was planted into a run in which all was right. */
function found(plant: (run: PlantedRun) => void): Finding[] {
  const run = rightRun();
  plant(run);
  return checkRun(run.logs, run.facts);
}

function kinds(plant: (run: PlantedRun) => void): string[] {
  return [...new Set(found(plant).map(({ kind }) => kind))].sort();
}

/** Counts more or less of a fate in the account of a trainer. */
function miscount(
  { facts }: PlantedRun,
  trainer: string,
  fate: "processed" | "merged" | "dropped",
  change: Partial<Record<"contributions" | "steps" | "tokens", number>>,
): void {
  const account = facts.accounts.get(trainer)?.[0];
  if (account === undefined) throw new Error(`no account of ${trainer}`);
  const { contributions, steps, tokens } = account[fate];
  account[fate] = {
    contributions: contributions + (change.contributions ?? 0),
    steps: steps + (change.steps ?? 0),
    tokens: tokens + (change.tokens ?? 0),
  };
}

test("a run in which all is right passes", () => {
  expect(found(() => undefined)).toEqual([]);
});

describe("contributions", () => {
  test("one that was acknowledged and is in no round is lost", () => {
    const plant = ({ facts }: PlantedRun): void => {
      facts.rounds[1]?.merged.pop();
    };
    expect(kinds(plant)).toEqual(["account", "lost"]);
    expect(found(plant)[0]?.text).toContain("b: contribution to f from version 1");
  });

  test("one is lost whose record and place are both missing, with an account that agrees", () => {
    expect(
      kinds((run) => {
        const { facts } = run;
        facts.contributions = facts.contributions.filter(({ seq }) => seq !== 4);
        facts.rounds[1]?.merged.pop();
        for (const fate of ["processed", "merged"] as const) {
          miscount(run, "b", fate, { contributions: -1, steps: -10, tokens: -1_000 });
        }
      }),
    ).toEqual(["lost"]);
  });

  test("one that is in two rounds, or twice in one, is doubled", () => {
    for (const round of [0, 1]) {
      const plant = ({ facts }: PlantedRun): void => {
        const again = facts.rounds[0]?.merged[0];
        if (again !== undefined) facts.rounds[round]?.merged.push({ ...again });
      };
      expect(kinds(plant)).toContain("doubled");
    }
  });

  test("two of one trainer from one version are doubled, even if they are not alike", () => {
    const plant = ({ facts }: PlantedRun): void => {
      const first = facts.rounds[0]?.merged[0];
      if (first !== undefined) facts.rounds[1]?.merged.push({ ...first, steps: 3, seq: 99 });
    };
    expect(kinds(plant)).toEqual(["account", "doubled", "misplaced", "unknown"]);
  });

  test("one that nobody has sent is unknown", () => {
    expect(
      kinds((run) => {
        const log = logOf(run, "a");
        log.lines = log.lines.filter((line) => !(line.event === "begun" && line.base === 1));
      }),
    ).toEqual(["unknown"]);
  });

  test("one in another round than its learner was told is misplaced", () => {
    expect(
      kinds((run) => {
        logOf(run, "a").lines = logOf(run, "a").lines.map((line) =>
          line.event === "acknowledged" && line.base === 1 ? { ...line, round: 3 } : line,
        );
      }),
    ).toEqual(["misplaced"]);
  });

  test("one that was called late, of which the journal knows nothing, is lost", () => {
    expect(
      kinds((run) => {
        logOf(run, "a").lines = logOf(run, "a").lines.map((line) =>
          line.event === "acknowledged" && line.base === 1
            ? { ...line, base: 2, round: null }
            : line,
        );
      }),
    ).toEqual(["lost"]);
  });

  test("one that was sent, and killed before it was acknowledged, may count or not", () => {
    expect(
      found((run) => {
        const log = logOf(run, "b");
        log.lines = log.lines.filter(
          (line) => !(line.event === "acknowledged" && line.base === 2 && line.life === 1),
        );
        log.lines.push({
          ...{ event: "begun", fragment: "f", base: 2, steps: 7, tokens: 70, at: 1 },
          ...{ life: 2, timeMs: 5_000 },
        });
      }),
    ).toEqual([]);
  });
});

test.each(["processed", "merged", "dropped"] as const)(
  "an account whose %s is wrong by one contribution, step or token is found",
  (fate) => {
    for (const what of ["contributions", "steps", "tokens"]) {
      expect(kinds((run) => miscount(run, "b", fate, { [what]: 1 }))).toEqual(["account"]);
    }
  },
);

test("an account of nobody, and one that is missing, are found", () => {
  expect(kinds(({ facts }) => facts.accounts.delete("b"))).toEqual(["account"]);
  const account = rightRun().facts.accounts.get("a") ?? [];
  expect(kinds(({ facts }) => facts.accounts.set("c", account))).toEqual(["account"]);
});

describe("values", () => {
  /** Changes what a learner says that it has adopted last. */
  function adopt(run: PlantedRun, trainer: string, changed: object): void {
    const { lines } = logOf(run, trainer);
    const at = lines.findLastIndex(({ event }) => event === "adopted");
    const line = lines[at];
    if (line !== undefined) lines[at] = { ...line, ...changed };
  }

  test("a version with one other byte, or that the journal has not, is found", () => {
    expect(kinds((run) => adopt(run, "a", { sum: "twp" }))).toEqual(["value"]);
    expect(kinds((run) => adopt(run, "a", { version: 4 }))).toEqual(["value"]);
    expect(kinds(({ facts }) => facts.values.set("f 2", "twp"))).toEqual(["value"]);
  });

  test("first values of a learner that was started later are found, whoever adopts them", () => {
    for (const sum of ["of-b", "of-b-again"]) {
      for (const trainer of ["a", "b"]) {
        expect(kinds((run) => adopt(run, trainer, { sum }))).toContain("own");
      }
    }
    expect(kinds((run) => adopt(run, "b", { sum: "of-a" }))).toContain("own");
  });

  test("first values of a learner that the job itself has are found", () => {
    const plant = ({ facts }: PlantedRun): void => {
      facts.values.set("f 3", "of-b-again");
    };
    expect(kinds(plant)).toEqual(["own"]);
    expect(kinds(({ facts }) => facts.values.set("f 0", "of-b"))).toContain("own");
  });

  test("a second trainer that gives the job values is found", () => {
    expect(kinds(({ facts }) => facts.writers.add("b"))).toEqual(["writer"]);
    expect(kinds(({ facts }) => facts.writers.clear())).toContain("writer");
  });

  test("an earlier version after a later one, or the same again in one life, is a fall back", () => {
    const again = (life: number, version: number) => (run: PlantedRun) => {
      const sum = version === 1 ? "one" : "two";
      const line = { event: "adopted", fragment: "f", version, sum, at: 9 } as const;
      logOf(run, "a").lines.push({ ...line, life, timeMs: 9_000 });
    };
    expect(kinds(again(1, 1))).toEqual(["fallback"]);
    expect(kinds(again(2, 1))).toEqual(["fallback"]);
    expect(kinds(again(1, 2))).toEqual(["fallback"]);
    expect(kinds(again(2, 2))).toEqual([]);
  });
});

test("a journal that was replaced is found", () => {
  expect(kinds(({ facts }) => facts.notWhole.push(3))).toEqual(["journal"]);
});

test("a log loses a last line that a kill has cut off, and nothing else", () => {
  const whole = '{"event":"steps","steps":24,"life":1,"timeMs":5}';
  const { lines } = parseLearnerLog("a", `${whole}\n{"event":"adop`);
  expect(lines).toEqual([{ event: "steps", steps: 24, life: 1, timeMs: 5 }]);
  expect(parseLearnerLog("a", "").lines).toEqual([]);
});
