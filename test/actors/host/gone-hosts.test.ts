// Proves that the leases of a host are ended as soon as its connections have been closed for a second, and in no other case:
// not of one that is slow, that is connected again before, that another broker may still have, that renews its leases
// meanwhile, or that has come back. Leases in memory, a clock moved by hand, and brokers that say what the test wants.
import { beforeEach, describe, expect, test } from "vitest";
import { GoneHosts, type PresenceAsker } from "../../../src/actors/host/gone-hosts.ts";
import type { Leases, LeaseValue } from "../../../src/actors/job/leases.ts";
import type { PserverError } from "../../../src/protocol/index.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { type MemoryBucket, memoryLeases } from "../../support/memory-bucket.ts";

/** None ends in a test. */
const LEASE_MS = 1_000_000;
const KEYS = ["host.b", "shard.1", "shard.2", "declined.3.b"];

const own: LeaseValue = { owner: "run a", host: "a", brokers: ["N1"] };
const other: LeaseValue = { owner: "run b", host: "b", brokers: ["N1", "N2"] };

let clock: FakeClock;
let leases: Leases;
let bucket: MemoryBucket;
let gone: GoneHosts;
/** Runs of which the own broker says that nobody listens. */
let absent: Set<string>;
/** Brokers that say so of every run, when they are asked themselves. */
let closedAt: Set<string>;
/** What the brokers were asked, and what happens before they answer. */
let asked: string[][];
let beforeAnswer: () => Promise<unknown>;
let ended: string[];
let errors: PserverError[];

beforeEach(async () => {
  clock = new FakeClock();
  ({ leases, bucket } = memoryLeases(LEASE_MS, clock));
  [absent, closedAt, asked, ended, errors] = [new Set(), new Set(["N1", "N2"]), [], [], []];
  beforeAnswer = () => Promise.resolve();
  const asker: PresenceAsker = {
    isAbsent: (run) => Promise.resolve(absent.has(run)),
    isAbsentAt: async (run, brokers) => {
      asked.push([run, ...brokers]);
      await beforeAnswer();
      return brokers.length > 0 && brokers.every((broker) => closedAt.has(broker));
    },
  };
  gone = new GoneHosts({
    ...{ leases, asker, run: own.owner, clock },
    prefixes: ["host.", "shard.", "declined."],
    onEnded: async (key) => void ended.push(key),
    onError: (error) => errors.push(error),
  });
  await leases.claim("host.a", own);
  await leases.claim("shard.0", own);
  for (const key of KEYS) await leases.claim(key, other);
});

/** The keys of the leases that a run holds. */
async function heldBy(run: LeaseValue): Promise<string[]> {
  const lists = await Promise.all(
    ["host.", "shard.", "declined."].map((each) => leases.list(each)),
  );
  const held = lists.flatMap((list) => [...list]);
  return held.filter(([, { value }]) => value.owner === run.owner).map(([key]) => key);
}

