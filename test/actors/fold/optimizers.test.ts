// Proves that a gradient goes through whole records as through its rule alone: for every optimizer,
// float type and encoding, over lengths that end within a chunk and go over several, values and slots
// are to the bit those of a tensor that is updated in one piece. The rules themselves are proved
// elsewhere, against references of their own.
import { describe, expect, test } from "vitest";
import { type ParameterConfig, toConfig } from "../../../src/protocol/config/index.ts";
import { bytesOf, type Encoding } from "../../../src/protocol/dtypes.ts";
import { decodeElements } from "../../../src/protocol/encoding/encoding.ts";

import { l2Norm } from "../../../src/protocol/tensor.ts";
import { Folded, slotsOf } from "./folded.ts";
import { encoded } from "./journal-writer.ts";
import { floats, fullConfig, OPTIMIZERS } from "./optimizer-configs.ts";
import { type FloatData, KernelBlock } from "./reference/kernel-block.ts";

const LENGTHS = [1, 7, 20_003];
const CASES = [
  ["float32", undefined],
  ["float32", "bfloat16"],
  ["float32", "float16"],
  ["float64", undefined],
] as const;

/** What a gradient is once it has travelled. */
function travelled(gradient: FloatData, encoding: Encoding | undefined): FloatData {
  if (encoding === undefined) return gradient;
  const decoded = new Float32Array(gradient.length);
  decodeElements(encoding, encoded(encoding, gradient), decoded);
  return decoded;
}

function pair(config: ParameterConfig, values: FloatData): { folded: Folded; plain: KernelBlock } {
  const folded = new Folded();
  folded.journal.init(values, { config });
  return { folded, plain: new KernelBlock(config, values) };
}

function expectEqual(folded: Folded, plain: KernelBlock): void {
  expect(folded.block().slots).toBe(plain.columns - 1);
  for (const [slot, bytes] of slotsOf(folded.block()).entries()) {
    expect([slot, Buffer.compare(bytes, bytesOf(plain.column(slot)))]).toEqual([slot, 0]);
  }
}

describe.each(OPTIMIZERS)("%s", (optimizer) => {
  test.each(CASES)(
    "of %s as %s gives the same through records as by its rule alone",
    (dtype, encoding) => {
      for (const length of LENGTHS) {
        const { folded, plain } = pair(fullConfig(optimizer), floats(dtype, length, 1));
        for (let step = 0; step < 5; step++) {
          const gradient = floats(dtype, length, step + 2);
          folded.journal.push(gradient, { op: "grad" }, encoding === undefined ? {} : { encoding });
          const sent = travelled(gradient, encoding);
          plain.push(sent, { norm: l2Norm(sent) });
        }
        folded.apply();
        expectEqual(folded, plain);
        expect(folded.block()).toMatchObject({ version: 6, updates: 5 });
      }
    },
  );

  test("takes the learning rate of the call, and counts the update", () => {
    if (optimizer === "none") return;
    const { folded, plain } = pair(fullConfig(optimizer), floats("float32", 9, 1));
    const gradient = floats("float32", 9, 2);
    const norm = l2Norm(gradient);
    folded.journal.push(gradient, { op: "grad", lr: 0.125 });
    folded.journal.push(gradient, { op: "grad" });
    plain.push(gradient, { norm, learningRate: 0.125 });
    plain.push(gradient, { norm });
    folded.apply();
    expectEqual(folded, plain);
  });
});

describe("staleness", () => {
  const config = (stalenessScaling: boolean): ParameterConfig =>
    toConfig({ optimizer: "momentum", learningRate: 0.3, stalenessScaling });

  test.each([
    [true, 3],
    [false, 1],
  ])("with scaling %s, a gradient of 3 versions ago has its rate divided by %d", (on, divisor) => {
    const { folded, plain } = pair(config(on), floats("float32", 5, 1));
    const gradient = floats("float32", 5, 2);
    const norm = l2Norm(gradient);
    for (let version = 1; version < 4; version++) {
      folded.journal.push(gradient, { op: "grad", seen: version });
      plain.push(gradient, { norm });
    }
    folded.journal.push(gradient, { op: "grad", seen: 1 });
    plain.push(gradient, { norm, learningRate: 0.3 / divisor });
    folded.journal.push(gradient, { op: "grad" });
    plain.push(gradient, { norm });
    folded.apply();
    expectEqual(folded, plain);
  });

  test("divides the rate of the call too", () => {
    const { folded, plain } = pair(config(true), floats("float32", 5, 1));
    const gradient = floats("float32", 5, 2);
    folded.journal.set(floats("float32", 5, 3));
    folded.journal.set(floats("float32", 5, 1));
    folded.journal.push(gradient, { op: "grad", lr: 0.5, seen: 1 });
    plain.push(gradient, { norm: l2Norm(gradient), learningRate: 0.25 });
    folded.apply();
    expectEqual(folded, plain);
  });
});

describe("slots", () => {
  test("stay as they are when the values are mixed or set", () => {
    const { folded } = pair(fullConfig("adam"), floats("float32", 5, 1));
    folded.journal.push(floats("float32", 5, 2), { op: "grad" });
    folded.apply();
    const [, first, second] = slotsOf(folded.block()).map((bytes) => bytes.slice());
    folded.journal.push(floats("float32", 5, 3), { op: "mix", alpha: 0, beta: 1 });
    folded.journal.set(floats("float32", 5, 4));
    folded.apply();
    expect(slotsOf(folded.block()).slice(1)).toEqual([first, second]);
    expect(folded.block()).toMatchObject({ version: 4, updates: 1 });
  });

  test("are zero again under a new epoch", () => {
    const { folded, plain } = pair(fullConfig("adam"), floats("float32", 5, 1));
    const gradient = floats("float32", 5, 2);
    folded.journal.push(gradient, { op: "grad" });
    folded.journal.init(floats("float32", 5, 1), { config: fullConfig("adam"), epoch: 2 });
    folded.journal.push(gradient, { op: "grad" }, { epoch: 2 });
    plain.push(gradient, { norm: l2Norm(gradient) });
    folded.apply();
    expectEqual(folded, plain);
    expect(folded.block().updates).toBe(1);
  });
});
