// Proves that a block goes on from a state that is brought from elsewhere as the block that it was taken from: values,
// what the optimizer keeps of them, the number of updates, and of a sparse parameter that of each row. The same
// gradients lead both to the same bytes.
import { describe, expect, test } from "vitest";
import { keptSlots, slotPlan } from "../../../src/actors/fold/block-actor.ts";
import { blockDigest } from "../../../src/actors/fold/shard.ts";
import type { ParameterConfig } from "../../../src/protocol/config/index.ts";
import { type HalfDtype, isHalf } from "../../../src/protocol/dtypes.ts";
import { toHalfFloats } from "../../../src/protocol/encoding/half-floats.ts";
import { elementsOf, Folded } from "./folded.ts";
import { floats, fullConfig, OPTIMIZERS } from "./optimizer-configs.ts";

const SHAPE = [6, 2];
const UPDATES = 5;

type Stored = "float32" | HalfDtype;

function stored(dtype: Stored, length: number, seed: number): Float32Array | Uint16Array {
  const numbers = Float32Array.from(floats("float32", length, seed));
  return isHalf(dtype) ? toHalfFloats(dtype, numbers) : numbers;
}

function push(folded: Folded, config: ParameterConfig, seed: number): void {
  const isPart = config.sparse && seed % 2 === 1;
  const dtype = folded.block().dtype as Stored;
  const gradient = stored(dtype, isPart ? 4 : 12, seed);
  const part = isPart ? { part: { rows: Uint32Array.of(1, 4) } } : {};
  folded.journal.push(gradient, { op: "grad" }, { dtype, ...part });
}

/** A block trained for some updates. */
function trained(config: ParameterConfig, dtype: Stored): Folded {
  const folded = new Folded();
  folded.journal.init(stored(dtype, 12, 99), { config, dtype, shape: SHAPE });
  folded.apply();
  for (let seed = 0; seed < UPDATES; seed++) push(folded, config, seed);
  folded.apply();
  return folded;
}

/** A new block with the state of another one, as records bring it. */
function restored(from: Folded, config: ParameterConfig): Folded {
  const folded = new Folded();
  const block = from.block();
  const { updates, dtype } = block;
  const values = isHalf(dtype)
    ? elementsOf(block.values(), Uint16Array)
    : elementsOf(block.values(), Float32Array);
  folded.journal.init(values, { config, dtype, shape: SHAPE, updates });
  const plan = slotPlan(block, { mode: "async" });
  for (let slot = 1; slot <= keptSlots(plan); slot++) {
    folded.journal.setSlot(slot, dtype, elementsOf(block.slotBytes(slot), Float32Array));
  }
  folded.apply();
  return folded;
}

describe.each(OPTIMIZERS)("%s", (optimizer) => {
  test.each([
    ["float32", false],
    ["float32", true],
    ["bfloat16", false],
    ["bfloat16", true],
    ["float16", false],
  ] as const)("goes on from a restored state of %s, sparse: %s", (dtype, sparse) => {
    const config = fullConfig(optimizer, { sparse });
    const original = trained(config, dtype);
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

test.each(["bfloat16", "float16"] as const)("slots of %s are float32, and finite", (dtype) => {
  const folded = new Folded();
  folded.journal.init(stored(dtype, 12, 1), { config: fullConfig("adam"), dtype, shape: SHAPE });
  folded.apply();
  // The lower half of these bits would be no finite half float.
  const finite = new Float32Array(Uint32Array.from({ length: 12 }, () => 0x3f807f80).buffer);
  folded.journal.setSlot(1, dtype, finite);
  folded.journal.setSlot(1, dtype, new Float32Array(12).fill(Number.NaN));
  folded.journal.setSlot(1, dtype, stored(dtype, 12, 2));
  const codes = folded.run().map(({ code }) => code);
  expect(codes).toEqual([undefined, "NON_FINITE", "BAD_LENGTH"]);
  expect(elementsOf(folded.block().slotBytes(1), Float32Array)).toEqual(finite);
});

test.each(["float32", "float64", "float16"] as const)(
  "a NaN in a slot of %s is stored in its one form, where it is allowed",
  (dtype) => {
    const folded = new Folded();
    const config = fullConfig("adam", { allowNonFinite: true });
    const values = isHalf(dtype) ? stored(dtype, 12, 1) : floats(dtype, 12, 1);
    folded.journal.init(values, { config, dtype, shape: SHAPE });
    folded.apply();
    // With a sign, and with other bits than the one form.
    const [bits, one] =
      dtype === "float64"
        ? [new BigUint64Array(12).fill(0xfff8_0000_0000_0003n), 0x7ff8_0000_0000_0000n]
        : [new Uint32Array(12).fill(0xffc0_0003), 0x7fc0_0000];
    folded.journal.setSlot(2, dtype, bits);
    expect(folded.run().map(({ code }) => code)).toEqual([undefined]);
    const slot = folded.block().slotBytes(2);
    const found =
      dtype === "float64" ? elementsOf(slot, BigUint64Array) : elementsOf(slot, Uint32Array);
    expect(new Set<unknown>(found)).toEqual(new Set([one]));
  },
);

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
