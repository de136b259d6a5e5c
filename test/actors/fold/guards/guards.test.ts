// Proves what guards do with gradients of every form: what is above the limit is rejected, clipped or set aside, with norm
// and limit in the outcome, and what follows is judged by the norms before, of the trainer or of all. That a shard restored
// between any two records goes on as if it had folded them all.
import { describe, expect, test } from "vitest";
import { Shard } from "../../../../src/actors/fold/shard.ts";
import { packValue, unpackValue } from "../../../../src/protocol/codec.ts";
import type { GuardInput, SynchronizationInput } from "../../../../src/protocol/config/index.ts";
import type { Outcome } from "../../../../src/protocol/messages/outcomes.ts";
import { elementsOf, Folded, limitedRules } from "../folded.ts";
import { type PushInput, SHARD, SUBJECTS } from "../journal-writer.ts";

const NONE = { optimizer: "none" } as const;

/** A guard that judges by the third norm on, and lets up to twice the median pass. */
const TWICE: GuardInput = { factor: 2, window: 8, warmup: 2 };

/** A shard with a guarded parameter `w` of 4 elements, all 0, to which gradients are added as they are. */
class GuardedJob extends Folded {
  constructor(
    guard: GuardInput,
    {
      synchronization,
      config = NONE,
    }: { synchronization?: SynchronizationInput; config?: object } = {},
  ) {
    super(synchronization);
    this.journal.init(new Float32Array(4), { config: { ...config, guard }, shape: [4, 1] });
    this.apply();
  }

  /** Pushes a gradient of this norm, all in the first element; returns the outcome. */
  push(norm: number, input: PushInput = {}, step?: number): Outcome {
    const operation =
      step === undefined ? ({ op: "grad" } as const) : ({ op: "grad", step } as const);
    this.journal.push(Float32Array.of(norm, 0, 0, 0), operation, input);
    return this.run().at(-1) as Outcome;
  }

  /** Pushes two gradients of norm 1, by which later ones are judged. */
  warm(input: PushInput = {}): this {
    for (let i = 0; i < 2; i++) expect(this.push(1, input)).not.toHaveProperty("guard");
    return this;
  }

  values(parameter = "w"): number[] {
    return [...elementsOf(this.block(parameter).values(), Float32Array)];
  }
}

describe("a gradient above the limit", () => {
  test("is rejected with its norm and the limit, and changes nothing", () => {
    const job = new GuardedJob(TWICE).warm();
    const outcome = job.push(5);
    expect(outcome).toMatchObject({ code: "GUARDED", version: 0 });
    expect(outcome.message).toBe(
      '"w" block 0: expected a norm of at most 2, as the median of the 2 before is 1; received 5',
    );
    expect(job.values()).toEqual([2, 0, 0, 0]);
    expect(job.push(2)).not.toHaveProperty("code");
    expect(job.values()).toEqual([4, 0, 0, 0]);
  });

  test("is clipped to the limit", () => {
    const job = new GuardedJob({ ...TWICE, action: "clip" }).warm();
    expect(job.push(8)).toMatchObject({ version: 4, guard: { action: "clip", norm: 8, limit: 2 } });
    expect(job.values()).toEqual([4, 0, 0, 0]);
  });

  test("is set aside: acknowledged, and not applied", () => {
    const job = new GuardedJob({ ...TWICE, action: "set-aside" }).warm();
    const outcome = job.push(8);
    expect(outcome).toMatchObject({
      version: 3,
      guard: { action: "set-aside", norm: 8, limit: 2 },
    });
    expect(outcome).not.toHaveProperty("code");
    expect(job.block().version).toBe(3);
    expect(job.values()).toEqual([2, 0, 0, 0]);
  });

  test("passes while the history is too short", () => {
    const job = new GuardedJob(TWICE);
    expect(job.push(1)).not.toHaveProperty("code");
    expect(job.push(1000)).not.toHaveProperty("code");
    expect(job.push(1000).code).toBe("GUARDED");
  });

  test("enters the history at the limit, so that a lasting rise is followed", () => {
    const job = new GuardedJob({ factor: 2, window: 3, warmup: 2 }).warm();
    job.push(1);
    const refused = Array.from({ length: 12 }, () => job.push(6).code);
    expect(refused.indexOf(undefined)).toBeGreaterThan(2);
    expect(refused.at(-1)).toBeUndefined();
  });

  test("of norm 0 is passed over by the history", () => {
    const job = new GuardedJob(TWICE).warm();
    for (let i = 0; i < 20; i++) job.push(0);
    expect(job.push(1.5)).not.toHaveProperty("code");
    expect(job.push(5).code).toBe("GUARDED");
  });
});

