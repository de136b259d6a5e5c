// Proves what becomes of contributions to a fragment: how they are weighed and merged, compared with references that are
// computed here, that values change only when a host closes the round, which contributions are too late or twice, and
// that every one is accounted for.
import { describe, expect, test } from "vitest";
import { elementsOf } from "../folded.ts";
import { FragmentJob, MEMBERS } from "./fragment-job.ts";

describe("a round", () => {
  test("changes values when it is closed, and no earlier", () => {
    const job = new FragmentJob();
    expect(job.contribute("alice", 1)).toMatchObject({ version: 1 });
    expect(job.contribute("bob", 3)).toMatchObject({ version: 1 });
    expect(job.values()).toEqual([0, 0, 0]);
    expect(job.version).toBe(0);
    const before = job.block().version;
    job.close(2);
    expect(job.values()).toEqual([-2, -2, -2]);
    expect(job.values("u")).toEqual([-2, -2, -2, -2]);
    expect(job.version).toBe(1);
    expect(job.block()).toMatchObject({ version: before + 1, updates: 1, accumulated: 0 });
  });

  test("begins with empty sums after the last one", () => {
    const job = new FragmentJob();
    job.contribute("alice", 8);
    job.close(1);
    job.contribute("alice", 1, 1, { base: 1 });
    job.close(1);
    expect(job.values()).toEqual([-9, -9, -9]);
  });

  test("closes with all that came before its record, also after it was written", () => {
    const job = new FragmentJob();
    job.contribute("alice", 1);
    job.contribute("bob", 3);
    job.close(1);
    expect(job.values()).toEqual([-2, -2, -2]);
  });

  test.each([
    ["names more contributions than there are", 2, 1],
    ["is of a later round", 1, 2],
  ])("is not closed by a record that %s", (_what, contributions, round) => {
    const job = new FragmentJob();
    job.contribute("alice", 1);
    const before = job.content();
    job.close(contributions, round);
    expect(job.content()).toBe(before);
  });

  test("is closed once, whoever else closes it", () => {
    const job = new FragmentJob();
    job.contribute("alice", 1);
    job.close(1, 1);
    const before = job.content();
    job.close(1, 1);
    expect(job.content()).toBe(before);
  });

  test("of an unknown fragment is not closed", () => {
    const job = new FragmentJob();
    const before = job.content();
    job.close(0, 1, "other");
    expect(job.content()).toBe(before);
  });

  test("without contributions only raises the version, whatever momentum there is", () => {
    const job = new FragmentJob({}, { optimizer: "nesterov", learningRate: 0.7, momentum: 0.9 });
    job.contribute("alice", 1);
    job.close(1);
    const values = job.values();
    job.close(0);
    expect([job.version, job.values()]).toEqual([2, values]);
  });
});

/** Contributions of several trainers: numbers of a normal distribution would not tell more. */
const DISPLACEMENTS = [
  [1, -2, 0.5],
  [0.25, 3, -1],
  [-4, 0.125, 2],
];

