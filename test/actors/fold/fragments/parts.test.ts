// Proves that a contribution of several records counts once all of them are there, in whatever order, and not at all
// otherwise: that its parts are kept within bounds, and forgotten with its session.
import { beforeEach, describe, expect, test } from "vitest";
import type { Contribution } from "../../../../src/protocol/messages/contributions.ts";
import type { Outcome } from "../../../../src/protocol/messages/outcomes.ts";
import { limitedRules } from "../folded.ts";
import { both, FragmentJob, MEMBERS } from "./fragment-job.ts";

let job: FragmentJob;

beforeEach(() => {
  job = new FragmentJob({ merge: "rda" });
});

const [U, W] = both([1, 2, 3, 4], [5, 6, 7]).map((block) => [block]);

/** Sends part 0 or 1 of a contribution of alice, or of another trainer. */
function part(
  number: 0 | 1,
  said: Partial<Contribution> = {},
  trainer = "alice",
  session = 1,
): Outcome {
  const blocks = (number === 0 ? U : W) ?? [];
  return job.send(trainer, blocks, { part: number, parts: 2, ...said }, { session });
}

describe("a contribution in parts", () => {
  test.each([
    [0, 1],
    [1, 0],
  ] as const)("counts with its last part, in the order %i, %i", (first, last) => {
    const values = job.content();
    expect(part(first)).toMatchObject({ version: 0 });
    expect(job.account("alice")).toEqual([0, 0, 0, 0]);
    expect(job.shard.fragments.keptBytes).toBeGreaterThan(0);
    expect(job.content()).not.toBe(values);
    expect(part(last)).toMatchObject({ version: 1 });
    expect(job.account("alice")).toEqual([1, 0, 0, 0]);
    expect(job.shard.fragments.keptBytes).toBe(0);
  });

  test("is the same as in one record, whatever the order of its parts", () => {
    const whole = new FragmentJob({ merge: "rda" });
    whole.contribute("alice", [1, 2, 3, 4], [5, 6, 7]);
    whole.contribute("bob", 3);
    whole.close(2);
    part(1);
    part(0);
    job.contribute("bob", 3);
    job.close(2);
    expect([job.values("u"), job.values("w")]).toEqual([whole.values("u"), whole.values("w")]);
  });

  test("is in the snapshot while it is open", () => {
    part(0);
    const restored = job.restored();
    expect(restored.digest()).toBe(job.shard.digest());
    part(1);
    const last = job.journal.records.at(-1);
    if (last === undefined) throw new Error("no record");
    restored.apply(last);
    expect(restored.digest()).toBe(job.shard.digest());
  });

  test("takes no part twice, and is forgotten then", () => {
    part(0);
    expect(part(0)).toMatchObject({ code: "BAD_INDEX" });
    expect(job.shard.fragments.keptBytes).toBe(0);
    expect(part(1)).toMatchObject({ version: 0 });
  });

  test("takes no part that says something else", () => {
    part(0);
    expect(part(1, { tokens: 5 })).toMatchObject({ code: "BAD_VALUE" });
    expect(job.account("alice")).toEqual([0, 0, 0, 0]);
  });

  test("takes no block in two parts", () => {
    part(0);
    const sent = job.send("alice", both(1, 1), { part: 1, parts: 2 });
    expect(sent).toMatchObject({ code: "BAD_INDEX" });
    expect(job.shard.fragments.keptBytes).toBe(0);
  });

  test("makes room for a later one of the session, and comes too late then", () => {
    part(0);
    expect(part(0, { id: 2 })).toMatchObject({ version: 0 });
    expect(part(1)).toMatchObject({ code: "LATE" });
    expect(part(1, { id: 2 })).toMatchObject({ version: 1 });
  });

  test("is rejected as a whole if its fragment has moved on meanwhile", () => {
    part(0);
    job.contribute("bob", 1);
    job.close(1);
    expect(part(1)).toMatchObject({ code: "LATE" });
    expect(job.account("alice")).toEqual([1, 0, 0, 1]);
    expect(job.shard.fragments.keptBytes).toBe(0);
  });
});

describe("the parts of a session", () => {
  test.each([
    [
      "a newer one sends something",
      () => job.journal.note({ a: 1 }, { trainer: "alice", session: 2 }),
    ],
    ["its trainer is no member any more", () => job.members(["bob"])],
    ["it is ended", () => job.journal.host({ verb: "end", trainer: "alice", session: 1 })],
    ["all are ended", () => job.journal.host({ verb: "floor", session: 5 })],
    ["it is forgotten", () => job.journal.host({ verb: "forget", trainers: [["alice", 1]] })],
    ["the fragment changes", () => job.parameter("x", new Float32Array(1))],
  ])("are forgotten when %s", (_what, happen) => {
    part(0);
    happen();
    job.run();
    expect(job.shard.fragments.keptBytes).toBe(0);
  });

  test("stay when others come and go", () => {
    part(0);
    job.members([...MEMBERS, "dave"]);
    job.journal.host({ verb: "end", trainer: "bob", session: 1 });
    job.run();
    expect(part(1)).toMatchObject({ version: 1 });
  });

  test("of an older session are not completed by the next one", () => {
    part(0);
    expect(part(1, {}, "alice", 2)).toMatchObject({ version: 0 });
    expect(job.account("alice")).toEqual([0, 0, 0, 0]);
  });
});

test.each([
  ["while there is room", 3, undefined],
  ["if it were more than is left for others", 2.9, "BUSY"],
] as const)("a part is kept %s", (_what, share, code) => {
  part(0);
  const keptContributionBytesMax = Math.floor(share * job.shard.fragments.keptBytes);
  const knownRules = limitedRules({ keptContributionBytesMax });
  job = new FragmentJob({ merge: "rda" }, undefined, { knownRules });
  expect(part(0).code).toBeUndefined();
  expect(part(0, {}, "bob").code).toBe(code);
  expect(part(1)).toMatchObject({ version: 1 });
});
