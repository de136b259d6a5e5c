// Proves the table of steps by itself: when a step closes and by what its sums are divided, who is rejected,
// that a plain restatement of the rules agrees in whatever order members enter, leave and end steps, that
// nobody waits for ever for members that have ended the step or have left, and that a saved table continues
// like the one from which it was saved.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { SavedSteps } from "../../../src/actors/fold/step-table.ts";
import { StepTable } from "../../../src/actors/fold/step-table.ts";
import { packValue, unpackValue } from "../../../src/protocol/codec.ts";
import { type Synchronization, toSynchronization } from "../../../src/protocol/config/index.ts";
import type { ErrorCode } from "../../../src/protocol/errors.ts";

/** More than any step here is ahead. */
const LEAD = 1_024;
const SYNC = toSynchronization({ mode: "sync", trainers: 2 });

function tableOf(synchronization: Synchronization = SYNC): StepTable {
  const table = new StepTable();
  table.synchronization = synchronization;
  return table;
}

/** A table with these members, who have started. */
function started(trainers: readonly string[], synchronization: Synchronization = SYNC): StepTable {
  const table = tableOf(synchronization);
  table.takeMembers({ verb: "members", revision: 1, started: true, trainers });
  return table;
}

function members(table: StepTable, revision: number, trainers: readonly string[], started = true) {
  table.takeMembers({ verb: "members", revision, started, trainers });
}

function refuses(run: () => void, code: ErrorCode, message?: RegExp): void {
  expect(run).toThrow(
    expect.objectContaining({
      code,
      ...(message === undefined ? {} : { message: expect.stringMatching(message) }),
    }),
  );
}

describe("a step", () => {
  test("closes when its last member has ended it, and counts who took part", () => {
    const table = started(["a", "b", "c"]);
    table.noteGradient("a");
    table.takeClock("a", 1, LEAD);
    table.takeClock("b", 1, LEAD);
    expect(table.close()).toBeUndefined();
    expect(table.waitingFor(16)).toEqual(["c"]);
    table.takeClock("c", 1, LEAD);
    expect(table.close()).toEqual({ divisor: 3 });
    expect(table.closed).toBe(1);
    expect(table.close()).toBeUndefined();
    expect(table.waitingFor(2)).toEqual(["a", "b"]);
  });

  test("does not close before the members have started, however far they are", () => {
    const table = tableOf();
    members(table, 1, ["a"], false);
    table.takeClock("a", 1, LEAD);
    expect(table.close()).toBeUndefined();
    members(table, 2, ["a", "b"], true);
    expect(table.close()).toBeUndefined();
    table.takeClock("b", 1, LEAD);
    expect(table.close()).toEqual({ divisor: 2 });
    // Started once is started for ever.
    members(table, 3, ["a"], false);
    table.takeClock("a", 2, LEAD);
    expect(table.close()).toEqual({ divisor: 1 });
  });

  test("closes without members that have left, whose gradients still count", () => {
    const table = started(["a", "b"]);
    table.noteGradient("b");
    table.takeClock("a", 1, LEAD);
    members(table, 2, ["a"]);
    expect(table.close()).toEqual({ divisor: 2 });
  });

  test("does not close without members; the last one to leave leaves it open for the next one to enter", () => {
    const table = started(["a"]);
    members(table, 2, []);
    expect(table.close()).toBeUndefined();
    members(table, 3, ["b"]);
    table.takeClock("b", 1, LEAD);
    expect(table.close()).toEqual({ divisor: 1 });
  });

  test("does not wait for what a late member never began", () => {
    const table = started(["a"]);
    table.takeClock("a", 5, LEAD);
    expect(table.close()).toEqual({ divisor: 1 });
    expect(table.closed).toBe(5);
    members(table, 2, ["a", "b"]);
    expect(table.waitingFor(16)).toEqual(["a", "b"]);
    table.takeClock("b", 6, LEAD);
    table.takeClock("a", 6, LEAD);
    table.close();
    expect(table.closed).toBe(6);
  });

  test("does not wait for the backups, and is divided by those who took part in it", () => {
    const table = started(
      ["a", "b", "c"],
      toSynchronization({ mode: "sync", trainers: 2, backups: 1 }),
    );
    table.noteGradient("c");
    table.takeClock("a", 1, LEAD);
    expect(table.close()).toBeUndefined();
    table.takeClock("b", 1, LEAD);
    expect(table.close()).toEqual({ divisor: 3 });
    table.takeClock("a", 2, LEAD);
    table.takeClock("b", 2, LEAD);
    expect(table.close()).toEqual({ divisor: 2 });
    // More may go than are backups: somebody has to be left.
    members(table, 2, ["c"]);
    table.takeClock("c", 2, LEAD);
    expect(table.close()).toBeUndefined();
    table.takeClock("c", 3, LEAD);
    expect(table.close()).toEqual({ divisor: 1 });
  });

  test("is divided by 1 where gradients are summed, and in ssp", () => {
    const sum = started(["a"], toSynchronization({ mode: "sync", trainers: 1, reduce: "sum" }));
    sum.noteGradient("z");
    sum.takeClock("a", 1, LEAD);
    expect(sum.close()).toEqual({ divisor: 1 });
    const ssp = started(["a", "b"], toSynchronization({ mode: "ssp", trainers: 2, staleness: 3 }));
    ssp.takeClock("a", 9, LEAD);
    ssp.takeClock("b", 4, LEAD);
    expect(ssp.close()).toEqual({ divisor: 1 });
    expect(ssp.closed).toBe(4);
  });
});

