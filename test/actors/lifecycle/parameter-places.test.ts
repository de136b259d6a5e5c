// Proves that blocks are found by their parameters' records, which are read once, whatever is asked meanwhile.
import { expect, test } from "vitest";
import { ParameterPlaces } from "../../../src/actors/lifecycle/parameter.ts";
import { MemoryBucket } from "../../support/memory-bucket.ts";
import { Rig, weights } from "./rig.ts";

/** A job with parameters "v" and "w", which share a shard. */
async function declaredJob(bucket: MemoryBucket): Promise<number> {
  const rig = new Rig({ bucket });
  const session = await rig.join("a");
  await rig.begin("a", session);
  const [info] = await rig.declare("a", session, 1, [weights("v"), weights("w")]);
  return info?.layout.firstShard ?? -1;
}

test("a block lies behind the first shard of its parameter's record, which is read once", async () => {
  const bucket = new MemoryBucket();
  const first = await declaredJob(bucket);
  const places = new ParameterPlaces(bucket);
  const readsBefore = bucket.calls.length;
  const found = [0, 1, 2, 3, 4].map((index) => places.shardOf("w", index));
  expect(await Promise.all(found)).toEqual([0, 1, 2, 3, 4].map((index) => (first + index) % 4));
  expect(await places.shardOf("w", 1)).toBe((first + 1) % 4);
  expect(bucket.calls.length).toBe(readsBefore + 1);
});

test("a parameter that is unknown, or that the broker does not tell, is looked up again", async () => {
  const bucket = new MemoryBucket();
  const places = new ParameterPlaces(bucket);
  expect(await places.shardOf("w", 0)).toBeUndefined();
  const first = await declaredJob(bucket);
  bucket.losesAnswer = () => true;
  expect(await places.shardOf("w", 0)).toBeUndefined();
  bucket.losesAnswer = () => false;
  expect(await places.shardOf("w", 0)).toBe(first);
});

test("of 1,000 unknown names 64 are looked up at a time, and the others not", async () => {
  const bucket = new MemoryBucket();
  const places = new ParameterPlaces(bucket);
  const names = Array.from({ length: 1_000 }, (_, i) => `no_${i}`);
  const found = await Promise.all(names.map((name) => places.shardOf(name, 0)));
  expect(new Set(found)).toEqual(new Set([undefined]));
  expect(bucket.calls).toHaveLength(64);
});
