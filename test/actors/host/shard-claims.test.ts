// Proves that a host hears of each claim of a shard's lease, also of one that its keeper makes because the lease
// had vanished, and that the lease then is in a new tenure; and that a host which ends holds the lease of a shard
// until it has finished with it. The leases of a host that is dead are ended, and its shards claimed.
// The leases are in memory.
import { afterEach, describe, expect, test } from "vitest";
import { systemClock } from "../../../src/actors/concurrent.ts";
import type { PresenceAsker } from "../../../src/actors/host/gone-hosts.ts";
import { placeShard, ShardClaims } from "../../../src/actors/host/shard-claims.ts";
import { LeaseClock, type Leases, type LeaseValue } from "../../../src/actors/job/leases.ts";
import { HANG_MS } from "../../support/limits.ts";
import { memoryLeases } from "../../support/memory-bucket.ts";

const LEASE_MS = 600;
const VALUE = { owner: "a" };

/** No broker says that a host is gone. */
const ALL_PRESENT: PresenceAsker = {
  isAbsent: () => Promise.resolve(false),
  isAbsentAt: () => Promise.resolve(false),
};

let claims: ShardClaims | undefined;

afterEach(async () => {
  await claims?.close();
});

test("a lease that had vanished is claimed anew, in a new tenure", async () => {
  const { leases } = memoryLeases(LEASE_MS, systemClock);
  const clock = new LeaseClock(2, LEASE_MS);
  /** The tenure at each claim. */
  const tenures: unknown[] = [];
  const lost: number[] = [];
  claims = new ShardClaims({
    ...{ job: "j", shards: 2, host: "h", value: () => VALUE, leases, leaseMs: LEASE_MS, clock },
    asker: ALL_PRESENT,
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
    ...{ job: "j", shards: 2, host: "h", value: () => VALUE, leases, leaseMs: LEASE_MS },
    clock: new LeaseClock(2, LEASE_MS),
    asker: ALL_PRESENT,
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

describe("all leases of a host end, and its shards are claimed, while others keep theirs,", () => {
  const shards = 16;
  // Within the test, no lease ends and nothing is polled.
  const leaseMs = 20 * HANG_MS;
  const brokers = ["N"];
  const dead: LeaseValue = { owner: "run of dead", host: "dead", brokers };
  const other: LeaseValue = { owner: "run of other", host: "other", brokers };
  const share = Array.from({ length: shards }, (_, shard) => shard).filter(
    (shard) => shard !== 15 && placeShard("j", shard, ["h", "other"]) === "h",
  );
  let leases: Leases;
  let claimed: Set<number>;

  async function start(asker: PresenceAsker): Promise<ShardClaims> {
    ({ leases } = memoryLeases(leaseMs, systemClock));
    claimed = new Set();
    const own = Array.from({ length: shards - 1 }, (_, shard) => `shard.${shard}`);
    for (const key of ["host.dead", ...own]) await leases.claim(key, dead);
    for (const key of ["host.other", "shard.15"]) await leases.claim(key, other);
    claims = new ShardClaims({
      ...{ job: "j", shards, host: "h", leases, leaseMs, asker },
      value: () => ({ owner: "a", host: "h", brokers }),
      clock: new LeaseClock(shards, leaseMs),
      events: {
        onClaimed: (shard) => claimed.add(shard),
        onReleased: () => undefined,
        onLost: () => undefined,
        onError: () => undefined,
      },
    });
    await claims.start();
    return claims;
  }

  async function expectTaken(): Promise<void> {
    expect([...claimed].sort((a, b) => a - b)).toEqual(share);
    expect(await leases.read("host.dead")).toBeUndefined();
    const kept = [await leases.read("host.other"), await leases.read("shard.15")];
    expect(kept).toEqual([other, other]);
  }

  test("if it is told to be dead", async () => {
    const started = await start(ALL_PRESENT);
    expect([...claimed]).toEqual([]);
    await started.releaseDead("dead");
    expect(share.length).toBeGreaterThan(0);
    await expectTaken();
  });

  test("if its broker says that it is gone", async () => {
    const isDead = (run: string): Promise<boolean> => Promise.resolve(run === dead.owner);
    await start({ isAbsent: isDead, isAbsentAt: isDead });
    await expect.poll(() => claimed.size, { timeout: HANG_MS, interval: 20 }).toBe(share.length);
    await expectTaken();
  });
});
