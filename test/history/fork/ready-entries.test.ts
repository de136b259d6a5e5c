// Proves that a fork which is repeated leaves the entries of its own parameters and no others, whatever an
// interrupted one has written, and that a write whose answer is lost does not end it.
import { expect, test } from "vitest";
import { jobEntry, UNINITIALIZED } from "../../../src/actors/lifecycle/machine.ts";

import { type Parameter, readAllParameters } from "../../../src/actors/lifecycle/parameter.ts";

import { writeEntries } from "../../../src/history/fork-job.ts";
import { toConfig } from "../../../src/protocol/index.ts";
import { MemoryBucket } from "../../support/memory-bucket.ts";

function parameter(name: string, epoch: number): Parameter {
  const { context } = UNINITIALIZED;
  return {
    declaration: { name, dtype: "float32", shape: [1], config: toConfig({}) },
    layout: { elements: 1, blockElements: 1, blocks: 1, firstShard: 0, shards: 1 },
    ...{ blocksMax: 1, jobEpoch: 0, revision: 0 },
    lifecycle: { state: "ready", context: { ...context, epoch, trainer: "a" } },
  };
}

/** Name and epoch of the parameters in a bucket, ascending. */
async function writtenTo(bucket: MemoryBucket): Promise<string[]> {
  const found = await readAllParameters(bucket);
  return found
    .map(({ declaration, lifecycle }) => `${declaration.name} ${lifecycle.context.epoch}`)
    .sort();
}

test("a repeated fork puts its records in place of those of an interrupted one", async () => {
  const bucket = new MemoryBucket();
  await writeEntries(bucket, [parameter("u", 1), parameter("v", 1)]);
  expect(await writtenTo(bucket)).toEqual(["u 1", "v 1"]);
  await writeEntries(bucket, [parameter("v", 2), parameter("w", 2)]);
  expect(await writtenTo(bucket)).toEqual(["v 2", "w 2"]);
  expect((await jobEntry.read({ bucket })).state).toBe("ready");
});

test("a write whose answer is lost is made or found done", async () => {
  const bucket = new MemoryBucket();
  let lost = 0;
  bucket.losesAnswer = ({ action }) => action === "create" && lost++ === 0;
  await writeEntries(bucket, [parameter("u", 1)]);
  expect(await writtenTo(bucket)).toEqual(["u 1"]);
});
