// Proves that nothing is lost, counted twice or made up in a storm: learners in Python are killed, stopped and cut off, hosts
// and the broker are killed, and what the learners have written down is what the journals fold to, byte for byte. Then
// the same checker finds what is planted into that very run. Nothing here depends on how long anything takes.
import { afterAll, beforeAll, expect, test } from "vitest";
import { checkRun } from "../../../bench/storm/check.ts";
import { measureRun, type RunRecord } from "../../../bench/storm/figures.ts";
import type { LearnerLine, LearnerLog } from "../../../bench/storm/learner-log.ts";
import { stormJob } from "../../../bench/storm/options.ts";
import { runStorm } from "../../../bench/storm/run-storm.ts";
import { FAULT_KINDS, planStorm } from "../../../bench/storm/schedule.ts";
import { Random } from "../../simulation/random.ts";
import { HANG_MS } from "../../support/limits.ts";

const LEARNERS = 8;
const SIZE = { durationMs: 40_000, learners: LEARNERS, hosts: 2 };
/** Of learners: two of each kind. */
const FAULTS = { learnerFaults: 6, hostKills: 1, brokerKills: 1 };

const told: string[] = [];
const hang = new AbortController();
let record: RunRecord;

beforeAll(async () => {
  const faults = planStorm({ ...SIZE, ...FAULTS }, new Random(1));
  expect(new Set(faults.map(({ kind }) => kind))).toEqual(new Set(FAULT_KINDS));
  const timer = setTimeout(() => hang.abort(new Error(`hangs: ${told.join("\n")}`)), HANG_MS);
  record = await runStorm({
    place: { learners: LEARNERS, hosts: SIZE.hosts, seed: 1, ...stormJob(LEARNERS / 2) },
    ...{ durationMs: SIZE.durationMs, faults, signal: hang.signal },
    log: (line) => told.push(line),
  });
  clearTimeout(timer);
});

afterAll(() => hang.abort());

test("the logs of all learners are what the journals fold to, and every learner comes back", () => {
  expect(checkRun(record.logs, record.facts)).toEqual([]);
  const { recoveryMs, resumptionMs } = measureRun(record);
  expect([recoveryMs.length, resumptionMs.length]).toEqual([2, 4]);
  expect([...recoveryMs, ...resumptionMs].every(Number.isFinite)).toBe(true);
  const closes = record.facts.rounds.map(({ closedMs = 0 }) => closedMs);
  const kills = record.timeline.flatMap(({ what, timeMs }) =>
    what.endsWith("killed") ? [timeMs] : [],
  );
  expect(kills).toHaveLength(4);
  for (const killedMs of kills) expect(Math.max(...closes)).toBeGreaterThan(killedMs);
});

/** The logs with a line changed: the last one that suits. */
function withLine(
  suits: (line: LearnerLine) => boolean,
  change: (line: LearnerLine) => LearnerLine[],
): LearnerLog[] {
  const at = record.logs.findIndex(({ lines }) => lines.some(suits));
  return record.logs.map(({ trainer, lines }, i) => {
    if (i !== at) return { trainer, lines };
    const last = lines.findLastIndex(suits);
    return { trainer, lines: lines.flatMap((line, j) => (j === last ? change(line) : [line])) };
  });
}

const isCounted = (line: LearnerLine): boolean =>
  line.event === "acknowledged" && line.round !== null;
const isAdopted = (line: LearnerLine): boolean => line.event === "adopted";

/** The kinds of what is found in the run if its logs or its journals were others. */
function kinds(logs: readonly LearnerLog[], facts: Partial<RunRecord["facts"]> = {}): string[] {
  return checkRun(logs, { ...record.facts, ...facts }).map(({ kind }) => kind);
}

test("a lost, doubled or misplaced contribution, a wrong account, and another byte would be found", () => {
  const { logs, facts } = record;
  const doubled = facts.rounds.map((round, i) =>
    i === 1 ? { ...round, merged: [...round.merged, ...round.merged.slice(0, 1)] } : round,
  );
  expect(kinds(logs, { rounds: doubled })).toContain("doubled");
  const short = facts.rounds.map((round, i) =>
    i === 1 ? { ...round, merged: round.merged.slice(1) } : round,
  );
  expect(kinds(logs, { rounds: short })).toContain("lost");
  const invented = withLine(isCounted, (line) => [
    line,
    { ...line, ...{ base: 1, steps: 999 } } as LearnerLine,
  ]);
  expect(kinds(invented)).toEqual(["lost"]);
  const misplaced = withLine(isCounted, (line) => [{ ...line, ...{ round: 1 } } as LearnerLine]);
  expect(kinds(misplaced)).toEqual(["misplaced"]);
  const [trainer, accounts] = [...facts.accounts][0] ?? ["", []];
  const wrong = accounts.map((account) => ({ ...account, merged: account.late }));
  expect(kinds(logs, { accounts: new Map([...facts.accounts, [trainer, wrong]]) })).toContain(
    "account",
  );
  const sum = "0".repeat(64);
  expect(kinds(withLine(isAdopted, (line) => [{ ...line, ...{ sum } } as LearnerLine]))).toEqual([
    "value",
  ]);
});

test("the first values of a learner that came later would be found in another one", () => {
  const later = record.logs.flatMap(({ trainer, lines }) =>
    lines.flatMap((line) =>
      line.event === "own" && !record.facts.writers.has(trainer) ? Object.values(line.sums) : [],
    ),
  );
  expect(later.length).toBeGreaterThan(LEARNERS);
  const sum = later.at(-1);
  const adopting = withLine(isAdopted, (line) => [{ ...line, ...{ sum } } as LearnerLine]);
  expect(kinds(adopting).sort()).toEqual(["own", "value"]);
});
