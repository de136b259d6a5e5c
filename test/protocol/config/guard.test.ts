// Proves guards: their defaults, which parameters can have one, and what is refused.
import { describe, expect, test } from "vitest";
import { guardText, toConfig, toGuard } from "../../../src/protocol/config/index.ts";
import { refusalOf } from "../refusal.ts";

const DEFAULT = { action: "reject", history: "trainer", window: 32, warmup: 16, deviations: 6 };

test.each([
  [{}, DEFAULT],
  [
    { action: "clip", factor: 3 },
    { action: "clip", history: "trainer", window: 32, warmup: 16, factor: 3 },
  ],
  [{ window: 8 }, { ...DEFAULT, window: 8, warmup: 8 }],
  [
    { deviations: 3.5, warmup: 1, window: 256, history: "cohort", action: "set-aside" },
    { action: "set-aside", history: "cohort", window: 256, warmup: 1, deviations: 3.5 },
  ],
])("%j is %j", (input, whole) => {
  expect(toGuard(input)).toStrictEqual(whole);
  expect(JSON.stringify(toGuard(whole))).toBe(JSON.stringify(whole));
  expect(toConfig({ guard: input }).guard).toStrictEqual(whole);
});

test("a parameter can have none although its job has one", () => {
  expect(toConfig({ guard: "off" }).guard).toBe("off");
  expect(toConfig("guard: off").guard).toBe("off");
  expect(toConfig({ guard: null })).not.toHaveProperty("guard");
  expect(toConfig({ guard: "off", static: true, allowNonFinite: true }).guard).toBe("off");
});

test("in words it says all that differs between jobs", () => {
  expect(guardText(toGuard({}))).toBe(
    "reject above 6 deviations of the last 32 norms of the trainer, from 16 on",
  );
  expect(guardText(toGuard({ factor: 2.5, history: "cohort", action: "clip", window: 4 }))).toBe(
    "clip above 2.5 times the median of the last 4 norms of all trainers, from 4 on",
  );
});

describe("refused are", () => {
  test.each<[string, unknown]>([
    ["guard.action", { action: "ignore" }],
    ["guard.history", { history: "all" }],
    ["guard.window", { window: 257 }],
    ["guard.window", { window: 0 }],
    ["guard.warmup", { window: 4, warmup: 5 }],
    ["guard.warmup", { warmup: 0 }],
    ["guard.deviations", { deviations: 0 }],
    ["guard.factor", { factor: 0.5 }],
    ["guard", { factor: 2, deviations: 3 }],
    ["guard", { norm: 3 }],
    ["guard", "on"],
  ])("%s of %j", (what, guard) => {
    const error = refusalOf(() => toConfig({ guard }));
    expect(error.code).toBe("BAD_CONFIG");
    expect(error.message).toContain(`config.${what}: expected`);
  });

  test("a guard of a parameter that takes no gradients, or any", () => {
    for (const other of [{ static: true }, { allowNonFinite: true }]) {
      expect(refusalOf(() => toConfig({ guard: {}, ...other })).message).toMatch(/^config.guard: /);
    }
  });
});
