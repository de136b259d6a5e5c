// Proves how the end of trainers is told: a line for each way in which some ended, signals by their names.
import { expect, test } from "vitest";
import { inWords } from "../../../src/cli/run/guarded-process.ts";
import type { TrainerEnd } from "../../../src/cli/run/launch.ts";
import { endLines } from "../../../src/cli/run/run-trainers.ts";

function end(rank: number, exitCode: number, restarts = 0): TrainerEnd {
  return { rank, trainer: `trainer-${rank}`, exitCode, restarts };
}

test("trainers that ended in the same way share a line, in the order of ranks", () => {
  const ends = [end(5, 0), end(3, 137, 2), end(0, 0), end(4, 0, 1)];
  expect(endLines(ends, 8)).toEqual([
    "ranks 0, 5      ended well",
    "ranks 1-2, 6-7  stopped",
    `rank 3          ended ${inWords(137)}; it was started again 2 times`,
    "rank 4          ended well; it was started again 1 time",
  ]);
});

test("a signal has its name; a code that stands for none is a number", () => {
  expect(inWords(3)).toBe("with exit code 3");
  expect(inWords(143)).toBe("with exit code 143 (SIGTERM)");
  expect(inWords(137)).toContain("memory has run out");
  expect(inWords(255)).toBe("with exit code 255");
});
