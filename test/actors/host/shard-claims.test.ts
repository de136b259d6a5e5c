// Proves that a host hears of each claim of a shard's lease, also of one that its keeper makes because the lease
// had vanished, and that the lease then is in a new tenure; and that a host which ends holds the lease of a shard
// until it has finished with it. The leases of a host that is known to be dead are ended, and its shards claimed, at once.
// The leases are in memory.
import { afterEach, expect, test } from "vitest";
import { systemClock } from "../../../src/actors/concurrent.ts";
import { placeShard, ShardClaims } from "../../../src/actors/host/shard-claims.ts";
import { LeaseClock, type LeaseValue } from "../../../src/actors/job/leases.ts";
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

test("of a host that is dead all leases end, its shards are claimed, and others keep theirs", async () => {
  const shards = 16;
  // Within the test, no lease ends and nothing is polled.
  const leaseMs = 20 * HANG_MS;
  const { leases } = memoryLeases(leaseMs, systemClock);
  const [dead, other] = ["dead", "other"].map((host) => ({ owner: `run of ${host}`, host }));
  const keys = ["host.dead", ...Array.from({ length: shards - 1 }, (_, shard) => `shard.${shard}`)];
  for (const key of keys) await leases.claim(key, dead as LeaseValue);
  for (const key of ["host.other", "shard.15"]) await leases.claim(key, other as LeaseValue);
  const claimed = new Set<number>();
  claims = new ShardClaims({
    ...{ job: "j", shards, host: "h", value: { owner: "a", host: "h" }, leases, leaseMs },
    clock: new LeaseClock(shards),
    events: {
      onClaimed: (shard) => claimed.add(shard),
      onReleased: () => undefined,
      onLost: () => undefined,
      onError: () => undefined,
    },
  });
  await claims.start();
  expect([...claimed]).toEqual([]);
  await claims.releaseDead("dead");
  const share = Array.from({ length: shards }, (_, shard) => shard).filter(
    (shard) => shard !== 15 && placeShard("j", shard, ["h", "other"]) === "h",
  );
  expect(share.length).toBeGreaterThan(0);
  expect([...claimed].sort((a, b) => a - b)).toEqual(share);
  expect(await leases.read("host.dead")).toBeUndefined();
  expect([await leases.read("host.other"), await leases.read("shard.15")]).toEqual([other, other]);
});