test("elements that are not finite are rejected as such, whatever the guard does with others", () => {
  for (const action of ["reject", "clip", "set-aside"] as const) {
    const job = new GuardedJob({ ...TWICE, action }).warm();
    expect(job.push(Number.NaN, { norm: null }).code).toBe("NON_FINITE");
    expect(job.push(Infinity, { norm: null }).code).toBe("NON_FINITE");
    expect(job.push(1)).not.toHaveProperty("code");
  }
});

test("float64 whose squares are too large for a norm are rejected as not finite", () => {
  const job = new Folded();
  job.journal.init(new Float64Array(1), { config: { ...NONE, guard: TWICE } });
  job.journal.push(Float64Array.of(1e200), { op: "grad" }, { norm: null });
  expect(job.run().at(-1)).toMatchObject({ code: "NON_FINITE" });
});

describe("the history", () => {
  test("of a trainer is its own", () => {
    const job = new GuardedJob(TWICE).warm();
    for (let i = 0; i < 2; i++)
      expect(job.push(100, { trainer: "bob" })).not.toHaveProperty("code");
    expect(job.push(100, { trainer: "bob" })).not.toHaveProperty("code");
    expect(job.push(3).code).toBe("GUARDED");
  });

  test("of a cohort is that of all: a trainer that spikes is found by the norms of the others", () => {
    const job = new GuardedJob({ ...TWICE, history: "cohort" }).warm();
    for (let i = 0; i < 6; i++) {
      expect(job.push(50, { trainer: "mallory" }).code).toBe("GUARDED");
      for (const trainer of ["alice", "bob", "carol"]) {
        expect(job.push(1, { trainer })).not.toHaveProperty("code");
      }
    }
  });

  test("of a trainer that leaves is forgotten, that of a cohort is not", () => {
    for (const history of ["trainer", "cohort"] as const) {
      const job = new GuardedJob({ ...TWICE, history }).warm({ trainer: "bob", session: 3 });
      expect(job.shard.saveState().norms).toHaveLength(1);
      job.journal.host({ verb: "sessions", upTo: 3, live: [] });
      job.run();
      const norms = job.shard.saveState().norms;
      expect(norms?.map(([, trainer]) => trainer)).toEqual(
        history === "trainer" ? undefined : [""],
      );
      const outcome = job.push(9, { trainer: "bob", session: 4 });
      expect(outcome.code).toBe(history === "trainer" ? undefined : "GUARDED");
    }
  });

  test("of a block goes with the block", () => {
    const job = new GuardedJob(TWICE).warm();
    job.journal.host({ verb: "drop", parameter: "w", epoch: 1 });
    job.run();
    expect(job.shard.saveState()).not.toHaveProperty("norms");
  });

  test("is not begun where all together would be too large", () => {
    const job = new Folded(undefined, { knownRules: limitedRules({ guardNormsMax: 12 }) });
    job.journal.init(new Float32Array(1), { config: { ...NONE, guard: TWICE } });
    for (const trainer of ["alice", "bob"]) {
      for (const norm of [1, 1, 9])
        job.journal.push(Float32Array.of(norm), { op: "grad" }, { trainer });
    }
    expect(job.run().map(({ code }) => code)).toEqual([
      ...[undefined, undefined, undefined, "GUARDED", undefined, undefined, undefined],
    ]);
  });
});

describe("rows of a sparse parameter", () => {
  const config = { ...NONE, sparse: true };
  const part = { rows: Uint32Array.of(1, 3) };

  test.each(["reject", "clip", "set-aside"] as const)("are judged together: %s", (action) => {
    const job = new GuardedJob({ ...TWICE, action }, { config });
    for (let i = 0; i < 2; i++)
      job.journal.push(Float32Array.of(0.6, 0.8), { op: "grad" }, { part });
    job.journal.push(Float32Array.of(6, 8), { op: "grad" }, { part });
    const outcome = job.run().at(-1);
    const factor = action === "clip" ? 0.2 : 0;
    if (action === "reject") expect(outcome?.code).toBe("GUARDED");
    else expect(outcome?.guard?.action).toBe(action);
    const expected = [0.6, 0.8].map((x) => Math.fround(Math.fround(x) + Math.fround(x)));
    const [, first, , second] = job.values();
    expect(first).toBeCloseTo((expected[0] ?? 0) + 6 * factor, 5);
    expect(second).toBeCloseTo((expected[1] ?? 0) + 8 * factor, 5);
  });
});

