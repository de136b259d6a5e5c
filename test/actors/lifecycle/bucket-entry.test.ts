// Proves that a change is made on the entry it was decided on, once, under races, lost answers
// and lost requests, and that it gives up in bounded time: a bucket in memory misbehaves as told.
import { expect, test } from "vitest";
import { BucketEntry, type Changed } from "../../../src/actors/lifecycle/lock.ts";
import { MemoryBucket } from "../../support/memory-bucket.ts";
import { refused } from "./rig.ts";

const pause = (): Promise<void> => Promise.resolve();

const list = new BucketEntry<readonly string[]>(
  "list",
  (stored) => (stored?.value as { names: string[] } | undefined)?.names ?? NOTHING,
  (names) => ({ names }),
);
const NOTHING: readonly string[] = [];

/** Adds one name to a list, if it is not there yet. */
function add(bucket: MemoryBucket, name: string): Promise<Changed<readonly string[]>> {
  return list.change({ bucket, pause }, (names) =>
    names.includes(name) ? names : [...names, name],
  );
}

test("fifteen at once all get their change in", async () => {
  const bucket = new MemoryBucket({ between: () => new Promise(setImmediate) });
  const names = Array.from({ length: 15 }, (_, i) => `n${i}`);
  await Promise.all(names.map((name) => add(bucket, name)));
  expect((await list.read({ bucket })).toSorted()).toEqual(names.toSorted());
});

test.each(["create", "update"])(
  "a %s whose answer was lost is found done, not done twice",
  async (action) => {
    const bucket = new MemoryBucket();
    if (action === "update") await add(bucket, "first");
    let lost = 0;
    bucket.losesAnswer = (call) => call.action === action && lost++ === 0;
    const { result, revision } = await add(bucket, "x");
    expect(result).toContain("x");
    expect(await bucket.read("list")).toEqual({ value: { names: result }, revision });
    expect(bucket.calls.filter((call) => call.action === action)).toHaveLength(1);
  },
);

test("a write whose request was lost is made again", async () => {
  const bucket = new MemoryBucket();
  let lost = 0;
  bucket.losesRequest = (call) => call.action === "create" && lost++ === 0;
  expect((await add(bucket, "x")).result).toEqual(["x"]);
});

test("a broker that never answers ends it with TIMEOUT", async () => {
  const bucket = new MemoryBucket();
  bucket.losesRequest = (call) => call.action === "create";
  await refused("TIMEOUT", add(bucket, "x"), "list");
});

test("others that are always faster end it with BUSY", async () => {
  const bucket = new MemoryBucket();
  const pushed = list.change({ bucket, pause }, async () => {
    const rival = { names: [String(Math.random())] };
    const current = await bucket.read("list");
    if (current === undefined) await bucket.create("list", rival);
    else await bucket.update("list", rival, current.revision);
    return ["x"];
  });
  await refused("BUSY", pushed, "list", "24");
});

test("what was read already is not read again, unless it has changed since", async () => {
  const bucket = new MemoryBucket();
  await add(bucket, "a");
  const revision = (await bucket.read("list"))?.revision ?? 0;
  await add(bucket, "b");
  const seen: unknown[] = [];
  const decide = (names: readonly string[]): readonly string[] => {
    seen.push(names);
    return [...names, "c"];
  };
  await list.change({ bucket, pause }, decide, { result: ["a"], revision });
  expect(seen).toEqual([["a"], ["a", "b"]]);
  expect((await bucket.read("list"))?.value).toEqual({ names: ["a", "b", "c"] });
});
