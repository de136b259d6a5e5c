import { expect, test } from "vitest";
import { KvLeases } from "../../../src/actors/job/leases.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { memoryLeases } from "../../support/memory-bucket.ts";

// Proves that a lease has one holder, known by its owner, until it is released or runs out: leases
// over a bucket in memory with a clock moved by hand, two processes at once and lost answers.

const LEASE_MS = 3_000;
const a = { owner: "a", host: "h1" };
const b = { owner: "b" };

function setUp(): ReturnType<typeof memoryLeases> & { clock: FakeClock } {
  const clock = new FakeClock();
  return { clock, ...memoryLeases(LEASE_MS, clock) };
}

test("one of many at once claims a lease, and may claim it again", async () => {
  const { leases } = setUp();
  const owners = Array.from({ length: 20 }, (_, i) => ({ owner: `o${i}` }));
  const claims = await Promise.all(owners.map((value) => leases.claim("shard.1", value)));
  const holder = owners[claims.indexOf(true)];
  expect(claims.filter(Boolean)).toHaveLength(1);
  expect(await leases.read("shard.1")).toEqual(holder);
  expect(holder && (await leases.claim("shard.1", holder))).toBe(true);
});

test("a claim whose answer was lost is found to be held by the repeat", async () => {
  const { leases, bucket } = setUp();
  bucket.losesAnswer = (call) => call.action === "create";
  await expect(leases.claim("k", a)).rejects.toMatchObject({ code: "TIMEOUT" });
  bucket.losesAnswer = () => false;
  expect(await leases.claim("k", a)).toBe(true);
  expect(await leases.claim("k", b)).toBe(false);
});

test("only the holder renews, and an expired lease cannot be renewed but claimed", async () => {
  const { leases, clock } = setUp();
  await leases.claim("k", a);
  await clock.advance(LEASE_MS - 1);
  expect(await leases.renew("k", b)).toBe(false);
  expect(await leases.renew("k", { ...a, host: "h2" })).toBe(true);
  await clock.advance(LEASE_MS - 1);
  expect(await leases.read("k")).toEqual({ ...a, host: "h2" });
  await clock.advance(1);
  expect(await leases.read("k")).toBeUndefined();
  expect(await leases.renew("k", a)).toBe(false);
  expect(await leases.claim("k", b)).toBe(true);
});

test("a renewal is one request, and reads only what it did not write last", async () => {
  const { leases, bucket } = setUp();
  const other = new KvLeases(bucket);
  const asked = async (renewed: Promise<boolean>): Promise<string[]> => {
    bucket.calls.length = 0;
    expect(await renewed).toBe(true);
    return bucket.calls.map(({ action }) => action);
  };
  await leases.claim("k", a);
  expect(await asked(leases.renew("k", a))).toEqual(["update"]);
  expect(await asked(leases.renew("k", a))).toEqual(["update"]);
  expect(await asked(other.renew("k", a))).toEqual(["read", "update"]);
  expect(await asked(leases.renew("k", a))).toEqual(["update", "read", "update"]);
  bucket.losesAnswer = ({ action }) => action === "update";
  await expect(leases.renew("k", a)).rejects.toMatchObject({ code: "TIMEOUT" });
  bucket.losesAnswer = () => false;
  expect(await asked(leases.renew("k", a))).toEqual(["update", "read", "update"]);
});

test("only the holder releases", async () => {
  const { leases } = setUp();
  await leases.claim("k", a);
  await leases.release("k", b);
  expect(await leases.read("k")).toEqual(a);
  await leases.release("k", a);
  await leases.release("k", a);
  expect(await leases.claim("k", b)).toBe(true);
});

test("lists what is held under a prefix", async () => {
  const { leases, clock } = setUp();
  await leases.claim("host.old", a);
  await clock.advance(LEASE_MS - 1);
  await leases.claim("host.new", b);
  await leases.claim("shard.1", b);
  expect(await leases.keys("host.")).toEqual(new Set(["host.old", "host.new"]));
  await clock.advance(1);
  const listed = await leases.list("host.");
  expect([...listed].map(([key, { value }]) => [key, value])).toEqual([["host.new", b]]);
});

test("a holder that claims its lease again has it for the whole lease time, with the value of the claim", async () => {
  const { leases, clock } = setUp();
  await leases.claim("k", a);
  await clock.advance(LEASE_MS - 1);
  expect(await leases.claim("k", { ...a, host: "h2" })).toBe(true);
  await clock.advance(LEASE_MS - 1);
  expect(await leases.read("k")).toEqual({ ...a, host: "h2" });
});

test("others end a lease only as they have read it", async () => {
  const { leases, bucket } = setUp();
  const others = new KvLeases(bucket);
  await leases.claim("shard.1", a);
  const read = (await others.list("shard.")).get("shard.1");
  if (read === undefined) throw new Error("expected a lease");
  expect(read.value).toEqual(a);
  await leases.renew("shard.1", a);
  expect(await others.end("shard.1", read)).toBe(false);
  expect(await leases.read("shard.1")).toEqual(a);
  const again = (await others.list("shard.")).get("shard.1");
  expect(again && (await others.end("shard.1", again))).toBe(true);
  expect(await leases.renew("shard.1", a)).toBe(false);
});

test("a lease that somebody has damaged is refused by name", async () => {
  const { leases, bucket } = setUp();
  await bucket.create("k", { session: 1 });
  await expect(leases.read("k")).rejects.toMatchObject({ code: "BAD_MESSAGE" });
});
