import { expect, test } from "vitest";
import { LeaseClock } from "../../../src/actors/job/leases.ts";

// Proves that a lease clock holds what was extended and no longer, and that every claim begins a new tenure, on
// every thread that shares it. A lease counts as renewed since a time if its last renewal was sent after that.

const LEASE_MS = 60_000;

test("a shard's lease is held from its extension until it ends or runs out", () => {
  const main = new LeaseClock(3, LEASE_MS);
  const worker = new LeaseClock(3, LEASE_MS, main.buffer);
  const held = (): boolean[] => [0, 1, 2].map((shard) => worker.tenure(shard) !== undefined);
  expect(held()).toEqual([false, false, false]);
  main.extend(1, 60_000);
  main.extend(2, -1);
  expect(held()).toEqual([false, true, false]);
  main.end(1);
  expect(held()).toEqual([false, false, false]);
});

test("a claim begins a new tenure, which is held once it is extended; a renewal does not", () => {
  const main = new LeaseClock(2, LEASE_MS);
  const worker = new LeaseClock(2, LEASE_MS, main.buffer);
  main.claimed(1);
  expect(worker.tenure(1)).toBeUndefined();
  main.extend(1, 60_000);
  const first = worker.tenure(1);
  expect(first).toBeDefined();
  main.extend(1, 60_000);
  expect(worker.tenure(1)).toBe(first);
  main.claimed(1);
  expect(worker.tenure(1)).toBeUndefined();
  main.extend(1, 60_000);
  expect(worker.tenure(1)).not.toBe(first);
  expect(worker.tenure(0)).toBeUndefined();
});

test("a lease is renewed since a time if its last claim or renewal was sent after it", () => {
  const main = new LeaseClock(2, LEASE_MS);
  const worker = new LeaseClock(2, LEASE_MS, main.buffer);
  const before = process.hrtime.bigint();
  expect(worker.isRenewedSince(1, before)).toBe(false);
  main.extend(1, LEASE_MS);
  expect(worker.isRenewedSince(1, before)).toBe(true);
  expect(worker.isRenewedSince(1, process.hrtime.bigint())).toBe(false);
  // Sent a second ago, and answered now.
  main.extend(1, LEASE_MS - 1_000);
  expect(worker.isRenewedSince(1, before)).toBe(false);
  main.extend(1, LEASE_MS);
  main.end(1);
  expect(worker.isRenewedSince(1, before)).toBe(false);
});
