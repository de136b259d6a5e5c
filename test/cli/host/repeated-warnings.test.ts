// Proves that a warning that comes again and again is printed once a minute, with how often it came, that others
// are not held back by it, and that no more texts are remembered than a bound.
import { expect, test } from "vitest";
import { RepeatedWarnings } from "../../../src/cli/host-events.ts";

test("the same warning is printed once a minute, with how often it came", () => {
  const repeated = new RepeatedWarnings();
  expect(repeated.toPrint("no broker", 0)).toBe("no broker");
  expect(repeated.toPrint("no broker", 250)).toBeUndefined();
  expect(repeated.toPrint("no lease", 300)).toBe("no lease");
  expect(repeated.toPrint("no broker", 59_999)).toBeUndefined();
  expect(repeated.toPrint("no broker", 60_000)).toBe("no broker (2 times more in the meantime)");
  expect(repeated.toPrint("no broker", 60_250)).toBeUndefined();
  expect(repeated.toPrint("no broker", 120_000)).toBe("no broker (once more in the meantime)");
  expect(repeated.toPrint("no broker", 180_000)).toBe("no broker");
});

test("of too many texts the oldest is forgotten", () => {
  const repeated = new RepeatedWarnings();
  for (let i = 0; i < 257; i++) expect(repeated.toPrint(`text ${i}`, i)).toBe(`text ${i}`);
  expect(repeated.toPrint("text 1", 300)).toBeUndefined();
  expect(repeated.toPrint("text 0", 300)).toBe("text 0");
});