describe("a batch", () => {
  function batched(actions: readonly GuardInput["action"][]): Folded {
    const job = new Folded();
    actions.forEach((action = "reject", i) => {
      const guard = { ...TWICE, action };
      job.journal.init(new Float32Array(2), { parameter: `p${i}`, config: { ...NONE, guard } });
    });
    job.journal.init(new Float32Array(2), { parameter: "free", config: NONE });
    job.apply();
    return job;
  }

  function push(job: Folded, norms: readonly number[]): Outcome {
    const change = { kind: "push", operation: { op: "grad" } } as const;
    const updates = norms.map((norm, i) => {
      const parameter = i < norms.length - 1 ? `p${i}` : "free";
      return { parameter, data: Float32Array.of(0, norm), change };
    });
    job.journal.batch(updates);
    return job.run().at(-1) as Outcome;
  }

  function second(job: Folded, parameter: string): number | undefined {
    return elementsOf(job.block(parameter).values(), Float32Array)[1];
  }

  test("is rejected as a whole for one entry, which is named", () => {
    const job = batched(["reject", "clip"]);
    for (let i = 0; i < 2; i++) push(job, [1, 1, 1]);
    const outcome = push(job, [7, 9, 1]);
    expect(outcome).toMatchObject({ code: "GUARDED" });
    expect(outcome.message).toMatch(/^entry 0, "p0" block 0: expected a norm of at most 2/);
    expect(["p0", "p1", "free"].map((name) => second(job, name))).toEqual([2, 2, 2]);
  });

  test("is set aside as a whole", () => {
    const job = batched(["clip", "set-aside"]);
    for (let i = 0; i < 2; i++) push(job, [1, 1, 1]);
    expect(push(job, [9, 7, 1]).guard).toEqual({ action: "set-aside", norm: 7, limit: 2 });
    expect(["p0", "p1", "free"].map((name) => second(job, name))).toEqual([2, 2, 2]);
  });

  test("is clipped in the entries that are above their limits", () => {
    const job = batched(["clip", "clip"]);
    for (let i = 0; i < 2; i++) push(job, [1, 1, 1]);
    const outcome = push(job, [8, 2, 5]);
    expect(outcome.guard).toEqual({ action: "clip", norm: 8, limit: 2 });
    expect(["p0", "p1", "free"].map((name) => second(job, name))).toEqual([4, 4, 7]);
  });

  test("judges a block by the norms that it has had in records of its own", () => {
    const job = batched(["reject"]);
    for (let i = 0; i < 2; i++) {
      job.journal.push(Float32Array.of(0, 1), { op: "grad" }, { parameter: "p0" });
    }
    expect(push(job, [3, 1]).code).toBe("GUARDED");
  });
});

describe("a gradient that is clipped", () => {
  test("is scaled, and clipped by norm and value, after that", () => {
    const config = { ...NONE, gradientScale: -2, clipNorm: 3 };
    const job = new GuardedJob({ ...TWICE, action: "clip" }, { config });
    for (let i = 0; i < 2; i++) job.push(1);
    expect(job.values()[0]).toBe(-4);
    job.push(8);
    expect(job.values()[0]).toBe(-7);
  });
});