describe("the leases of another host", () => {
  test("are ended when its connections have been closed for a second, and no others", async () => {
    gone.start();
    absent.add(other.owner);
    await clock.advance(900);
    expect(await heldBy(other)).toEqual(KEYS);
    await clock.advance(500);
    expect(await heldBy(other)).toEqual([]);
    expect(await heldBy(own)).toEqual(["host.a", "shard.0"]);
    expect(asked).toEqual([[other.owner, "N1", "N2"]]);
    expect([ended, errors]).toEqual([["host.b"], []]);
    await gone.stop();
  });

  test("stay while it listens, whatever it does otherwise", async () => {
    gone.start();
    await clock.advance(60_000);
    expect(await heldBy(other)).toEqual(KEYS);
    expect(asked).toEqual([]);
    await gone.stop();
  });

  test.each([
    ["it listens again", (): void => void absent.delete(other.owner)],
    ["this host itself had no connection", (): void => gone.disconnected()],
  ])("stay if %s within the second, which then begins anew", async (_what, interrupt) => {
    gone.start();
    for (let i = 0; i < 10; i++) {
      absent.add(other.owner);
      await clock.advance(500);
      interrupt();
      await clock.advance(300);
    }
    expect(asked).toEqual([]);
    await gone.stop();
  });

  test("stay if a broker that they name does not say so, and are looked at again later", async () => {
    gone.start();
    absent.add(other.owner);
    closedAt.delete("N2");
    await clock.advance(4_000);
    expect(await heldBy(other)).toEqual(KEYS);
    expect(asked).toHaveLength(1);
    closedAt.add("N2");
    await clock.advance(4_000);
    expect(await heldBy(other)).toEqual([]);
    expect(asked).toHaveLength(2);
    await gone.stop();
  });

  test("stay if they name no broker", async () => {
    for (const key of KEYS) await leases.renew(key, { owner: other.owner, host: "b" });
    gone.start();
    absent.add(other.owner);
    await clock.advance(4_000);
    expect(await heldBy(other)).toEqual(KEYS);
    await gone.stop();
  });

  test("stay if they were renewed while the brokers were asked", async () => {
    gone.start();
    absent.add(other.owner);
    beforeAnswer = async () => {
      for (const key of KEYS.slice(1)) await leases.renew(key, other);
    };
    await clock.advance(1_500);
    expect(asked).toHaveLength(1);
    expect(await heldBy(other)).toEqual(KEYS.slice(1));
    await gone.stop();
  });

  test("stay after it has come back, whatever happens then", async () => {
    gone.start();
    absent.add(other.owner);
    await clock.advance(1_500);
    expect(ended).toEqual(["host.b"]);
    for (const key of KEYS) await leases.claim(key, other);
    gone.changed();
    await clock.advance(60_000);
    expect(await heldBy(other)).toEqual(KEYS);
    expect(ended).toEqual(["host.b"]);
    await gone.stop();
  });

  test("are taken for ended if another host has ended them", async () => {
    gone.start();
    await clock.advance(300);
    absent.add(other.owner);
    for (const key of KEYS) await leases.release(key, other);
    await clock.advance(1_500);
    expect(ended).toEqual(["host.b"]);
    await gone.stop();
  });

  test("are ended of a host that has joined later", async () => {
    const third: LeaseValue = { owner: "run c", host: "c", brokers: ["N1"] };
    gone.start();
    await clock.advance(300);
    await leases.claim("host.c", third);
    absent.add(third.owner);
    await clock.advance(5_000);
    expect(await heldBy(third)).toEqual(["host.c"]);
    gone.changed();
    await clock.advance(1_500);
    expect(await heldBy(third)).toEqual([]);
    expect(await heldBy(other)).toEqual(KEYS);
    await gone.stop();
  });

  test("are ended once they can be listed again", async () => {
    gone.start();
    absent.add(other.owner);
    bucket.losesRequest = () => true;
    await clock.advance(5_000);
    expect(errors.map(({ code }) => code)).toContain("TIMEOUT");
    bucket.losesRequest = () => false;
    await clock.advance(3_000);
    expect(await heldBy(other)).toEqual([]);
    await gone.stop();
  });
});

describe("an earlier run of a host", () => {
  test("has all its leases ended if its connections have been closed for a second", async () => {
    absent.add(other.owner);
    const isEnded = gone.endHolder("host.b");
    await clock.advance(1_500);
    expect(await isEnded).toBe(true);
    expect(await heldBy(other)).toEqual([]);
  });

  test("keeps them if it is there", async () => {
    expect(await gone.endHolder("host.b")).toBe(false);
    absent.add(other.owner);
    const isEnded = gone.endHolder("host.b");
    await clock.advance(500);
    absent.delete(other.owner);
    await clock.advance(500);
    expect(await isEnded).toBe(false);
    expect(await heldBy(other)).toEqual(KEYS);
  });

  test("is none if nobody holds the lease", async () => {
    expect(await gone.endHolder("host.c")).toBe(true);
  });
});
