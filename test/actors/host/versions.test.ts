import { expect, test } from "vitest";
import { type AskShard, gatherVersions } from "../../../src/actors/host/control-service.ts";
import { toConfig } from "../../../src/protocol/config/index.ts";
import { PserverError } from "../../../src/protocol/errors.ts";
import type { ParameterInfo } from "../../../src/protocol/messages/lifecycle-messages.ts";
import type { ShardVersions } from "../../../src/protocol/messages/reads.ts";

// Proves that versions of a parameter are put together from all shards that hold blocks of it, each asked
// once, and that a part of them never passes for the whole: not where an owner is silent, has failed, or
// holds blocks of another epoch only.

const SHARDS = 4;

function parameter(name: string, blocks: number, firstShard: number): ParameterInfo {
  const layout = { elements: blocks, blockElements: 1, blocks, firstShard, shards: SHARDS };
  const config = toConfig({});
  return {
    name,
    dtype: "float32",
    shape: [blocks],
    config,
    epoch: 2,
    ready: true,
    layout,
    firstNumber: 1,
  };
}

function versions(least: number, most: number, updates: number, blocks: number): ShardVersions {
  return { least, most, updates, blocks };
}

const NONE = versions(0, 0, 0, 0);

/** Owners that tell what is given, by shard and name; the others are silent. */
function owners(told: Readonly<Record<number, Readonly<Record<string, ShardVersions>>>>): {
  ask: AskShard;
  asked: [number, string[]][];
} {
  const asked: [number, string[]][] = [];
  const ask: AskShard = async (shard, wanted) => {
    asked.push([shard, wanted.map((each) => each.parameter)]);
    const own = told[shard];
    if (own === undefined) throw new PserverError("NO_OWNER", `nobody owns shard ${shard}`);
    for (const { epoch } of wanted) expect(epoch).toBe(2);
    return wanted.map((each) => own[each.parameter] ?? NONE);
  };
  return { ask, asked };
}

test("adds up what the shards of each parameter hold, and asks each shard once", async () => {
  const { ask, asked } = owners({
    0: { w: versions(2, 5, 9, 3) },
    2: { b: versions(4, 4, 3, 1) },
    3: { w: versions(3, 7, 8, 2) },
  });
  const w = parameter("w", 2, 3);
  const wide: ParameterInfo = { ...w, layout: { ...w.layout, elements: 5, blocks: 2 } };
  const five = { ...wide, layout: { ...wide.layout, blocks: 5 } };
  // Of five blocks the shards in between hold some, too: they are asked, and have none to tell.
  const all = owners({
    0: { w: versions(2, 5, 9, 3) },
    1: {},
    2: { b: versions(4, 4, 3, 1) },
    3: { w: versions(3, 7, 8, 2) },
  });
  expect(await gatherVersions([five, parameter("b", 1, 2)], all.ask)).toEqual({
    versions: [
      { least: 2, most: 7, updates: 17 },
      { least: 4, most: 4, updates: 3 },
    ],
    silent: [],
  });
  expect(all.asked.sort(([a], [b]) => a - b)).toEqual([
    [0, ["w"]],
    [1, ["w"]],
    [2, ["w", "b"]],
    [3, ["w"]],
  ]);
  await gatherVersions([wide], ask);
  expect(asked.map(([shard]) => shard).sort()).toEqual([0, 3]);
});

test("a parameter is unknown while a shard that holds blocks of it is silent", async () => {
  const { ask } = owners({ 1: { w: versions(9, 9, 8, 1), b: versions(4, 4, 3, 1) } });
  expect(await gatherVersions([parameter("w", 3, 1), parameter("b", 1, 1)], ask)).toEqual({
    versions: [null, { least: 4, most: 4, updates: 3 }],
    silent: [2, 3],
  });
});

test("a parameter is unknown where the shards hold other blocks than it has", async () => {
  const { ask } = owners({ 0: { w: versions(1, 1, 0, 1) }, 1: {} });
  const reply = await gatherVersions([parameter("w", 2, 0), parameter("x", 1, 1)], ask);
  expect(reply).toEqual({ versions: [null, null], silent: [] });
});

test("asks nobody for what is not there or not ready", async () => {
  const { ask, asked } = owners({});
  const unready = { ...parameter("w", 1, 0), ready: false };
  expect(await gatherVersions([null, unready], ask)).toEqual({
    versions: [null, null],
    silent: [],
  });
  expect(asked).toEqual([]);
});
