// Proves that one run at a time executes the plan of a rewind: a run that another one has overtaken, by taking its plan
// over, completing or dropping it, is refused from then on, also if a new plan is noted since; and that a lost answer
// ends no run.
import { beforeEach, expect, test } from "vitest";
import { RewindRun, readRewindPlan } from "../../../src/actors/job/rewind-plan.ts";
import { MemoryBucket } from "../../support/memory-bucket.ts";

const TO = { at: [{ generation: 1, seq: 5 }], initialized: true };
const BUSY = { code: "BUSY" };

let bucket: MemoryBucket;
let first: RewindRun;

beforeEach(async () => {
  bucket = new MemoryBucket();
  first = await RewindRun.begin(bucket, "j", TO);
});

test("a plan is noted with its point, and gone when it has ended", async () => {
  expect(await readRewindPlan({ bucket })).toEqual(first.plan);
  expect(first.plan).toMatchObject(TO);
  await first.check();
  await first.end();
  expect(await readRewindPlan({ bucket })).toBeUndefined();
});

test("no second plan begins while one is noted", async () => {
  await expect(RewindRun.begin(bucket, "j", TO)).rejects.toMatchObject(BUSY);
  await first.check();
});

test("a run whose plan was taken over is refused, and the plan stays the same", async () => {
  const second = await RewindRun.takeOver(bucket, "j", first.plan);
  expect(second.plan).toEqual({ ...first.plan, run: second.plan.run });
  await expect(first.check()).rejects.toMatchObject(BUSY);
  await expect(first.end()).rejects.toMatchObject(BUSY);
  await second.check();
  await second.end();
  await expect(first.check()).rejects.toMatchObject(BUSY);
  await expect(first.end()).rejects.toMatchObject(BUSY);
});

test("a plan that has ended is not taken over, nor is another one in its place", async () => {
  await first.end();
  await expect(RewindRun.takeOver(bucket, "j", first.plan)).rejects.toMatchObject(BUSY);
  const next = await RewindRun.begin(bucket, "j", TO);
  await expect(RewindRun.takeOver(bucket, "j", first.plan)).rejects.toMatchObject(BUSY);
  await expect(first.check()).rejects.toMatchObject(BUSY);
  await next.check();
});

test.each(["losesAnswer", "losesRequest"] as const)(
  "%s of each write once, and goes on",
  async (how) => {
    const lost = new Set<string>();
    bucket = new MemoryBucket();
    bucket[how] = ({ action }) => {
      const isFirst = action !== "read" && !lost.has(action);
      lost.add(action);
      return isFirst;
    };
    const run = await RewindRun.begin(bucket, "j", TO);
    const second = await RewindRun.takeOver(bucket, "j", run.plan);
    await second.end();
    expect([...lost].filter((action) => action !== "read").sort()).toEqual([
      "create",
      "remove",
      "update",
    ]);
    expect(await readRewindPlan({ bucket })).toBeUndefined();
  },
);
