// Proves that a text is one of a list of verbs only if the list has it.
import { expect, test } from "vitest";
import { isOneOf, TRAINER_VERBS } from "../../src/protocol/subjects.ts";

test("a word is one of a list or not", () => {
  expect(isOneOf(TRAINER_VERBS, "push")).toBe(true);
  expect(isOneOf(TRAINER_VERBS, "toString")).toBe(false);
});
