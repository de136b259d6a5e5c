import { expect, test } from "vitest";
import { type Leases, LeaseView } from "../../../src/actors/job/leases.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { type MemoryBucket, memoryLeases } from "../../support/memory-bucket.ts";

// Proves when a lease is called lost: only after a whole lease time of absence during which every
// poll was answered, so that no outage, pause or late start makes the living look dead.

const LEASE_MS = 3_000;
const KEY = "trainer.a";
const a = { owner: "a" };

interface Watched {
  readonly clock: FakeClock;
  readonly leases: Leases;
  readonly bucket: MemoryBucket;
  readonly view: LeaseView;
  readonly errors: string[];
}

async function watch(): Promise<Watched> {
  const clock = new FakeClock();
  const { leases, bucket } = memoryLeases(LEASE_MS, clock);
  const errors: string[] = [];
  const onError = ({ code }: { code: string }): void => void errors.push(code);
  const view = new LeaseView({ leases, prefix: "trainer.", leaseMs: LEASE_MS, onError, clock });
  await view.start();
  return { clock, leases, bucket, view, errors };
}

/** Whether the lease is called lost at some time while the clock goes on by `ms`. */
async function isEverLost({ clock, view }: Watched, ms: number): Promise<boolean> {
  for (let passed = 0; passed < ms; passed += 100) {
    await clock.advance(100);
    if (view.isLost(KEY)) return true;
  }
  return false;
}

test("one that was never seen is lost a lease time after the view began", async () => {
  const watched = await watch();
  expect(watched.view.isLost(KEY)).toBe(false);
  expect(await isEverLost(watched, LEASE_MS - 100)).toBe(false);
  expect(await isEverLost(watched, LEASE_MS / 3)).toBe(true);
  expect(watched.view.settled).toBe(true);
});

test("one that is renewed is never lost", async () => {
  const watched = await watch();
  await watched.leases.claim(KEY, a);
  for (let i = 0; i < 10; i++) {
    expect(await isEverLost(watched, LEASE_MS / 2)).toBe(false);
    await watched.leases.renew(KEY, a);
  }
  expect(watched.view.present).toEqual(new Set([KEY]));
});

test("one that runs out is lost a lease time after it ran out, not before", async () => {
  const watched = await watch();
  await watched.leases.claim(KEY, a);
  expect(await isEverLost(watched, 2 * LEASE_MS - 100)).toBe(false);
  expect(await isEverLost(watched, LEASE_MS)).toBe(true);
  await watched.leases.claim(KEY, a);
  await watched.clock.advance(LEASE_MS / 3);
  expect(watched.view.isLost(KEY)).toBe(false);
});

test("one that comes back for a moment starts the time again", async () => {
  const watched = await watch();
  await watched.clock.advance(LEASE_MS - 100);
  await watched.leases.claim(KEY, a);
  await watched.clock.advance(LEASE_MS / 3);
  await watched.leases.release(KEY, a);
  expect(await isEverLost(watched, LEASE_MS - 100)).toBe(false);
  expect(await isEverLost(watched, LEASE_MS)).toBe(true);
});

test("an outage of the broker counts for nobody, and each failed poll is told", async () => {
  const watched = await watch();
  await watched.clock.advance(LEASE_MS / 2);
  watched.bucket.losesRequest = () => true;
  expect(await isEverLost(watched, 5 * LEASE_MS)).toBe(false);
  expect(new Set(watched.errors)).toEqual(new Set(["TIMEOUT"]));
  watched.bucket.losesRequest = () => false;
  expect(await isEverLost(watched, LEASE_MS)).toBe(false);
  expect(await isEverLost(watched, LEASE_MS)).toBe(true);
});

test("after an outage, one that was held before is presumed for a lease time to come back in", async () => {
  const watched = await watch();
  await watched.leases.claim(KEY, a);
  await watched.leases.claim("trainer.b", a);
  await watched.clock.advance(LEASE_MS / 3);
  watched.bucket.losesRequest = () => true;
  await watched.clock.advance(5 * LEASE_MS);
  expect(watched.view.presumed).toEqual(new Set([KEY, "trainer.b"]));
  watched.bucket.losesRequest = () => false;
  await watched.leases.claim(KEY, a);
  await watched.clock.advance(LEASE_MS / 2);
  expect(watched.view.present).toEqual(new Set([KEY]));
  expect(watched.view.presumed).toEqual(new Set([KEY, "trainer.b"]));
  // It came back, and has gone since.
  await watched.leases.release(KEY, a);
  await watched.clock.advance(LEASE_MS / 3);
  expect(watched.view.presumed).toEqual(new Set(["trainer.b"]));
  await watched.clock.advance(LEASE_MS);
  expect(watched.view.presumed).toEqual(new Set());
});

test("after an outage, one whose holder is gone for good is not presumed", async () => {
  const watched = await watch();
  await watched.leases.claim(KEY, a);
  await watched.leases.claim("trainer.b", a);
  await watched.clock.advance(LEASE_MS / 3);
  watched.bucket.losesRequest = () => true;
  await watched.clock.advance(5 * LEASE_MS);
  watched.view.gone(KEY);
  expect(watched.view.presumed).toEqual(new Set(["trainer.b"]));
  watched.bucket.losesRequest = () => false;
  await watched.view.look();
  expect(watched.view.presumed).toEqual(new Set(["trainer.b"]));
});

test("without an outage, one that was released is presumed no longer, and each change is told", async () => {
  const clock = new FakeClock();
  const { leases } = memoryLeases(LEASE_MS, clock);
  let changes = 0;
  const onChange = (): void => void changes++;
  const view = new LeaseView({ leases, prefix: "trainer.", leaseMs: LEASE_MS, onChange, clock });
  await view.start();
  expect(changes).toBe(0);
  await leases.claim(KEY, a);
  await clock.advance(LEASE_MS / 3);
  expect([changes, view.presumed]).toEqual([1, new Set([KEY])]);
  await leases.release(KEY, a);
  await clock.advance(LEASE_MS / 3);
  expect([changes, view.presumed]).toEqual([2, new Set()]);
  await view.stop();
});

test("a single poll without an answer starts the time again", async () => {
  const watched = await watch();
  await watched.clock.advance(LEASE_MS / 2);
  let failed = 0;
  watched.bucket.losesRequest = () => failed++ === 0;
  expect(await isEverLost(watched, LEASE_MS + LEASE_MS / 3)).toBe(false);
  expect(failed).toBeGreaterThan(1);
  expect(await isEverLost(watched, LEASE_MS)).toBe(true);
});

test("what was lost before an outage is not after it", async () => {
  const watched = await watch();
  expect(await isEverLost(watched, 2 * LEASE_MS)).toBe(true);
  watched.view.disconnected();
  expect(watched.view.isLost(KEY)).toBe(false);
  expect(watched.view.settled).toBe(false);
});

test("a pause of this process counts for nobody", async () => {
  const watched = await watch();
  await watched.clock.advance(LEASE_MS / 3);
  watched.clock.pause(5 * LEASE_MS);
  expect(await isEverLost(watched, LEASE_MS - 100)).toBe(false);
  expect(await isEverLost(watched, LEASE_MS)).toBe(true);
});

test("after stop nothing is polled", async () => {
  const { clock, bucket, view } = await watch();
  await view.stop();
  const polls = bucket.calls.length;
  await clock.advance(5 * LEASE_MS);
  expect(bucket.calls).toHaveLength(polls);
  expect(clock.waiting).toBe(0);
});
