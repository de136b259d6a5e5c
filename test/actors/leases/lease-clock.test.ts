// Proves that a lease clock holds what was extended and no longer, on every thread that shares it.
import { expect, test } from "vitest";
import { LeaseClock } from "../../../src/actors/leases/lease-clock.ts";

test("a shard's lease is held from its extension until it ends or runs out", () => {
  const main = new LeaseClock(3);
  const worker = new LeaseClock(3, main.buffer);
  expect([0, 1, 2].map((shard) => worker.held(shard))).toEqual([false, false, false]);
  main.extend(1, 60_000);
  main.extend(2, -1);
  expect([0, 1, 2].map((shard) => worker.held(shard))).toEqual([false, true, false]);
  main.end(1);
  expect(worker.held(1)).toBe(false);
});
