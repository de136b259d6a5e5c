// Proves what guards do with contributions to fragments: each tensor is judged by its own history, the contribution counts
// or not as a whole, and what does not count is dropped in its trainer's account. What is clipped counts like a
// contribution that is smaller.
import { describe, expect, test } from "vitest";
import type { DilocoSettings, GuardInput } from "../../../../src/protocol/config/index.ts";
import type { ContributedBlock } from "../fragments/contribution-payload.ts";
import { both, DESCENT, FragmentJob } from "../fragments/fragment-job.ts";

/** A guard that judges by the third norm on, and lets up to twice the median of all trainers' norms pass. */
const TWICE: GuardInput = { factor: 2, window: 8, warmup: 2, history: "cohort" };

/** A job in which alice has contributed to two rounds; the values are −2 everywhere, and the norms were 2 and √3. */
function guarded(guard: GuardInput, settings: Partial<DilocoSettings> = {}): FragmentJob {
  const job = new FragmentJob(settings, { ...DESCENT, guard });
  for (let base = 0; base < 2; base++) {
    expect(job.contribute("alice", 1, 1, { base })).not.toHaveProperty("code");
    job.close(1);
  }
  return job;
}

describe("a contribution with a tensor above its limit", () => {
  test("is rejected, and dropped in the account", () => {
    const job = guarded({ ...TWICE, action: "reject" });
    const outcome = job.contribute("bob", 1, 9, { base: 2 });
    expect(outcome).toMatchObject({ code: "GUARDED" });
    expect(outcome.message).toMatch(/^"w": expected a norm of at most 3\.46.*; received 15\.58/);
    expect(job.account("bob")).toEqual([1, 0, 0, 1]);
    job.close(0);
    expect(job.values()).toEqual([-2, -2, -2]);
  });

  test("is set aside, which its trainer is told, because no round has it", () => {
    const job = guarded({ ...TWICE, action: "set-aside" });
    const outcome = job.contribute("bob", 1, 9, { base: 2 });
    expect(outcome).toMatchObject({ code: "GUARDED" });
    expect(outcome.message).toMatch(/; it was set aside$/);
    expect(job.account("bob")).toEqual([1, 0, 0, 1]);
    expect(job.shard.senders.rejectedOf).toEqual([]);
  });

  test("does not keep its trainer from another one from the same version", () => {
    const job = guarded({ ...TWICE, action: "reject" });
    job.contribute("bob", 9, 9, { base: 2 });
    expect(job.contribute("bob", 1, 1, { base: 2 })).toMatchObject({ version: 3 });
    expect(job.account("bob")).toEqual([2, 0, 0, 1]);
  });

  test.each(["mean", "rda"] as const)("is clipped in that tensor: %s", (merge) => {
    const job = guarded({ ...TWICE, action: "clip" }, { merge });
    const outcome = job.contribute("bob", 1, 8, { base: 2 });
    expect(outcome).toMatchObject({ version: 3, guard: { action: "clip" } });
    expect(outcome.guard?.norm).toBeCloseTo(8 * Math.sqrt(3), 12);
    expect(outcome.guard?.limit).toBeCloseTo(2 * Math.sqrt(3), 12);
    job.close(1);
    expect(job.values("u")).toEqual([-3, -3, -3, -3]);
    for (const value of job.values("w")) expect(value).toBeCloseTo(-4, 6);
    expect(job.account("bob")).toEqual([1, 1, 0, 0]);
  });

  test("counts like a smaller one beside others, in direction and length", () => {
    const settings = { merge: "rda", weights: "tokens" } as const;
    const clipped = guarded({ ...TWICE, action: "clip" }, settings);
    const small = guarded({ ...TWICE, action: "clip" }, settings);
    for (const [job, factor] of [
      [clipped, 4],
      [small, 1],
    ] as const) {
      const said = { base: 2, tokens: 3 };
      job.contribute(
        "bob",
        [2, 0, 0, 0].map((x) => 2 * factor * x),
        [0, 0, 2 * Math.sqrt(3) * factor],
        said,
      );
      job.contribute("carol", [0, 1, 0, 0], [1, 0, 0], { base: 2, tokens: 1 });
      job.close(2);
    }
    for (const name of ["u", "w"]) {
      clipped.values(name).forEach((value, i) => {
        expect(value).toBeCloseTo(small.values(name)[i] ?? Number.NaN, 5);
      });
    }
  });

  test.each(["median", "trimmed-mean"] as const)(
    "is clipped where the round keeps it until it closes, also from a snapshot: %s",
    (merge) => {
      const job = guarded({ ...TWICE, action: "clip" }, { merge });
      job.contribute("bob", 1, 8, { base: 2 });
      job.on(job.restored());
      job.contribute("carol", 1, 1, { base: 2 });
      job.close(2);
      // The mean of 2, to which 8 was clipped, and 1.
      for (const value of job.values("w")) expect(value).toBeCloseTo(-3.5, 6);
      expect(job.values("u")).toEqual([-3, -3, -3, -3]);
    },
  );

  test("is judged by the norm of all its parts", () => {
    const job = guarded({ ...TWICE, action: "reject" });
    const [u, w] = both(1, 9) as [ContributedBlock, ContributedBlock];
    const said = { id: 50, base: 2, parts: 2 };
    expect(job.send("bob", [w], { ...said, part: 1 })).not.toHaveProperty("code");
    expect(job.send("bob", [u], { ...said, part: 0 }).code).toBe("GUARDED");
    expect(job.shard.fragments.keptBytes).toBe(0);
  });

  test("is judged by its displacement if it has parameters", () => {
    const job = guarded({ ...TWICE, action: "reject" });
    const form = "parameters" as const;
    expect(job.contribute("bob", -3, -3, { base: 2, form }).code).toBeUndefined();
    expect(job.contribute("carol", -20, -3, { base: 2, form }).code).toBe("GUARDED");
  });

  test("is not judged if it is late", () => {
    const job = guarded({ ...TWICE, action: "reject" });
    expect(job.contribute("bob", 9, 9, { base: 0 }).code).toBe("LATE");
  });
});

test("a contribution whose displacement is not finite is rejected, with a guard and without", () => {
  for (const config of [DESCENT, { ...DESCENT, guard: TWICE }]) {
    const job = new FragmentJob({}, config);
    job.parameter("big", Float64Array.of(-1e300), config);
    const blocks = [...both(1, 1), { parameter: "big", data: Float64Array.of(1e300) }];
    job.run();
    expect(job.send("bob", blocks, { form: "parameters" })).toMatchObject({ code: "NON_FINITE" });
    expect(job.account("bob")).toEqual([1, 0, 0, 1]);
  }
});

test("a shard that is restored while a round is open judges and clips as before", () => {
  const job = guarded({ ...TWICE, action: "clip" });
  job.contribute("bob", 1, 8, { base: 2 });
  const restored = job.restored();
  expect(restored.digest()).toBe(job.shard.digest());
  const whole = job.contribute("carol", 7, 1, { base: 2 });
  expect(restored.apply(job.journal.records.at(-1) as never)?.outcome).toEqual(whole);
  expect(restored.digest()).toBe(job.shard.digest());
});