describe("a mean", () => {
  test.each([
    ["uniform", [1, 1, 1]],
    ["steps", [10, 20, 30]],
    ["tokens", [100, 300, 50]],
    ["tokens2/steps", [(100 * 100) / 10, (300 * 300) / 20, (50 * 50) / 30]],
  ] as const)("weighs contributions %s", (weights, expected) => {
    const job = new FragmentJob({ weights });
    const [steps, tokens] = [
      [10, 20, 30],
      [100, 300, 50],
    ];
    for (const [i, trainer] of MEMBERS.entries()) {
      const said = { steps: steps[i] ?? 0, tokens: tokens[i] ?? 0 };
      job.contribute(trainer, 0, DISPLACEMENTS[i], said);
    }
    job.close(3);
    const total = expected.reduce((sum, weight) => sum + weight, 0);
    for (const [at, value] of job.values().entries()) {
      const sum = DISPLACEMENTS.reduce(
        (all, own, i) => all + (expected[i] ?? 0) * (own[at] ?? 0),
        0,
      );
      expect(value).toBeCloseTo(-sum / total, 5);
    }
  });

  test("of one contribution is that contribution, bit for bit", () => {
    const job = new FragmentJob({ weights: "tokens2/steps", merge: "rda" });
    const own = [Math.fround(0.1), Math.fround(1e-7), Math.fround(-12345.678)];
    job.contribute("alice", 0, own, { steps: 7, tokens: 999 });
    job.close(1);
    expect(job.values()).toEqual(own.map((value) => -value));
  });

  test("is computed as its rule says, in float32 and in the order of the records", () => {
    const job = new FragmentJob({ weights: "steps" });
    const mean = new Float32Array(3);
    let weight = 0;
    for (const [i, trainer] of MEMBERS.entries()) {
      const steps = [3, 7, 11][i] ?? 1;
      job.contribute(trainer, 0, DISPLACEMENTS[i], { steps });
      const total = weight + steps;
      const [before, own] = [Math.fround(weight / total), Math.fround(steps / total)];
      for (let at = 0; at < 3; at++) {
        const added = Math.fround(own * (DISPLACEMENTS[i]?.[at] ?? 0));
        mean[at] = Math.fround(Math.fround(before * (mean[at] as number)) + added);
      }
      weight = total;
    }
    job.close(3);
    expect(job.values()).toEqual([...mean].map((value) => -value));
  });
});

describe("a radial-directional mean", () => {
  test("has the mean length and the mean direction of each tensor", () => {
    const job = new FragmentJob({ merge: "rda", weights: "steps" });
    const steps = [1, 2, 5];
    const tensors = {
      u: [
        [1, 0, 0, 0],
        [0, 2, 0, 0],
        [0, 0, -3, 4],
      ],
      w: DISPLACEMENTS,
    };
    for (const [i, trainer] of MEMBERS.entries()) {
      const [u, w] = [tensors.u[i] ?? [], tensors.w[i] ?? []];
      job.contribute(trainer, u, w, { steps: steps[i] ?? 0 });
    }
    job.close(3);
    for (const parameter of ["u", "w"] as const) {
      const expected = radialMean(tensors[parameter], steps);
      for (const [at, value] of job.values(parameter).entries()) {
        expect(value).toBeCloseTo(-(expected[at] ?? 0), 5);
      }
    }
  });

  test("is the mean where directions cancel each other out", () => {
    const job = new FragmentJob({ merge: "rda" });
    job.contribute("alice", 0, [2, 0, 0]);
    job.contribute("bob", 0, [-1, 0, 0]);
    job.close(2);
    expect(job.values()).toEqual([-0.5, 0, 0]);
    expect(job.values("u")).toEqual([0, 0, 0, 0]);
  });

  test("counts a displacement of nothing without a direction", () => {
    const job = new FragmentJob({ merge: "rda" });
    job.contribute("alice", 0, [0, 0, 0]);
    job.contribute("bob", 0, [0, 4, 0]);
    job.close(2);
    expect(job.values()[1]).toBeCloseTo(-2, 6);
  });

  test("is not that of a parameter whose configuration says mean", () => {
    const job = new FragmentJob(
      { merge: "rda" },
      { optimizer: "sgd", learningRate: 1, merge: "mean" },
    );
    job.contribute("alice", 0, [3, 0, 0]);
    job.contribute("bob", 0, [0, 3, 0]);
    job.close(2);
    expect(job.values()).toEqual([-1.5, -1.5, 0]);
  });
});

/** The radial-directional mean in float64. */
function radialMean(tensors: readonly (readonly number[])[], weights: readonly number[]): number[] {
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  const norms = tensors.map((tensor) => Math.hypot(...tensor));
  const length = norms.reduce((sum, norm, i) => sum + (weights[i] ?? 0) * norm, 0) / total;
  const direction = (tensors[0] ?? []).map((_, at) =>
    tensors.reduce((sum, tensor, i) => {
      return sum + ((weights[i] ?? 0) * (tensor[at] ?? 0)) / (norms[i] ?? 1);
    }, 0),
  );
  const norm = Math.hypot(...direction);
  return direction.map((value) => (length * value) / norm);
}

