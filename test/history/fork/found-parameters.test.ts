// Proves which parameters a job has at a cut, as the states of its shards show them: whole ones are ready, with
// the layout that they were cut by; all others keep their epoch, so that the next initialization has a higher one.
import { describe, expect, test } from "vitest";
import type { BlockHeader } from "../../../src/actors/fold/block-actor.ts";
import { FoundParameters } from "../../../src/history/continue/fork-job.ts";
import { toConfig } from "../../../src/protocol/config/index.ts";
import { blockPlaces, type DeclaredParameter, type Layout } from "../../../src/protocol/index.ts";

const SHARDS = 3;
const config = toConfig({ learningRate: 0.1 });
const layout: Layout = { elements: 10, blockElements: 4, blocks: 3, firstShard: 2, shards: SHARDS };

function declared(epoch = 1, over: Partial<Layout> = {}): DeclaredParameter {
  const names = { name: "w", dtype: "float32", shape: [10], config } as const;
  return { ...names, epoch, layout: { ...layout, ...over }, firstNumber: 10 * epoch, trainer: "a" };
}

function block(index: number, epoch = 1): BlockHeader {
  const place = blockPlaces(layout)[index];
  if (place === undefined) throw new Error(`no block ${index}`);
  const { start, count } = place;
  const number = 10 * epoch + index;
  const names = { parameter: "w", index, number, epoch, dtype: "float32", shape: [10] } as const;
  return { ...names, start, count, config, version: 3, updates: 2 };
}

function shardOf({ index }: BlockHeader): number | undefined {
  return blockPlaces(layout)[index]?.shard;
}

/** What is found where each shard has these blocks, and those of `told` were told what is declared. */
function find(
  blocks: readonly BlockHeader[],
  told: readonly (readonly [number, DeclaredParameter])[],
) {
  const found = new FoundParameters();
  for (let shard = 0; shard < SHARDS; shard++) {
    const own = blocks.filter((each) => shardOf(each) === shard);
    const granted = told.filter(([number]) => number === shard).map(([, each]) => each);
    found.add({ blocks: own, declared: granted });
  }
  return found.parameters();
}

const ALL = [0, 1, 2].map((index) => block(index));
const EVERYWHERE = [0, 1, 2].map((shard) => [shard, declared()] as const);

describe("a parameter with all of its blocks", () => {
  test("is ready, as it was declared", () => {
    const lifecycle = {
      state: "ready",
      context: { epoch: 1, trainer: "a", session: 0, at: [], sealed: 0, revised: 0 },
    };
    const declaration = { name: "w", dtype: "float32", shape: [10], config };
    expect(find(ALL, EVERYWHERE)).toEqual([
      { declaration, layout, blocksMax: 3, firstNumber: 10, jobEpoch: 0, lifecycle, revision: 0 },
    ]);
  });
});

describe("a parameter is to be initialized under a higher epoch", () => {
  test("without one of its blocks", () => {
    for (const missing of [0, 1, 2]) {
      const rest = ALL.filter(({ index }) => index !== missing);
      expect(find(rest, EVERYWHERE)).toMatchObject([
        { layout, lifecycle: { state: "uninitialized", context: { epoch: 1 } } },
      ]);
    }
  });

  test("without any, though it was granted", () => {
    const found = find([], [[1, declared(4)]]);
    expect(found).toMatchObject([{ lifecycle: { state: "uninitialized", context: { epoch: 4 } } }]);
  });

  test("with blocks of an earlier epoch, in whatever order shards say so", () => {
    const uninitialized = [{ lifecycle: { state: "uninitialized", context: { epoch: 2 } } }];
    for (const shard of [0, 1, 2]) {
      const told = EVERYWHERE.with(shard, [shard, declared(2)]);
      expect(find(ALL, told)).toMatchObject(uninitialized);
      const mixed = ALL.map((each) => (shardOf(each) === shard ? { ...each, epoch: 2 } : each));
      expect(find(mixed, told)).toMatchObject(uninitialized);
    }
  });

  test("and remembers the most blocks that it ever had", () => {
    const smaller = declared(2, { blockElements: 10, blocks: 1 });
    for (const shard of [0, 1, 2]) {
      const found = find(ALL, EVERYWHERE.with(shard, [shard, smaller]));
      expect(found).toMatchObject([{ blocksMax: 3, layout: { blocks: 1 } }]);
    }
  });
});
