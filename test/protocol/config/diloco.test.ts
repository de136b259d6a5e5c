// Proves the settings of rounds: their defaults, what presets fill and what they leave to the caller, how a job is described
// by what was filled, and what is refused.
import { describe, expect, test } from "vitest";
import { DILOCO_ENTRIES } from "../../../src/protocol/config/diloco.ts";
import {
  membersNeeded,
  synchronizationText,
  toConfig,
  toSynchronization,
} from "../../../src/protocol/config/index.ts";
import { refusalOf } from "../refusal.ts";

const DEFAULTS = {
  ...{
    mode: "diloco",
    quorum: 1,
    graceMargin: 1,
    graceSteps: 2,
    graceCapMs: 1000,
    minIntervalMs: 0,
  },
  ...{ weights: "tokens2/steps", merge: "rda", trim: 0.1, krumKeep: 1 },
  ...{ late: "drop", lateDecay: 0, lateDivisor: "linear", lateVersions: 0 },
};

const BUFFERED = {
  ...{ ...DEFAULTS, quorum: 10, graceCapMs: 0, weights: "tokens", merge: "mean" },
  ...{ late: "carry", lateDecay: 1, lateDivisor: "root" },
};

test.each([
  [{}, DEFAULTS],
  [{ late: "carry" }, { ...DEFAULTS, late: "carry", lateDecay: 1 }],
  [{ late: "rebase" }, { ...DEFAULTS, late: "rebase", lateDecay: 1, lateVersions: 1 }],
  [
    { preset: "fedavg", quorum: 3 },
    { ...DEFAULTS, quorum: 3, graceCapMs: 0, weights: "tokens", merge: "mean" },
  ],
  [
    { preset: "fedavg", sample: 8 },
    { ...DEFAULTS, quorum: 8, graceCapMs: 0, weights: "tokens", merge: "mean", sample: 8 },
  ],
  [{ preset: "fedbuff" }, BUFFERED],
  [
    { preset: "fedbuff", quorum: 4, lateDivisor: "linear", merge: "median" },
    { ...BUFFERED, quorum: 4, lateDivisor: "linear", merge: "median" },
  ],
  [
    { preset: "fedbuff", late: "drop" },
    { ...BUFFERED, late: "drop", lateDecay: 0, lateDivisor: "linear" },
  ],
])("%j is %j", (input, whole) => {
  const found = toSynchronization({ mode: "diloco", ...input });
  expect(found).toEqual(whole);
  expect(JSON.stringify(toSynchronization(found))).toBe(JSON.stringify(found));
});

test("every entry but the preset is in the settings of a job", () => {
  const all = toSynchronization({ mode: "diloco", sample: 3, krumFaults: 1 });
  const entries = DILOCO_ENTRIES.filter((entry) => entry !== "preset");
  expect(Object.keys(all).sort()).toEqual(["mode", ...entries].sort());
});

test("in words it says what was filled", () => {
  const words = (input: object): string => {
    return synchronizationText(toSynchronization({ mode: "diloco", ...input }));
  };
  expect(words({ preset: "fedbuff" })).toBe(
    "diloco with quorum 10, grace 1 of 2 steps, at most 0 ms, interval 0 ms, weights tokens, mean, " +
      "late carried with decay 1 under a root",
  );
  expect(words({ sample: 0.1, merge: "trimmed-mean", trim: 0.25, late: "rebase" })).toBe(
    "diloco with quorum 1 of a sample of 0.1, grace 1 of 2 steps, at most 1000 ms, interval 0 ms, " +
      "weights tokens2/steps, trimmed-mean without 0.25 at each end, late rebased on 1 earlier, with decay 1",
  );
  expect(words({ merge: "krum", krumKeep: 3, krumFaults: 2 })).toContain(
    "krum keeping 3 with 2 at fault, late dropped",
  );
});

test("the first round waits for as many as are drawn for one", () => {
  const needed = (input: object): number => {
    return membersNeeded(toSynchronization({ mode: "diloco", ...input }));
  };
  expect([needed({ quorum: 3 }), needed({ quorum: 3, sample: 8 })]).toEqual([3, 8]);
  expect([needed({ quorum: 9, sample: 8 }), needed({ quorum: 3, sample: 0.9 })]).toEqual([9, 3]);
});

describe("a job is refused with", () => {
  test.each<[string, object]>([
    ["preset", { preset: "fedprox" }],
    // Nobody but the caller knows how many trainers there are.
    ["quorum", { preset: "fedavg" }],
    ["quorum", { preset: "fedavg", sample: 0.5 }],
    ["merge", { merge: "mode" }],
    ["trim", { trim: 0.5 }],
    ["trim", { trim: -0.1 }],
    ["krumFaults", { krumFaults: -1 }],
    ["krumKeep", { krumKeep: 0 }],
    ["sample", { sample: 0 }],
    ["sample", { sample: 1.5 }],
    ["sample", { sample: 4097 }],
    ["late", { late: "keep" }],
    ["lateDecay", { lateDecay: 1 }],
    ["lateDivisor", { lateDivisor: "root" }],
    ["lateDivisor", { late: "carry", lateDivisor: "square" }],
    ["lateVersions", { late: "carry", lateVersions: 1 }],
    ["lateVersions", { late: "rebase", lateVersions: 17 }],
    ["lateVersions", { late: "rebase", lateVersions: 0 }],
  ])("a wrong %s: %j", (what, input) => {
    const error = refusalOf(() => toSynchronization({ mode: "diloco", ...input }));
    expect(error.code).toBe("BAD_CONFIG");
    expect(error.message).toContain(`diloco.${what}`);
  });
});

describe("a parameter", () => {
  test("may have a merge, and with it what that trims", () => {
    const config = { fragment: "f", merge: "trimmed-mean", trim: 0.2 };
    expect(toConfig(config)).toMatchObject(config);
  });

  test.each([
    ["without that merge", { fragment: "f", merge: "median", trim: 0.2 }],
    ["without a merge", { fragment: "f", trim: 0.2 }],
    ["that leaves nothing", { fragment: "f", merge: "trimmed-mean", trim: 0.5 }],
  ])("is refused with a trim %s", (_what, config) => {
    expect(refusalOf(() => toConfig(config)).message).toContain("config.trim");
  });
});
