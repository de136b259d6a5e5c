// Proves that versions and updates are those of the fold: 1 after an init, 1 more with each record that
// changed the block and with no other; of the epoch that is wanted; and that they outlive a restart.
import { expect, test } from "vitest";
import { shardUpdates, shardVersions } from "../../../src/actors/owner/answers.ts";
import { Folded } from "../fold/folded.ts";

const VALUES = Float32Array.of(1, 2);
const GRADIENT = { op: "grad", lr: 1 } as const;

/** Of "w", whose blocks lie on four shards, blocks 0 and 4, changed 2 times and never, and a "v" under epoch 3. */
function fold(): Folded {
  const folded = new Folded();
  const { journal } = folded;
  const part = { shape: [10], count: 2 };
  journal.init(VALUES, { ...part, index: 0, start: 0 });
  journal.init(VALUES, { ...part, index: 4, start: 8 });
  journal.init(VALUES, { parameter: "v", epoch: 3 });
  journal.push(VALUES, GRADIENT);
  journal.set(VALUES);
  folded.apply();
  return folded;
}

const WANTED = [
  { parameter: "w", epoch: 1 },
  { parameter: "v", epoch: 3 },
  { parameter: "v", epoch: 2 },
  { parameter: "none", epoch: 1 },
];
const NONE = { least: 0, most: 0, updates: 0, blocks: 0 };
const FOUND = [
  { least: 1, most: 3, updates: 2, blocks: 2 },
  { least: 1, most: 1, updates: 0, blocks: 1 },
  NONE,
  NONE,
];

test("counts changes of blocks of the epoch that is wanted", () => {
  const { shard } = fold();
  expect(shardVersions(shard, WANTED)).toEqual(FOUND);
  expect(shardUpdates(shard)).toBe(2);
});

test("a refused record changes nothing", () => {
  const folded = fold();
  folded.journal.set(Float32Array.of(1), {});
  expect(folded.run().map(({ code }) => code)).toEqual(["BAD_LENGTH"]);
  expect(shardVersions(folded.shard, WANTED)).toEqual(FOUND);
});

test("are the same after a restart", () => {
  const restored = fold().restored();
  expect(shardVersions(restored, WANTED)).toEqual(FOUND);
  expect(shardUpdates(restored)).toBe(2);
});