describe("members", () => {
  test("of a revision that is not newer are ignored", () => {
    const table = started(["a", "b"]);
    members(table, 1, ["a"]);
    expect(table.memberCount).toBe(2);
    members(table, 3, ["b", "a", "a"]);
    members(table, 2, []);
    expect(table.save().members).toEqual([
      ["a", 0],
      ["b", 0],
    ]);
    expect(table.revision).toBe(3);
  });

  test("are ignored in a job without steps", () => {
    const table = started(["a"], { mode: "async" });
    expect(table.revision).toBe(0);
    refuses(() => table.takeClock("a", 1, LEAD), "UNSUPPORTED");
  });
});

describe("a clock", () => {
  test("never goes back", () => {
    const table = started(["a", "b"]);
    table.takeClock("a", 3, LEAD);
    table.takeClock("a", 2, LEAD);
    expect(table.save().members).toEqual([
      ["a", 3],
      ["b", 0],
    ]);
  });

  test("of a trainer that is no member is rejected", () => {
    refuses(() => started(["a"]).takeClock("b", 1, LEAD), "NOT_MEMBER", /"b"/);
  });
});

describe("a gradient", () => {
  test("belongs to the open step of a member", () => {
    const table = started(["a"]);
    table.checkGradient("a", 1);
    refuses(() => table.checkGradient("b", 1), "NOT_MEMBER");
    refuses(() => table.checkGradient("a", 2), "EARLY", /expected the open one, 1; received 2/);
    table.takeClock("a", 1, LEAD);
    table.close();
    refuses(() => table.checkGradient("a", 1), "LATE", /expected the open one, 2; received 1/);
    refuses(() => table.checkGradient("a", undefined), "BAD_VALUE");
  });

  test("names no step where steps are not applied", () => {
    for (const synchronization of [
      toSynchronization(),
      toSynchronization({ mode: "ssp", trainers: 1, staleness: 0 }),
    ]) {
      const table = started(["a"], synchronization);
      table.checkGradient("z", undefined);
      refuses(() => table.checkGradient("a", 1), "BAD_VALUE");
    }
  });
});

// The rules once more in the plainest form.
class Plain {
  clocks = new Map<string, number>();
  sent = new Set<string>();
  closed = 0;
  started = false;
  divisors: number[] = [];
  readonly #sync: Synchronization & { mode: "sync" | "ssp" };

  constructor(synchronization: Synchronization & { mode: "sync" | "ssp" }) {
    this.#sync = synchronization;
  }

  evaluate(): void {
    const backups = this.#sync.mode === "sync" ? this.#sync.backups : 0;
    while (this.started && this.clocks.size > 0) {
      const ended = [...this.clocks].filter(([, clock]) => clock >= this.closed + 1);
      if (ended.length < Math.max(1, this.clocks.size - backups)) return;
      if (this.sent.size > 0) {
        const mean = this.#sync.mode === "sync" && this.#sync.reduce === "mean";
        this.divisors.push(mean ? new Set([...ended.map(([id]) => id), ...this.sent]).size : 1);
      }
      this.sent.clear();
      this.closed += 1;
    }
  }
}

const ids = ["a", "b", "c"];
type Step =
  | { readonly type: "members"; readonly trainers: readonly string[] }
  | { readonly type: "clock" | "gradient"; readonly trainer: string; readonly by: number };
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    {
      weight: 1,
      arbitrary: fc.record({ type: fc.constant("members" as const), trainers: fc.subarray(ids) }),
    },
    {
      weight: 6,
      arbitrary: fc.record({
        type: fc.constantFrom("clock" as const, "gradient" as const),
        trainer: fc.constantFrom(...ids),
        by: fc.integer({ min: -1, max: 3 }),
      }),
    },
  ),
  { minLength: 20, maxLength: 60, size: "max" },
);
const synchronizations = fc
  .oneof(
    fc.record({
      mode: fc.constant("sync" as const),
      trainers: fc.integer({ min: 1, max: 3 }),
      backups: fc.integer({ min: 0, max: 2 }),
      reduce: fc.constantFrom("mean" as const, "sum" as const),
    }),
    fc.record({
      mode: fc.constant("ssp" as const),
      trainers: fc.integer({ min: 1, max: 3 }),
      staleness: fc.nat(2),
    }),
  )
  .map((input) => toSynchronization(input) as Synchronization & { mode: "sync" | "ssp" });

/** Lets both take a step; gives what each refused it with, and the divisors of the table's closes. */
class Pair {
  readonly table: StepTable;
  readonly plain: Plain;
  readonly divisors: number[] = [];
  readonly #trainers: number;
  #revision = 0;

