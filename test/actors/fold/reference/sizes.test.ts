import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Random } from "../../../../examples/digits/random.ts";
import { ShardMemory } from "../../../../src/actors/kernel/shard-memory.ts";
import {
  OPTIMIZERS,
  type Optimizer,
  type ParameterSettings,
  toConfig,
} from "../../../../src/protocol/config/index.ts";
import { ReferenceBlock } from "./block.ts";
import { type FloatData, KernelBlock } from "./kernel-block.ts";
import { distance, elementsOf, FLOAT_DTYPES, normOf, pairOf } from "./pair.ts";

// Proves that a rule does the same to an element wherever it lies: in blocks shorter than a vector, at
// the end of a block that is no whole number of vectors, and in one of 2^20 + 1 elements.

const LARGE = 2 ** 20 + 1;

/** A prime, so that each element of the pattern lies at every place of a vector and of a chunk. */
const PERIOD = 1009;

function settingsOf(name: Optimizer["name"]): ParameterSettings {
  if (name === "none") return { optimizer: name, clipValue: 1.5, gradientScale: 0.5 };
  return { optimizer: name, learningRate: 0.1, l1: 0.01, l2: 0.01, clipValue: 1.5 };
}

function normals(dtype: "float32" | "float64", count: number, random: Random): FloatData {
  return elementsOf(
    dtype,
    Array.from({ length: count }, () => random.normal()),
  );
}

function repeated(pattern: FloatData, count: number): FloatData {
  const data = elementsOf(pattern instanceof Float32Array ? "float32" : "float64", []);
  const Elements = data.constructor as new (length: number) => FloatData;
  const whole = new Elements(count);
  for (let start = 0; start < count; start += pattern.length) {
    whole.set(pattern.subarray(0, count - start), start);
  }
  return whole;
}

function bytesOf(data: FloatData): Buffer {
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength);
}

describe.each(OPTIMIZERS)("%s", (name) => {
  test.each(FLOAT_DTYPES)("follows its reference in short blocks of %s", (dtype) => {
    for (const size of [0, 1, 3, 4, 5]) {
      const random = new Random(size);
      const pair = pairOf(settingsOf(name), normals(dtype, size, random));
      for (let step = 0; step < 5; step++) {
        const gradient = normals(dtype, size, random);
        pair.kernels.push(gradient, { norm: normOf(gradient) });
        pair.reference.push(gradient, { norm: normOf(gradient) });
        expect(distance(pair)).toBeLessThanOrEqual(1);
      }
    }
  });

  test.each(FLOAT_DTYPES)("does the same at every place of a large block of %s", (dtype) => {
    const random = new Random(5);
    const config = toConfig(settingsOf(name));
    const pattern = normals(dtype, PERIOD, random);
    const kernels = new KernelBlock(config, repeated(pattern, LARGE));
    const reference = new ReferenceBlock(config, dtype, pattern);
    for (let step = 0; step < 2; step++) {
      const gradient = normals(dtype, PERIOD, random);
      kernels.push(repeated(gradient, LARGE), { norm: 1 });
      reference.push(gradient, { norm: 1 });
    }
    expect(distance({ kernels, reference })).toBeLessThanOrEqual(1);
    for (let column = 0; column < kernels.columns; column++) {
      const computed = kernels.column(column);
      const later = bytesOf(computed.subarray(PERIOD));
      expect(later.equals(bytesOf(computed.subarray(0, LARGE - PERIOD)))).toBe(true);
    }
  });

  test("does not look at neighbours, whatever the elements are", () => {
    const memory = ShardMemory.create();
    const config = toConfig(settingsOf(name));
    const element = fc.tuple(fc.float(), fc.float(), fc.float());
    const run = (elements: readonly (readonly number[])[]): Buffer[] => {
      const column = (i: number): FloatData =>
        elementsOf(
          "float32",
          elements.map((numbers) => numbers[i] as number),
        );
      const block = new KernelBlock(config, column(0), memory);
      for (const i of [1, 2]) block.push(column(i), { norm: 1 });
      return Array.from({ length: block.columns }, (_, i) => bytesOf(block.column(i)));
    };
    fc.assert(
      fc.property(
        fc.array(element, { maxLength: 9 }),
        fc.array(element, { maxLength: 9 }),
        (front, back) => {
          const apart = [run(front), run(back)];
          const together = run([...front, ...back]);
          for (const [i, column] of together.entries()) {
            const pieces = apart.map((columns) => columns[i] as Buffer);
            expect(column.equals(Buffer.concat(pieces))).toBe(true);
          }
        },
      ),
      { numRuns: 50 },
    );
  });
});
