// Proves how amounts read: at the borders of units, where rounding could show "1024 KiB" or
// "60 s", and that ranges of numbers name each number once.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  formatBytes,
  formatCount,
  formatDuration,
  formatRanges,
} from "../../../src/cli/output/amounts.ts";

describe("formatBytes", () => {
  test.each([
    [0, "0 B"],
    [1023, "1023 B"],
    [1024, "1 KiB"],
    [1536, "1.5 KiB"],
    [100 * 1024, "100 KiB"],
    [1024 * 1024 - 1, "1 MiB"],
    [1023.4 * 1024, "1023 KiB"],
    [1023.5 * 1024, "1 MiB"],
    [4 * 1024 * 1024, "4 MiB"],
    [3.5 * 1024 ** 3, "3.5 GiB"],
    [2 ** 60, "1024 PiB"],
  ])("%d", (bytes, text) => {
    expect(formatBytes(bytes)).toBe(text);
  });

  test("never shows 1024 of a unit that has a larger one", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 2 ** 50 }), (bytes) => {
        expect(Number.parseFloat(formatBytes(bytes))).toBeLessThan(1024);
      }),
    );
  });
});

test.each([
  [0, "0 ms"],
  [999, "999 ms"],
  [1000, "1 s"],
  [4230, "4.2 s"],
  [59_940, "59.9 s"],
  [59_960, "1 min"],
  [185_000, "3 min 5 s"],
  [3_600_000, "1 h"],
  [7_800_000, "2 h 10 min"],
])("formatDuration of %d", (durationMs, text) => {
  expect(formatDuration(durationMs)).toBe(text);
});

test("formatCount", () => {
  expect([0, 1, 2].map((n) => formatCount(n, "host"))).toEqual(["0 hosts", "1 host", "2 hosts"]);
});

describe("formatRanges", () => {
  test.each([
    [[], ""],
    [[3], "3"],
    [[2, 0, 1], "0-2"],
    [[0, 2, 3, 7], "0, 2-3, 7"],
  ])("%j", (numbers, text) => {
    expect(formatRanges(numbers)).toBe(text);
  });

  test("names each number once, and no other", () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.integer({ min: 0, max: 40 })), (numbers) => {
        const named = formatRanges(numbers)
          .split(", ")
          .filter((range) => range !== "")
          .flatMap((range) => {
            const [first = 0, last = first] = range.split("-").map(Number);
            return Array.from({ length: last - first + 1 }, (_, i) => first + i);
          });
        expect(named).toEqual([...numbers].sort((a, b) => a - b));
      }),
    );
  });
});
