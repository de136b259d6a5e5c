// Proves the synchronization of a job: its modes, their defaults, and what is refused.
import { describe, expect, test } from "vitest";
import { synchronizationText, toSynchronization } from "../../../src/protocol/config/index.ts";
import { MEMBERS_MAX } from "../../../src/protocol/limits.ts";
import { refusalOf } from "../refusal.ts";

test.each([
  [undefined, { mode: "async" }],
  [{}, { mode: "async" }],
  ["async", { mode: "async" }],
  [
    { mode: "sync", trainers: 4 },
    { mode: "sync", trainers: 4, backups: 0, reduce: "mean" },
  ],
  [
    { reduce: "sum", backups: 1, trainers: 4, mode: "sync" },
    { mode: "sync", trainers: 4, backups: 1, reduce: "sum" },
  ],
  [
    { mode: "ssp", trainers: 1, staleness: 0 },
    { mode: "ssp", trainers: 1, staleness: 0 },
  ],
])("%j is %j", (input, whole) => {
  expect(toSynchronization(input)).toStrictEqual(whole);
  expect(JSON.stringify(toSynchronization(whole))).toBe(JSON.stringify(whole));
});

test("in words it says all that differs between jobs", () => {
  const words = (input: unknown): string => synchronizationText(toSynchronization(input));
  expect(words("async")).toBe("async");
  expect(words({ mode: "sync", trainers: 4 })).toBe("sync of 4 trainers, mean");
  expect(words({ mode: "sync", trainers: 1, backups: 1, reduce: "sum" })).toBe(
    "sync of 1 trainer and 1 backup, sum",
  );
  expect(words({ mode: "ssp", trainers: 2, staleness: 3 })).toBe("ssp of 2 trainers, staleness 3");
});

describe("it is refused with", () => {
  test.each<[string, unknown]>([
    ["mode", { mode: "bsp" }],
    ["mode", "turbo"],
    ["trainers", "sync"],
    ["trainers", { mode: "async", trainers: 1 }],
    ["trainers", { mode: "sync", trainers: 0 }],
    ["trainers", { mode: "sync", trainers: 1.5 }],
    ["trainers", { mode: "sync", trainers: MEMBERS_MAX + 1 }],
    ["backups", { mode: "sync", trainers: 1, backups: -1 }],
    ["trainers and backups", { mode: "sync", trainers: MEMBERS_MAX, backups: 1 }],
    ["reduce", { mode: "sync", trainers: 1, reduce: "max" }],
    ["staleness", { mode: "sync", trainers: 1, staleness: 1 }],
    ["staleness", { mode: "ssp", trainers: 1 }],
    ["staleness", { mode: "ssp", trainers: 1, staleness: -1 }],
    ["backups", { mode: "ssp", trainers: 1, staleness: 1, backups: 1 }],
    ["map", null],
    ["map", [1]],
    ["map", 7],
  ])("a wrong %s: %j", (what, input) => {
    const error = refusalOf(() => toSynchronization(input));
    expect(error.code).toBe("BAD_CONFIG");
    expect(error.message).toContain(what);
  });
});
