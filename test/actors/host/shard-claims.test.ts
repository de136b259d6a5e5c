// Proves that a host hears of each claim of a shard's lease, also of one that its keeper makes because the lease
// had vanished, and that the lease then is in a new tenure; and that a host which ends holds the lease of a shard
// until it has finished with it. The leases are in memory.
import { afterEach, expect, test } from "vitest";
import { systemClock } from "../../../src/actors/concurrent.ts";
import { ShardClaims } from "../../../src/actors/host/shard-claims.ts";
import { LeaseClock } from "../../../src/actors/job/leases.ts";
import { HANG_MS } from "../../support/limits.ts";
import { memoryLeases } from "../../support/memory-bucket.ts";

const LEASE_MS = 600;
const VALUE = { owner: "a" };

let claims: ShardClaims | undefined;

afterEach(async () => {
  await claims?.close();
});

test("a lease that had vanished is claimed anew, in a new tenure", async () => {
  const { leases } = memoryLeases(LEASE_MS, systemClock);
  const clock = new LeaseClock(2);
  /** The tenure at each claim. */
  const tenures: unknown[] = [];
  const lost: number[] = [];
  claims = new ShardClaims({
    ...{ job: "j", shards: 2, host: "h", value: VALUE, leases, leaseMs: LEASE_MS, clock },
    events: {
      onClaimed: (shard) => shard === 1 && tenures.push(clock.tenure(shard)),
      onReleased: () => undefined,
      onLost: (shard) => lost.push(shard),
      onError: () => undefined,
    },
  });
  await claims.start();
  expect(tenures).toHaveLength(1);
  await leases.release("shard.1", VALUE);
  await expect.poll(() => tenures.length, { timeout: HANG_MS, interval: 5 }).toBeGreaterThan(1);
  expect(tenures[0]).toBeDefined();
  expect(tenures[1]).toBeDefined();
  expect(tenures[1]).not.toBe(tenures[0]);
  expect(lost).toEqual([1]);
});

test("a lease is released only when its shard is finished, each by itself, and stays held until then", async () => {
  const { leases } = memoryLeases(LEASE_MS, systemClock);
  const released: number[] = [];
  claims = new ShardClaims({
    ...{ job: "j", shards: 2, host: "h", value: VALUE, leases, leaseMs: LEASE_MS },
    clock: new LeaseClock(2),
    events: {
      onClaimed: () => undefined,
      onReleased: (shard) => released.push(shard),
      onLost: () => undefined,
      onError: () => undefined,
    },
  });
  await claims.start();
  let finish: () => void = () => undefined;
  const held = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const closed = claims.close((shard) => (shard === 1 ? held : Promise.resolve()));
  await expect.poll(() => released, { timeout: HANG_MS, interval: 5 }).toEqual([0]);
  expect(await leases.read("shard.1")).toEqual(VALUE);
  expect(await leases.read("shard.0")).toBeUndefined();
  finish();
  await closed;
  expect(released).toEqual([0, 1]);
  expect(await leases.read("shard.1")).toBeUndefined();
});
