// Proves that learners over links of 1, 3 and 10 Mbit/s train on while what they have learned moves, send as many bytes as
// the encoding says, and are members as long as they live. The links are in this process, and count bytes; nothing here
// depends on how long anything takes.
import { expect, test } from "vitest";
import { runSlowLinks } from "../../../bench/storm/slow-links.ts";
import { HANG_MS } from "../../support/limits.ts";

/**
 * Bytes of an element, and the most that a learner may send for each: a contribution that was sent again would be a third
 * more, while small requests on a busy machine take some hundred bytes a second.
 */
const CASES = [
  { encoding: "int8", bytes: 1 + 4 / 256, most: 1.3 },
  { encoding: "e3m0", bytes: 0.5 + 4 / 256, most: 0.68 },
] as const;
/** Steps after which a result is adopted, if it has come. */
const DELAY = 2;
const ROUNDS = 3;

test.each(CASES)("contributions in $encoding", async ({ encoding, bytes, most }) => {
  const { figures, findings } = await runSlowLinks(encoding, AbortSignal.timeout(HANG_MS));
  expect(findings).toEqual([]);
  expect(figures.map(({ megabits }) => megabits)).toEqual([1, 3, 10]);
  for (const { contributions, sentEach, receivedEach, stepsMeanwhile, outs } of figures) {
    expect(contributions).toBe(ROUNDS);
    expect(sentEach).toBeGreaterThan(bytes);
    expect(sentEach).toBeLessThan(most);
    // Values come as they are, four bytes each.
    expect(receivedEach).toBeGreaterThan(4);
    expect(receivedEach).toBeLessThan(5);
    expect(stepsMeanwhile).toBeGreaterThan(DELAY);
    expect(outs).toBe(0);
  }
});
