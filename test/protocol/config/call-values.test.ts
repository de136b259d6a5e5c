// Proves the checks of what a call gives: numbers are finite, and an element type takes gradients.
import { expect, test } from "vitest";
import { DTYPES, type Dtype } from "../../../src/protocol/dtypes.ts";
import {
  checkFinite,
  checkLearningRate,
  checkTakesGradients,
  checkTakesPushes,
  OPTIMIZERS,
  toConfig,
} from "../../../src/protocol/index.ts";
import { codeOf, refusalOf } from "../refusal.ts";

test("numbers of a call are finite", () => {
  expect(checkLearningRate(0.5)).toBe(0.5);
  for (const value of [Number.NaN, Number.NEGATIVE_INFINITY, "1" as unknown as number]) {
    const error = refusalOf(() => checkFinite(value, "alpha"));
    expect(error.code).toBe("BAD_VALUE");
    expect(error.message).toContain("alpha");
  }
});

test.each(Object.keys(DTYPES) as Dtype[])("%s takes gradients of its optimizers", (dtype) => {
  const taken = OPTIMIZERS.filter((optimizer) => {
    const code = codeOf(() => checkTakesGradients(dtype, toConfig({ optimizer }), "w"));
    expect(["", "UNSUPPORTED"]).toContain(code);
    return code === "";
  });
  const ofOthers = dtype === "bool" ? [] : ["none"];
  expect(taken).toEqual(DTYPES[dtype].float ? OPTIMIZERS : ofOthers);
  expect(codeOf(() => checkTakesPushes(dtype, "w"))).toBe(dtype === "bool" ? "UNSUPPORTED" : "");
});
