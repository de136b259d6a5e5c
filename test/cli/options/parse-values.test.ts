// Proves that values of flags are read with their units, and that what cannot be read names the
// expected form and what was received.
import { describe, expect, test } from "vitest";
import { hostArguments, toHostSettings } from "../../../src/cli/options/host-options.ts";
import {
  parseGuard,
  parseId,
  parseJob,
  parseSize,
  parseTimeout,
  wholeNumber,
} from "../../../src/cli/options/parse-values.ts";

describe("wholeNumber", () => {
  test("takes its range, both ends included", () => {
    expect(["0", "65535", "0080"].map(wholeNumber(0, 65_535))).toEqual([0, 65_535, 80]);
  });

  test.each(["", "-1", "65536", "1.5", "1e3", "0x10", " 1", "many"])("refuses %j", (text) => {
    expect(() => wholeNumber(0, 65_535)(text)).toThrow(
      `expected a whole number from 0 to 65535; received ${JSON.stringify(text)}`,
    );
  });
});

describe("parseSize", () => {
  test.each([
    ["1048576", 1_048_576],
    ["1048576B", 1_048_576],
    ["512MB", 512_000_000],
    ["512M", 512_000_000],
    ["1.5KiB", 1536],
    ["2 GiB", 2 * 1024 ** 3],
    ["1tib", 1024 ** 4],
  ])("%s", (text, bytes) => {
    expect(parseSize(text)).toBe(bytes);
  });

  test.each(["", "0", "-1", "1XB", "GiB", "1e9", "99999999TiB"])("refuses %j", (text) => {
    expect(() => parseSize(text)).toThrow(/expected a size such as .*; received/);
  });
});

describe("parseTimeout", () => {
  test.each([
    ["500ms", 500],
    ["5", 5000],
    ["1.5s", 1500],
    ["1m30s", 90_000],
    ["1h", 3_600_000],
  ])("%s", (text, durationMs) => {
    expect(parseTimeout(text)).toBe(durationMs);
  });

  test.each(["", "0", "-5s", "5 s", "1d", "soon", "9999h"])("refuses %j", (text) => {
    expect(() => parseTimeout(text)).toThrow(/expected a duration .*; received/);
  });
});

test("names are checked as the protocol has them", () => {
  expect(parseJob("mnist-2")).toBe("mnist-2");
  expect(() => parseJob("a.b")).toThrow(/job name: expected .*; received "a.b"/);
  expect(parseId("worker 1")).toBe("worker 1");
  expect(() => parseId("x".repeat(65))).toThrow(/at most 64 bytes/);
});

test("flags of a host become its settings, and arguments of another", () => {
  const flags = {
    job: "j",
    shards: 8,
    journal: "memory",
    journalLimit: 2 ** 24,
    retain: 1024,
    modelDir: "/m",
  } as const;
  expect(toHostSettings(flags)).toEqual({
    job: "j",
    shards: 8,
    journal: "memory",
    journalBytesMax: 2 ** 24,
    retainBytes: 1024,
    modelDirectory: "/m",
  });
  expect(toHostSettings({ job: "j" })).toEqual({ job: "j" });
  expect(hostArguments(flags)).toEqual([
    ...["--shards", "8", "--journal", "memory"],
    ...["--journal-limit", "16777216", "--retain", "1024", "--model-dir", "/m"],
  ]);
});

test("a guard is checked, becomes a setting, and goes to other hosts as it was given", () => {
  const flags = { job: "j", guard: '{"factor": 3, "action": "clip"}' };
  expect(toHostSettings(flags).guard).toMatchObject({ factor: 3, action: "clip", window: 32 });
  expect(hostArguments(flags)).toEqual(["--guard", flags.guard]);
  expect(parseGuard("off")).toBe("off");
  expect(() => parseGuard('{"factor": 0}')).toThrow("--guard.factor: expected a finite number");
  expect(() => parseGuard("{")).toThrow(/expected text in JSON or YAML/);
});

test("flags of steps become a setting, and arguments of another host", () => {
  const flags = { job: "j", sync: "sync", trainers: 4, backups: 1, reduce: "sum" } as const;
  expect(toHostSettings(flags).synchronization).toEqual({
    ...{ mode: "sync", trainers: 4, backups: 1, reduce: "sum" },
  });
  expect(hostArguments(flags)).toEqual([
    ...["--sync", "sync", "--trainers", "4", "--backups", "1", "--reduce", "sum"],
  ]);
  const ssp = { job: "j", sync: "ssp", trainers: 2, staleness: 0 } as const;
  expect(toHostSettings(ssp).synchronization).toEqual({ mode: "ssp", trainers: 2, staleness: 0 });
  expect(hostArguments(ssp)).toEqual(["--sync", "ssp", "--trainers", "2", "--staleness", "0"]);
  expect(toHostSettings({ job: "j", sync: "async" }).synchronization).toEqual({ mode: "async" });
});
