import { expect, test } from "vitest";
import { LeaseKeeper, type Leases } from "../../../src/actors/job/leases.ts";
import type { PserverError } from "../../../src/protocol/index.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { type MemoryBucket, memoryLeases } from "../../support/memory-bucket.ts";

// Proves that a kept lease never counts as held for longer than the broker holds it, whatever becomes of the
// renewals, and that its loss is reported once. Leases in memory, a clock moved by hand.

const LEASE_MS = 3_000;
const KEY = "shard.1";

interface Kept {
  readonly clock: FakeClock;
  readonly leases: Leases;
  readonly bucket: MemoryBucket;
  readonly keeper: LeaseKeeper;
  readonly losses: PserverError[];
  /** How it came to be held, each time. */
  readonly held: ("claimed" | "renewed")[];
}

async function keep(): Promise<Kept> {
  const clock = new FakeClock();
  const { leases, bucket } = memoryLeases(LEASE_MS, clock);
  const losses: PserverError[] = [];
  const onLost = (reason: PserverError): void => void losses.push(reason);
  const held: Kept["held"] = [];
  const onHeld = (_remainingMs: number, how: "claimed" | "renewed"): void => void held.push(how);
  const options = { leases, key: KEY, value: () => ({ owner: "a" }), leaseMs: LEASE_MS, clock };
  const keeper = new LeaseKeeper({ ...options, onHeld, onLost });
  expect(keeper.held).toBe(false);
  expect(await keeper.start()).toBe(true);
  return { clock, leases, bucket, keeper, losses, held };
}

test("a lease is held for as long as it is renewed, and given up by stop", async () => {
  const { clock, leases, keeper, losses } = await keep();
  for (let i = 0; i < 30; i++) {
    await clock.advance(LEASE_MS / 3);
    expect(keeper.held).toBe(true);
    expect(await leases.read(KEY)).toEqual({ owner: "a" });
  }
  await keeper.stop();
  expect(keeper.held).toBe(false);
  expect(await leases.read(KEY)).toBeUndefined();
  expect(clock.waiting).toBe(0);
  expect(losses).toEqual([]);
});

test("one that another holds is not kept", async () => {
  const { clock, leases, keeper } = await keep();
  const options = { leases, key: KEY, leaseMs: LEASE_MS, clock, onLost: () => undefined };
  const second = new LeaseKeeper({ ...options, value: () => ({ owner: "b" }) });
  expect(await second.start()).toBe(false);
  expect(second.held).toBe(false);
  await second.stop();
  expect(keeper.held).toBe(true);
  expect(await leases.read(KEY)).toEqual({ owner: "a" });
});

test("without answers it ends a lease time after the last answered renewal was sent", async () => {
  const { clock, bucket, keeper, losses } = await keep();
  await clock.advance(LEASE_MS / 3);
  bucket.losesRequest = () => true;
  await clock.advance(LEASE_MS - 1);
  expect(keeper.held).toBe(true);
  await clock.advance(1);
  expect(keeper.held).toBe(false);
  expect(losses).toMatchObject([{ code: "NOT_OWNER", cause: { code: "TIMEOUT" } }]);
  bucket.losesRequest = () => false;
  await clock.advance(3 * LEASE_MS);
  expect(keeper.held).toBe(false);
  expect(losses).toHaveLength(1);
});

test("its time counts from before the claim was sent, however long the answer took", async () => {
  const clock = new FakeClock();
  const { leases } = memoryLeases(LEASE_MS, clock);
  const claim = leases.claim.bind(leases);
  leases.claim = async (key, value) => {
    const claimed = await claim(key, value);
    clock.pause(LEASE_MS - 1);
    return claimed;
  };
  const options = { leases, key: KEY, value: () => ({ owner: "a" }), leaseMs: LEASE_MS, clock };
  const remaining: number[] = [];
  const onHeld = (remainingMs: number): void => void remaining.push(remainingMs);
  const keeper = new LeaseKeeper({ ...options, onHeld, onLost: () => undefined });
  await keeper.start();
  expect(remaining).toEqual([1]);
  expect(keeper.held).toBe(true);
  clock.pause(1);
  expect(keeper.held).toBe(false);
});

test("it is renewed at once with another value, after a renewal under way, and not once it was given up", async () => {
  const clock = new FakeClock();
  const { leases, bucket } = memoryLeases(LEASE_MS, clock);
  let connections = 1;
  const value = (): { owner: string; connections: number } => ({ owner: "a", connections });
  const onLost = (): void => undefined;
  const keeper = new LeaseKeeper({ leases, key: KEY, value, leaseMs: LEASE_MS, clock, onLost });
  await keeper.start();
  keeper.renewNow();
  connections = 2;
  keeper.renewNow();
  await clock.advance(0);
  expect(await leases.read(KEY)).toEqual({ owner: "a", connections: 2 });
  expect(clock.waiting).toBe(2);
  await keeper.stop();
  bucket.calls.length = 0;
  keeper.renewNow();
  await clock.advance(0);
  expect(bucket.calls).toEqual([]);
});

test("a short outage is survived", async () => {
  const { clock, bucket, keeper, losses } = await keep();
  bucket.losesRequest = () => true;
  await clock.advance((2 * LEASE_MS) / 3);
  bucket.losesRequest = () => false;
  await clock.advance(3 * LEASE_MS);
  expect(keeper.held).toBe(true);
  expect(losses).toEqual([]);
});

test("one that vanished with the broker's memory is taken again, which is no renewal", async () => {
  const { clock, leases, keeper, held } = await keep();
  await clock.advance(LEASE_MS / 3);
  expect(held).toEqual(["claimed", "renewed"]);
  await leases.release(KEY, { owner: "a" });
  await clock.advance(LEASE_MS / 3);
  expect(held).toEqual(["claimed", "renewed", "claimed"]);
  expect(keeper.held).toBe(true);
  expect(await leases.read(KEY)).toEqual({ owner: "a" });
});

test("one that another has taken is lost at the next renewal", async () => {
  const { clock, leases, keeper, losses } = await keep();
  await leases.release(KEY, { owner: "a" });
  await leases.claim(KEY, { owner: "b" });
  await clock.advance(LEASE_MS / 3);
  expect(keeper.held).toBe(false);
  expect(losses).toMatchObject([{ code: "NOT_OWNER" }]);
  await keeper.stop();
  expect(await leases.read(KEY)).toEqual({ owner: "b" });
});

test("it is not held after its time even before a late timer says so", async () => {
  const { clock, keeper } = await keep();
  // The process was paused: time has passed, but no timer has run.
  clock.pause(LEASE_MS);
  expect(keeper.held).toBe(false);
});