describe("the outer rule", () => {
  test("is Nesterov's as DiLoCo has it, bit for bit", () => {
    const job = new FragmentJob({}, { optimizer: "nesterov", learningRate: 0.7, momentum: 0.9 });
    const f = Math.fround;
    const [lr, mu] = [f(0.7), f(0.9)];
    const [value, momentum] = [new Float32Array(3), new Float32Array(3)];
    for (let round = 0; round < 5; round++) {
      const displacement = DISPLACEMENTS[round % 3] ?? [];
      job.contribute("alice", 0, displacement, { base: round });
      job.close(1);
      for (let at = 0; at < 3; at++) {
        const push = f(lr * f(displacement[at] ?? 0));
        const m = f(f(mu * (momentum[at] as number)) - push);
        momentum[at] = m;
        value[at] = f((value[at] as number) - f(push - f(mu * m)));
      }
    }
    expect(job.values()).toEqual([...value]);
    expect([...elementsOf(job.block().slotBytes(1), Float32Array)]).toEqual([...momentum]);
  });

  test("clips and scales the merged displacement as it would a gradient", () => {
    const config = { optimizer: "sgd", learningRate: 1, gradientScale: 2, clipValue: 3 };
    const job = new FragmentJob({}, config);
    job.contribute("alice", 0, [1, 5, -5]);
    job.close(1);
    expect(job.values()).toEqual([-2, -3, 3]);
  });
});

describe("parameters in place of displacements", () => {
  test("are compared with the values that are there", () => {
    const job = new FragmentJob();
    job.contribute("alice", 2);
    job.close(1);
    job.contribute("bob", [-3, -3, -3, -3], [-3, -2, -1], { base: 1, form: "parameters" });
    job.close(1);
    expect(job.values()).toEqual([-3, -2, -1]);
  });

  test("are too late once these have changed, also where late ones are carried", () => {
    const job = new FragmentJob({ late: "carry" });
    job.contribute("alice", 2);
    job.close(1);
    expect(job.contribute("bob", 1, 1, { form: "parameters" })).toMatchObject({ code: "LATE" });
  });
});

describe("a late contribution", () => {
  test("is left out, and counted as dropped", () => {
    const job = new FragmentJob();
    job.contribute("alice", 1);
    job.close(1);
    const values = job.values();
    expect(job.contribute("bob", 100)).toMatchObject({ code: "LATE", version: 0 });
    job.close(0);
    expect(job.values()).toEqual(values);
    expect(job.account("bob")).toEqual([1, 0, 0, 1]);
  });

  test("is carried into the open round with less weight", () => {
    const job = new FragmentJob({ late: "carry", lateDecay: 0.5 });
    job.contribute("alice", 0);
    job.close(1);
    job.close(0);
    job.contribute("alice", 0, 0, { base: 2 });
    // Two versions behind: 1 / (1 + 0.5 · 2) of the weight of alice's.
    expect(job.contribute("bob", 3)).toMatchObject({ version: 3 });
    job.close(2);
    expect(job.values()[0]).toBeCloseTo(-1, 6);
    expect(job.account("bob")).toEqual([1, 0, 1, 0]);
  });
});

