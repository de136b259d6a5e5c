// Proves that work on many items is bounded, keeps their order and stops at the first failure.
import { expect, test } from "vitest";
import { mapConcurrently, REQUESTS_AT_ONCE } from "../../src/actors/concurrent.ts";

const items = Array.from({ length: 500 }, (_, i) => i);
const turn = (): Promise<void> => new Promise(setImmediate);

test("no more than the limit run at once, and results keep the order of the items", async () => {
  let running = 0;
  let most = 0;
  const doubled = await mapConcurrently(items, async (item) => {
    running += 1;
    most = Math.max(most, running);
    await turn();
    running -= 1;
    return item * 2;
  });
  expect(doubled).toEqual(items.map((item) => item * 2));
  expect(most).toBe(REQUESTS_AT_ONCE);
});

test("a failure is thrown once all begun items have ended, and no item is begun after it", async () => {
  let begun = 0;
  let ended = 0;
  const work = mapConcurrently(items, async (item) => {
    begun += 1;
    if (item === 3) throw new Error("three");
    await turn();
    ended += 1;
  });
  await expect(work).rejects.toThrow("three");
  expect(begun).toBe(REQUESTS_AT_ONCE);
  expect(ended).toBe(REQUESTS_AT_ONCE - 1);
});

test("an empty list does nothing", async () => {
  expect(await mapConcurrently([], () => Promise.reject(new Error("never")))).toEqual([]);
});