describe("in a job whose trainers keep step", () => {
  const synchronization = { mode: "sync", trainers: 2, reduce: "sum" } as const;

  function stepping(guard: GuardInput): GuardedJob {
    const job = new GuardedJob(guard, { synchronization });
    const trainers = ["alice", "bob"];
    job.journal.host({ verb: "members", revision: 1, started: true, trainers });
    job.run();
    return job;
  }

  function step(job: GuardedJob, number: number, alice: number, bob: number): Outcome[] {
    const outcomes = [
      job.push(alice, { trainer: "alice" }, number),
      job.push(bob, { trainer: "bob" }, number),
    ];
    for (const trainer of ["alice", "bob"]) job.journal.clock(trainer, number);
    job.run();
    return outcomes;
  }

  test.each(["reject", "set-aside"] as const)(
    "a step goes on without what is held back: %s",
    (action) => {
      const job = stepping({ ...TWICE, action });
      step(job, 1, 1, 1);
      step(job, 2, 1, 1);
      const [outcome] = step(job, 3, 9, 1);
      expect(outcome?.code ?? outcome?.guard?.action).toBe(
        action === "reject" ? "GUARDED" : action,
      );
      expect(job.shard.steps.closed).toBe(3);
      expect(job.values()).toEqual([5, 0, 0, 0]);
    },
  );

  test("the rest of what is clipped is added to the step", () => {
    const job = stepping({ ...TWICE, action: "clip" });
    step(job, 1, 1, 1);
    step(job, 2, 1, 1);
    step(job, 3, 9, 1);
    expect(job.values()).toEqual([7, 0, 0, 0]);
  });
});

test("a shard that is restored after any record goes on as one that has folded them all", () => {
  for (const history of ["trainer", "cohort"] as const) {
    const whole = new GuardedJob({ deviations: 3, window: 4, warmup: 2, action: "clip", history });
    const norms = [1, 1.1, 0.9, 30, 0, 1.2, 900, 1, 1.3, 5];
    norms.forEach((norm, i) => {
      whole.push(norm, { trainer: i % 3 === 0 ? "bob" : "alice" });
    });
    const { records } = whole.journal;
    const digest = whole.shard.digest();
    for (let cut = 1; cut < records.length; cut++) {
      const options = { subjects: SUBJECTS, shard: SHARD };
      const before = Shard.create(options);
      for (const record of records.slice(0, cut)) before.apply(record);
      const state = unpackValue(packValue(before.saveState()));
      const after = Shard.restore(options, state, ({ parameter, index }, slot) => {
        return before.block(parameter, index)?.slotBytes(slot).slice() ?? new Uint8Array(0);
      });
      for (const record of records.slice(cut)) after.apply(record);
      expect(after.digest()).toBe(digest);
    }
  }
});

describe("a saved state", () => {
  test.each([
    ["of a block that is not there", [2, "alice", 8, new Uint8Array(16)]],
    ["of a trainer that is not remembered", [1, "nobody", 8, bytesOf([1, 1])]],
    ["with more norms than the window", [1, "", 1, bytesOf([1, 1])]],
    ["with a norm that is none", [1, "", 8, bytesOf([Number.NaN])]],
    ["with a part of a norm", [1, "", 8, new Uint8Array(7)]],
  ])("is damaged with norms %s", (_what, row) => {
    const job = new GuardedJob(TWICE).warm();
    const state = { ...job.shard.saveState(), norms: [row] };
    expect(() => Shard.restoreEmpty({ subjects: SUBJECTS, shard: SHARD }, state)).toThrow(
      expect.objectContaining({ code: "SNAPSHOT_DAMAGED" }),
    );
  });

  test("is damaged with the norms of a block by a trainer twice", () => {
    const job = new GuardedJob(TWICE).warm();
    const { norms = [] } = job.shard.saveState();
    const state = { ...job.shard.saveState(), norms: [...norms, ...norms] };
    expect(() => Shard.restoreEmpty({ subjects: SUBJECTS, shard: SHARD }, state)).toThrow(
      expect.objectContaining({ code: "SNAPSHOT_DAMAGED" }),
    );
  });
});

function bytesOf(norms: readonly number[]): Uint8Array {
  return new Uint8Array(Float64Array.from(norms).buffer);
}

test("a repeated record gets the outcome of the first, and its norm counts once", () => {
  const job = new GuardedJob({ ...TWICE, action: "clip" }).warm();
  const first = job.push(8);
  const digest = job.content();
  const record = job.journal.records.at(-1);
  if (record !== undefined) job.journal.append(record.subject, record.payload);
  expect(job.run()).toEqual([first]);
  expect(job.content()).toBe(digest);
});

test("a trainer is not charged for what is set aside, but for what is rejected", () => {
  const charged = (["reject", "set-aside"] as const).map((action) => {
    const job = new GuardedJob({ ...TWICE, action }).warm();
    for (let i = 0; i < 3; i++) job.push(900);
    return job.shard.senders.rejectedOf.length;
  });
  expect(charged).toEqual([1, 0]);
});