describe("a trainer", () => {
  test("contributes once from each version", () => {
    const job = new FragmentJob({ late: "carry" });
    expect(job.contribute("alice", 1).code).toBeUndefined();
    expect(job.contribute("alice", 1, 1, { id: 2 })).toMatchObject({ code: "LATE" });
    job.close(1);
    expect(job.contribute("alice", 1, 1, { id: 3 })).toMatchObject({ code: "LATE" });
    expect(job.contribute("alice", 1, 1, { id: 4, base: 1 }).code).toBeUndefined();
    expect(job.account("alice")).toEqual([4, 1, 0, 2]);
  });

  test("has no second vote after it was no member for a while", () => {
    const job = new FragmentJob();
    job.contribute("alice", 1);
    job.members(["bob"]);
    job.members(MEMBERS);
    const again = job.contribute("alice", 1, 1, {}, { session: 2 });
    expect(again).toMatchObject({ code: "LATE" });
  });

  test("gets the first outcome for a repeated record, which counts once", () => {
    const job = new FragmentJob();
    const first = job.contribute("alice", 1, 1, {}, { n: 1 });
    const again = job.contribute("alice", 1, 1, {}, { n: 1 });
    expect(again).toEqual(first);
    expect(job.account("alice")).toEqual([1, 0, 0, 0]);
  });
});

describe("the ledger", () => {
  test("counts steps and tokens, and nothing of what was rejected as wrong", () => {
    const job = new FragmentJob();
    job.contribute("alice", 1, 1, { steps: 3, tokens: 30 });
    job.contribute("alice", Number.NaN, 1, { id: 2, base: 0 });
    job.close(1);
    job.contribute("alice", 1, 1, { id: 3, base: 1, steps: 4, tokens: 50 });
    const { processed, merged } = job.shard.fragments.ledger.of("alice");
    expect(processed).toEqual({ contributions: 2, steps: 7, tokens: 80 });
    expect(merged).toEqual({ contributions: 1, steps: 3, tokens: 30 });
  });
});

describe("a change of the fragment's parameters", () => {
  test("ends the open round without a result, and its contributions are dropped", () => {
    const job = new FragmentJob();
    job.contribute("alice", 5);
    job.parameter("x", new Float32Array(2));
    job.apply();
    expect(job.account("alice")).toEqual([1, 0, 0, 1]);
    const before = job.content();
    job.close(1);
    expect(job.content()).toBe(before);
    const blocks = [{ parameter: "u", data: new Float32Array(4) }];
    expect(job.send("bob", blocks)).toMatchObject({ code: "BAD_LENGTH" });
    expect(job.block().accumulated).toBe(0);
  });

  test("that removes all of them removes the fragment", () => {
    const job = new FragmentJob();
    job.contribute("alice", 5);
    job.close(1);
    for (const parameter of ["u", "w"]) job.journal.host({ verb: "drop", parameter, epoch: 1 });
    job.run();
    expect(job.shard.fragmentVersions()).toEqual([]);
    expect(job.contribute("alice", 1, 1, { base: 1 })).toMatchObject({ code: "UNKNOWN_PARAMETER" });
  });
});

describe("a fork", () => {
  test("begins with the values, and with no rounds and nothing contributed", () => {
    const job = new FragmentJob({ merge: "rda" });
    job.contribute("alice", 2);
    job.close(1);
    job.contribute("alice", 5, 5, { base: 1 });
    // Both blocks had an open round.
    expect(job.shard.detach()).toBe(2);
    expect([job.version, job.values()]).toEqual([0, [-2, -2, -2]]);
    expect(job.shard.fragments.ledger.size).toBe(0);
    expect(job.block().accumulated).toBe(0);
    expect([...elementsOf(job.block().slotBytes(1), Float32Array)]).toEqual([0, 0, 0]);
  });
});

describe("a snapshot", () => {
  test("holds open rounds, sums, accounts and what trainers have contributed from", () => {
    const job = new FragmentJob({ merge: "rda", late: "carry" });
    job.contribute("alice", 1);
    job.close(1);
    job.contribute("bob", [1, 2, 3, 4], [1, 2, 3]);
    job.contribute("carol", 2, 2, { base: 1 });
    const restored = job.restored();
    expect(restored.digest()).toBe(job.shard.digest());
    expect(restored.block("w", 0)?.accumulated).toBe(2);
    job.journal.host({ verb: "close", fragment: "f", round: 2, contributions: 2 });
    const close = job.journal.records.at(-1);
    if (close === undefined) throw new Error("no record");
    restored.apply(close);
    job.run();
    expect(restored.digest()).toBe(job.shard.digest());
  });
});
