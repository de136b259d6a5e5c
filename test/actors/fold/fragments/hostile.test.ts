// Proves that contributions which lie, or come from those who may not contribute, are rejected with a typed error and
// change nothing.
import { beforeEach, describe, expect, test } from "vitest";
import { Folded } from "../folded.ts";
import { both, FragmentJob } from "./fragment-job.ts";

let job: FragmentJob;

beforeEach(() => {
  job = new FragmentJob();
});

/** Sends a contribution that must leave the shard as it is. */
function rejected(send: () => { readonly code?: string }): string | undefined {
  const before = job.content();
  const { code } = send();
  expect(job.content()).toBe(before);
  return code;
}

describe("a contribution", () => {
  test.each([
    ["to an unknown fragment", { fragment: "g" }, "UNKNOWN_PARAMETER"],
    ["from a version in the future", { base: 1 }, "BAD_VALUE"],
    ["from a version before the first", { base: -1 }, "BAD_MESSAGE"],
    ["of half a step", { steps: 0.5 }, "BAD_MESSAGE"],
    ["of more tokens than can be counted", { tokens: 2 ** 41 }, "BAD_MESSAGE"],
    ["in a form that there is not", { form: "gradient" as "parameters" }, "BAD_MESSAGE"],
    ["of a part that there is not", { part: 1 }, "BAD_MESSAGE"],
    ["of no parts", { parts: 0 }, "BAD_MESSAGE"],
    ["of more parts than there may be", { parts: 100_000 }, "BAD_MESSAGE"],
    ["of steps that take less than no time", { stepMs: -1 }, "BAD_MESSAGE"],
    ["without a number", { id: 0 }, "BAD_MESSAGE"],
  ])("%s is rejected", (_what, said, code) => {
    expect(rejected(() => job.contribute("alice", 1, 1, said))).toBe(code);
  });

  test.each([
    ["steps", { steps: 0 }],
    ["tokens", { tokens: 0 }],
    ["tokens2/steps", { steps: 0 }],
    ["tokens2/steps", { tokens: 0 }],
  ] as const)("without weight in %s is rejected: %o", (weights, said) => {
    job = new FragmentJob({ weights });
    expect(rejected(() => job.contribute("alice", 1, 1, said))).toBe("BAD_VALUE");
  });

  test("without steps and tokens counts where all weigh the same", () => {
    expect(job.contribute("alice", 1, 1, { steps: 0, tokens: 0 }).code).toBeUndefined();
  });

  test("of somebody who is no member is rejected", () => {
    expect(rejected(() => job.contribute("mallory", 1))).toBe("NOT_MEMBER");
  });

  test("that is not finite is rejected", () => {
    expect(rejected(() => job.contribute("alice", Number.NaN))).toBe("NON_FINITE");
    expect(rejected(() => job.contribute("alice", 1, Number.POSITIVE_INFINITY))).toBe("NON_FINITE");
  });

  test("with a learning rate is rejected", () => {
    const blocks = both(1, 1).map((block) => ({ ...block, lr: 1 }));
    expect(rejected(() => job.send("alice", blocks))).toBe("BAD_VALUE");
  });

  test("without one of the parameters is rejected", () => {
    expect(rejected(() => job.send("alice", both(1, 1).slice(1)))).toBe("BAD_LENGTH");
  });

  test("with a block twice is rejected", () => {
    const blocks = both(1, 1);
    expect(rejected(() => job.send("alice", [...blocks, ...blocks.slice(1)]))).toBe("BAD_INDEX");
  });

  test("with too few elements of a block is rejected", () => {
    const [u] = both(1, 1);
    if (u === undefined) throw new Error("no block");
    const blocks = [u, { parameter: "w", data: new Float32Array(2) }];
    expect(rejected(() => job.send("alice", blocks))).toBe("BAD_LENGTH");
  });

  test("with a block of no fragment, or of another one, is rejected", () => {
    job.journal.init(new Float32Array(2), { trainer: "init", parameter: "free" });
    job.apply();
    const blocks = [...both(1, 1), { parameter: "free", data: new Float32Array(2) }];
    expect(rejected(() => job.send("alice", blocks))).toBe("UNSUPPORTED");
  });

  test("with elements of another type is rejected", () => {
    const blocks = [...both(1, 1).slice(0, 1), { parameter: "w", data: new Float64Array(3) }];
    expect(rejected(() => job.send("alice", blocks))).toBe("BAD_DTYPE");
  });

  test("that asks for its answer elsewhere is rejected", () => {
    const reply = "_INBOX_test.bob.1";
    expect(rejected(() => job.contribute("alice", 1, 1, {}, { reply }))).toBe("BAD_REPLY");
  });

  test("in a job that is not diloco is rejected", () => {
    const other = new Folded();
    other.journal.init(new Float32Array(3), { parameter: "w" });
    other.apply();
    other.journal.contribute({}, [{ parameter: "w", data: new Float32Array(3) }]);
    expect(other.run()).toMatchObject([{ code: "UNSUPPORTED" }]);
  });
});

test("a gradient for a parameter in a fragment is rejected, alone and in a batch", () => {
  const gradient = new Float32Array(3);
  const { journal } = job;
  journal.push(gradient, { op: "grad" }, { trainer: "alice" });
  journal.batch(
    [{ parameter: "w", data: gradient, change: { kind: "push", operation: { op: "grad" } } }],
    { trainer: "alice" },
  );
  const before = job.content();
  expect(job.run()).toMatchObject([{ code: "UNSUPPORTED" }, { code: "UNSUPPORTED" }]);
  expect(job.content()).toBe(before);
});

test("a gradient for a parameter without a fragment is applied at once", () => {
  const config = { learningRate: 1 };
  job.journal.init(new Float32Array(2), { trainer: "init", parameter: "free", config });
  job.journal.push(Float32Array.of(1, 2), { op: "grad" }, { trainer: "alice", parameter: "free" });
  job.apply();
  expect(job.values("free")).toEqual([-1, -2]);
});

test("a clock is rejected: nobody keeps step", () => {
  job.journal.clock("alice", 1);
  expect(job.run()).toMatchObject([{ code: "UNSUPPORTED" }]);
});
