// Proves what becomes of contributions that were made from an earlier version: what they weigh, and that with `rebase` a
// contribution of whole parameters is compared with the values that it began from, as long as these are kept.
import { describe, expect, test } from "vitest";
import { elementsOf } from "../folded.ts";
import type { ContributedBlock } from "./contribution-payload.ts";
import { both, FragmentJob } from "./fragment-job.ts";

describe("a late contribution that is carried", () => {
  test.each([
    ["linear", 1, 1 / 2],
    ["linear", 3, 1 / 4],
    ["root", 1, 1 / Math.sqrt(2)],
    ["root", 3, 1 / 2],
  ] as const)("weighs less by a %s divisor with decay %f", (lateDivisor, lateDecay, share) => {
    const job = new FragmentJob({ late: "carry", lateDecay, lateDivisor });
    job.close(0);
    job.contribute("alice", 1, 1, { base: 0 });
    expect(job.shard.fragments.get("f")?.weight).toBe(share);
    job.contribute("bob", 0, 0, { base: 1 });
    job.close(2);
    expect(job.values()[0]).toBeCloseTo(-share / (1 + share), 6);
    expect(job.account("alice")).toEqual([1, 0, 1, 0]);
  });

  test("weighs less with every version", () => {
    const job = new FragmentJob({ late: "carry", lateDecay: 1, lateDivisor: "root" });
    for (let i = 0; i < 8; i++) job.close(0);
    job.contribute("alice", 1, 1, { base: 0 });
    expect(job.shard.fragments.get("f")?.weight).toBe(1 / 3);
  });
});

/** A job that has had three rounds, each of which lowered all values by 1: version `v` has the values −`v`. */
function afterThree(lateVersions: number, merge: "mean" | "median" = "mean"): FragmentJob {
  const job = new FragmentJob({ late: "rebase", lateDecay: 0, lateVersions, merge });
  for (let round = 0; round < 3; round++) {
    job.contribute("bob", 1, 1, { base: round });
    job.close(1);
  }
  return job;
}

describe("whole parameters with rebase", () => {
  test.each(["mean", "median"] as const)("are compared with what they began from: %s", (merge) => {
    for (const base of [1, 2, 3]) {
      const job = afterThree(2, merge);
      // What was learned is 0.5 less than what was received: a displacement of 0.5.
      const sent = { base, form: "parameters" } as const;
      expect(job.contribute("alice", -base - 0.5, -base - 0.5, sent).code).toBeUndefined();
      job.contribute("bob", 0.25, 0.25, { base: 3 });
      job.close(2);
      expect(job.values()).toEqual([-3.375, -3.375, -3.375]);
      expect(job.values("u")).toEqual([-3.375, -3.375, -3.375, -3.375]);
    }
  });

  test("are dropped if these values are no longer kept", () => {
    const job = afterThree(2);
    const sent = job.contribute("alice", 5, 5, { base: 0, form: "parameters" });
    expect(sent).toMatchObject({ code: "LATE" });
    expect(sent.message).toContain("expected version 3");
    expect(sent.message).toContain("or up to 2 before");
    expect(job.account("alice")).toEqual([1, 0, 0, 1]);
  });

  test("are not needed by a displacement, which is carried however old it is", () => {
    const job = afterThree(1);
    job.contribute("alice", 0.5, 0.5, { base: 0 });
    job.close(1);
    expect(job.values()).toEqual([-3.5, -3.5, -3.5]);
    expect(job.account("alice")).toEqual([1, 0, 1, 0]);
  });

  test("are compared with the same values by a shard from a snapshot", () => {
    const job = afterThree(2);
    const restored = job.restored();
    expect(restored.digest()).toBe(job.shard.digest());
    job.on(restored);
    job.contribute("alice", -2, -2, { base: 1, form: "parameters" });
    job.close(1);
    expect(job.values()).toEqual([-4, -4, -4]);
  });

  test("are dropped if the fragment has got other parameters since", () => {
    const job = afterThree(2);
    job.parameter("x", Float32Array.of(7));
    job.apply();
    const all = (value: number, x: number): ContributedBlock[] => {
      return [...both(value, value), { parameter: "x", data: Float32Array.of(x) }];
    };
    const whole = { form: "parameters" } as const;
    const early = job.send("alice", all(1, 1), { ...whole, base: 2 });
    expect(early).toMatchObject({ code: "LATE" });
    expect(job.send("bob", all(-4, 6), { ...whole, base: 3 }).code).toBeUndefined();
    job.close(1);
    expect([job.values("u")[0], job.values("x")[0]]).toEqual([-4, 6]);
    // The values of version 3 are kept from here on.
    expect(job.send("carol", all(-3.5, 6.5), { ...whole, base: 3 }).code).toBeUndefined();
    job.close(1);
    expect([job.values("u")[0], job.values("x")[0]]).toEqual([-4.5, 5.5]);
  });

  test("take a slot of the size of the values for each version", () => {
    const sizes = [0, 1, 3].map((count) => {
      const settings = count === 0 ? {} : ({ late: "rebase", lateVersions: count } as const);
      return new FragmentJob({ ...settings, merge: "mean" }).shard.valueBytes;
    });
    const [none = 0, one = 0, three = 0] = sizes;
    expect([one - none, three - none]).toEqual([7 * 4, 3 * 7 * 4]);
    const block = afterThree(2).block();
    const kept = [block.slots - 1, block.slots].map((slot) => {
      return elementsOf(block.slotBytes(slot), Float32Array)[0];
    });
    expect(kept).toEqual([-2, -1]);
  });
});
