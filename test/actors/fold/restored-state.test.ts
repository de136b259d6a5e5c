// Proves that a block goes on from a state that is brought from elsewhere as the block that it was taken from: values,
// what the optimizer keeps of them, the number of updates, and of a sparse parameter that of each row. The same
// gradients lead both to the same bytes.
import { describe, expect, test } from "vitest";
import { keptSlots, slotPlan } from "../../../src/actors/fold/block-actor.ts";
import { blockDigest } from "../../../src/actors/fold/shard.ts";
import type { ParameterConfig } from "../../../src/protocol/config/index.ts";
import { elementsOf, Folded } from "./folded.ts";
import { floats, fullConfig, OPTIMIZERS } from "./optimizer-configs.ts";

const SHAPE = [6, 2];
const UPDATES = 5;

function push(folded: Folded, config: ParameterConfig, seed: number): void {
  const isPart = config.sparse && seed % 2 === 1;
  const gradient = floats("float32", isPart ? 4 : 12, seed);
  const part = isPart ? { part: { rows: Uint32Array.of(1, 4) } } : {};
  folded.journal.push(gradient, { op: "grad" }, part);
}

/** A block trained for some updates. */
function trained(config: ParameterConfig): Folded {
  const folded = new Folded();
  folded.journal.init(floats("float32", 12, 99), { config, shape: SHAPE });
  for (let seed = 0; seed < UPDATES; seed++) push(folded, config, seed);
  folded.apply();
  return folded;
}

/** A new block with the state of another one, as records bring it. */
function restored(from: Folded, config: ParameterConfig): Folded {
  const folded = new Folded();
  const block = from.block();
  const { updates } = block;
  const values = elementsOf(block.values(), Float32Array);
  folded.journal.init(values, { config, shape: SHAPE, updates });
  const plan = slotPlan(block, { mode: "async" });
  for (let slot = 1; slot <= keptSlots(plan); slot++) {
    folded.journal.setSlot(slot, "float32", elementsOf(block.slotBytes(slot), Float32Array));
  }
  folded.apply();
  return folded;
}

describe.each(OPTIMIZERS)("%s", (optimizer) => {
  test.each([false, true])("goes on from a restored state, sparse: %s", (sparse) => {
    const config = fullConfig(optimizer, { sparse });
    const original = trained(config);
    const copy = restored(original, config);
    expect(blockDigest(copy.block())).toBe(blockDigest(original.block()));
    expect(copy.block().updates).toBe(UPDATES);
    expect(copy.block().version).toBeGreaterThan(UPDATES);
    for (let seed = UPDATES; seed < 2 * UPDATES; seed++) {
      push(original, config, seed);
      push(copy, config, seed);
    }
    original.apply();
    copy.apply();
    expect(blockDigest(copy.block())).toBe(blockDigest(original.block()));
    expect(copy.restored().digest()).toBe(copy.shard.digest());
  });
});

test("a step that is open keeps its sums to itself", () => {
  const folded = new Folded({ mode: "sync", trainers: 2 });
  const config = fullConfig("adam");
  folded.journal.init(floats("float32", 12, 1), { config, shape: SHAPE });
  folded.apply();
  const plan = slotPlan(folded.block(), folded.shard.synchronization);
  expect(plan.accumulator).toBe(keptSlots(plan) + 1);
  folded.journal.setSlot(plan.accumulator ?? 0, "float32", floats("float32", 12, 2));
  expect(folded.run()).toMatchObject([{ code: "BAD_VALUE" }]);
});