  constructor(synchronization: Synchronization & { mode: "sync" | "ssp" }) {
    this.table = tableOf(synchronization);
    this.plain = new Plain(synchronization);
    this.#trainers = synchronization.trainers;
  }

  take(step: Step): void {
    const { table, plain } = this;
    if (step.type === "members") {
      plain.started ||= step.trainers.length >= this.#trainers;
      const clocks = step.trainers.map((id) => [id, plain.clocks.get(id) ?? plain.closed] as const);
      plain.clocks = new Map(clocks);
      members(table, ++this.#revision, step.trainers, plain.started);
    } else if (step.type === "clock") {
      const at = plain.closed + step.by;
      const clock = plain.clocks.get(step.trainer);
      if (clock !== undefined) plain.clocks.set(step.trainer, Math.max(clock, at));
      if (clock === undefined) refuses(() => table.takeClock(step.trainer, at, LEAD), "NOT_MEMBER");
      else table.takeClock(step.trainer, at, LEAD);
    } else if (table.synchronization.mode === "sync" && plain.clocks.has(step.trainer)) {
      table.checkGradient(step.trainer, plain.closed + 1);
      table.noteGradient(step.trainer);
      plain.sent.add(step.trainer);
    }
    const hadGradients = table.save().participants.length > 0;
    const closed = table.close();
    if (closed !== undefined && hadGradients) this.divisors.push(closed.divisor);
    plain.evaluate();
  }
}

describe("whatever happens", () => {
  test("the table does what the plain rules say", () => {
    fc.assert(
      fc.property(synchronizations, steps, (synchronization, all) => {
        const pair = new Pair(synchronization);
        for (const step of all) {
          pair.take(step);
          expect(pair.table.closed).toBe(pair.plain.closed);
          expect(pair.table.save().members).toEqual([...pair.plain.clocks].sort());
          const behind = [...pair.plain.clocks].filter(([, clock]) => clock <= pair.plain.closed);
          expect(pair.table.waitingFor(16)).toEqual(behind.map(([id]) => id).sort());
        }
        expect(pair.divisors).toEqual(pair.plain.divisors);
      }),
      { numRuns: 400 },
    );
  });

  test("nobody waits for ever: once every member has ended the open step, or is gone, it closes", () => {
    fc.assert(
      fc.property(synchronizations, steps, fc.subarray(ids), (synchronization, all, gone) => {
        const pair = new Pair(synchronization);
        pair.take({ type: "members", trainers: ids });
        for (const step of all) pair.take(step);
        const { table } = pair;
        const open = table.closed + 1;
        for (const id of ids) {
          if (!gone.includes(id)) pair.take({ type: "clock", trainer: id, by: 1 });
        }
        const left = ids.filter((id) => table.clockOf(id) !== undefined && !gone.includes(id));
        pair.take({ type: "members", trainers: left });
        if (left.length === 0) expect(table.waitingFor(16)).toEqual([]);
        else expect(table.closed).toBeGreaterThanOrEqual(open);
      }),
      { numRuns: 400 },
    );
  });

  test("a saved table continues like the one from which it was saved", () => {
    fc.assert(
      fc.property(synchronizations, steps, fc.nat(60), (synchronization, all, cut) => {
        const pair = new Pair(synchronization);
        for (const step of all.slice(0, cut)) pair.take(step);
        const saved = unpackValue(packValue(pair.table.save())) as SavedSteps;
        const again = tableOf(synchronization);
        again.restore(saved);
        expect(packValue(again.save())).toEqual(packValue(pair.table.save()));
        members(again, 1_000, ids);
        members(pair.table, 1_000, ids);
        for (const id of ids) {
          again.takeClock(id, 7, LEAD);
          pair.table.takeClock(id, 7, LEAD);
          expect(again.close()).toEqual(pair.table.close());
        }
        expect(again.save()).toEqual(pair.table.save());
      }),
      { numRuns: 200 },
    );
  });
});

describe("restore refuses", () => {
  const good: SavedSteps = {
    revision: 2,
    started: true,
    closed: 3,
    members: [
      ["a", 4],
      ["b", 3],
    ],
    participants: ["a"],
  };

  test("nothing that was saved", () => {
    const table = tableOf();
    table.restore(good);
    expect(table.save()).toEqual(good);
  });

  test.each<[string, Partial<SavedSteps>, Synchronization?]>([
    ["members out of order", { members: [...good.members].reverse() }],
    [
      "a member twice",
      {
        members: [
          ["a", 4],
          ["a", 3],
        ],
      },
    ],
    ["participants out of order", { participants: ["b", "a"] }],
    ["closed steps before the start", { started: false }],
    ["a step that ought to have closed", { members: [["a", 4]] }],
    ["members before any were told", { revision: 0 }],
    ["members of a job without steps", {}, { mode: "async" }],
    ["participants in ssp", {}, toSynchronization({ mode: "ssp", trainers: 2, staleness: 0 })],
  ])("%s", (_what, changes, synchronization) => {
    const table = tableOf(synchronization);
    refuses(() => table.restore({ ...good, ...changes }), "SNAPSHOT_DAMAGED");
  });
});
