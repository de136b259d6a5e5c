// Proves that a job that draws samples of its members takes the contributions of those that were drawn for a round, and
// drops those of anybody else with a code and an account of it: the sample is that of the public function, of the members
// at the time, and of the round after the version that the contribution was made from.
import { expect, test } from "vitest";
import { sampledMembers } from "../../../../src/protocol/sampling.ts";
import { SUBJECTS } from "../journal-writer.ts";
import { FragmentJob } from "./fragment-job.ts";

const TRAINERS = Array.from({ length: 20 }, (_, i) => `t${i}`);

function begin(settings: ConstructorParameters<typeof FragmentJob>[0]): FragmentJob {
  const job = new FragmentJob(settings);
  job.members(TRAINERS);
  return job;
}

/** Who is drawn for a round of the fragment `f`. */
function drawn(round: number, count: number, members: readonly string[] = TRAINERS): Set<string> {
  return sampledMembers({ job: SUBJECTS.job, fragment: "f", round }, members, count);
}

test.each([
  ["a number", 5, 5],
  ["a share", 0.3, 6],
] as const)("a round takes %s of the members, and no others", (_what, sample, count) => {
  const job = begin({ sample });
  for (let round = 1; round <= 3; round++) {
    const expected = drawn(round, count);
    expect(expected.size).toBe(count);
    for (const trainer of TRAINERS) {
      const { code, message } = job.contribute(trainer, 1, 1, { base: round - 1 });
      expect(code).toBe(expected.has(trainer) ? undefined : "NOT_SAMPLED");
      if (code !== undefined)
        expect(message).toContain(`one of the ${count} trainers drawn for round ${round}`);
    }
    job.close(count);
    expect(job.version).toBe(round);
  }
  const { processed, merged, dropped } = job.shard.fragments.ledger.total;
  expect(processed.contributions).toBe(3 * TRAINERS.length);
  expect(merged.contributions).toBe(3 * count);
  expect(dropped.contributions).toBe(3 * (TRAINERS.length - count));
  expect(new Set([...drawn(1, count), ...drawn(2, count)]).size).toBeGreaterThan(count);
});

test("a late contribution counts if its trainer was drawn for the round that it was meant for", () => {
  const job = begin({ sample: 5, late: "carry", lateDecay: 0 });
  job.close(0);
  const [first, second] = [drawn(1, 5), drawn(2, 5)];
  const early = TRAINERS.find((id) => first.has(id) && !second.has(id)) ?? "";
  const never = TRAINERS.find((id) => !first.has(id) && second.has(id)) ?? "";
  expect(job.contribute(early, 1, 1, { base: 0 }).code).toBeUndefined();
  expect(job.contribute(never, 1, 1, { base: 0, id: 1 }).code).toBe("NOT_SAMPLED");
  expect(job.contribute(never, 1, 1, { base: 1, id: 2 }).code).toBeUndefined();
});

test("the next in order takes the place of a member that leaves", () => {
  const job = begin({ sample: 1 });
  const [chosen = ""] = drawn(1, 1);
  const others = TRAINERS.filter((id) => id !== chosen);
  const [next = ""] = drawn(1, 1, others);
  expect(job.contribute(next, 1).code).toBe("NOT_SAMPLED");
  job.members(others);
  expect(job.contribute(next, 1, 1, { id: 2 }).code).toBeUndefined();
});

test("two jobs, and two fragments, draw different samples", () => {
  const others = [
    { job: "another", fragment: "f", round: 1 },
    { job: SUBJECTS.job, fragment: "g", round: 1 },
  ];
  for (const named of others) expect(sampledMembers(named, TRAINERS, 5)).not.toEqual(drawn(1, 5));
});
