// Proves that the page's rates are those of the last seconds, by shard, and never negative when a shard changes hands.
import { expect, test } from "vitest";
import type { JobStatus } from "../../src/page/job.ts";
import { Rates } from "../../src/page/rates.ts";

/** A status of shards, each with its last record and the updates of its owner. */
function status(...shards: (readonly [seq: number, applied: number])[]): JobStatus {
  const entries = shards.map(([seq, applied], shard) => {
    return { shard, state: "serving", seq, updates: { applied, rejected: 0 } };
  });
  return { shards: entries } as unknown as JobStatus;
}

test("one status tells no rate", () => {
  const rates = new Rates();
  expect(rates.rate).toBeUndefined();
  rates.add(status([5, 5]), 1_000);
  expect(rates.rate).toBeUndefined();
});

test("all shards count, over the last ten seconds", () => {
  const rates = new Rates();
  rates.add(status([0, 0], [0, 0]), 0);
  rates.add(status([1_000, 9_000], [0, 0]), 1_000);
  for (let second = 2; second <= 20; second++) {
    const grown = 10 * (second - 1);
    rates.add(status([1_000 + grown, 9_000 + 2 * grown], [grown, grown]), 1_000 * second);
  }
  expect(rates.rate).toEqual({ records: 20, updates: 30 });
});

test("a count that begins anew with another owner counts as it is", () => {
  const rates = new Rates();
  rates.add(status([100, 400]), 0);
  rates.add(status([150, 20]), 10_000);
  expect(rates.rate).toEqual({ records: 5, updates: 2 });
});

test("a shard that nobody reports adds nothing", () => {
  const rates = new Rates();
  rates.add(status([100, 400], [7, 7]), 0);
  rates.add(status([200, 500]), 10_000);
  expect(rates.rate).toEqual({ records: 10, updates: 10 });
});
