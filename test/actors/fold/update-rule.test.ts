import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { UpdateRate } from "../../../src/actors/fold/optimizers.ts";
import {
  accumulate,
  gradientScale,
  shapeGradient,
  slotCount,
  UPDATE_CHUNK_BYTES,
  updateRule,
} from "../../../src/actors/fold/update-rule.ts";
import { ShardMemory } from "../../../src/actors/kernel/shard-memory.ts";
import { OPTIMIZERS, type ParameterConfig, toConfig } from "../../../src/protocol/config/index.ts";

// What a configuration makes of a rule: slots, order of penalties and step, bias correction, rates of
// 0, and that a block may be stepped in chunks of any size. Numbers are worked out by hand; the
// kernels themselves are tested in ../kernel.

const memory = ShardMemory.create();
const { kernels } = memory;
const FLOATS = { float32: Float32Array, float64: Float64Array } as const;
type FloatDtype = keyof typeof FLOATS;

/** Values and slots of a block that is stepped in memory. */
class SteppedBlock {
  readonly #pointers: number[];
  readonly #gradient: number;
  readonly #count: number;
  readonly #dtype: FloatDtype;

  constructor(dtype: FloatDtype, values: readonly number[], slots: number) {
    this.#dtype = dtype;
    this.#count = values.length;
    const bytes = values.length * FLOATS[dtype].BYTES_PER_ELEMENT;
    this.#pointers = Array.from({ length: slots + 1 }, () => memory.allocate(bytes));
    this.#gradient = memory.allocate(bytes);
    for (let i = 0; i <= slots; i++) this.operand(i).fill(0);
    this.operand(0).set(values);
  }

  /** The values (0) or a slot. */
  operand(i: number): Float32Array | Float64Array {
    return this.#view(this.#pointers[i] ?? 0);
  }

  step(config: ParameterConfig, rate: UpdateRate, gradient: readonly number[], chunk = Infinity) {
    const rule = updateRule(kernels, config, this.#dtype);
    this.#view(this.#gradient).set(gradient);
    rule.begin(kernels, rate);
    for (let at = 0; at < this.#count; at += chunk) {
      const offset = at * FLOATS[this.#dtype].BYTES_PER_ELEMENT;
      const [value = 0, ...slots] = this.#pointers.map((pointer) => pointer + offset);
      rule.run(value, this.#gradient + offset, slots, Math.min(chunk, this.#count - at));
    }
  }

  #view(pointer: number): Float32Array | Float64Array {
    const Type = FLOATS[this.#dtype];
    const { buffer } = memory.bytes(pointer, this.#count * Type.BYTES_PER_ELEMENT);
    return new Type(buffer, pointer, this.#count);
  }
}

/** Values of float64 after steps of one gradient each. */
function stepped(input: unknown, value: number, gradients: readonly number[], learningRate = 0.5) {
  const config = toConfig(input);
  const block = new SteppedBlock("float64", [value], slotCount(config));
  gradients.forEach((gradient, i) => {
    block.step(config, { count: i + 1, learningRate }, [gradient]);
  });
  return block.operand(0)[0];
}

describe("slots", () => {
  test.each(OPTIMIZERS)("%s says in both ways how many it has", (optimizer) => {
    const config = toConfig({ optimizer });
    expect(updateRule(kernels, config, "float32").slots).toBe(slotCount(config));
    expect(updateRule(kernels, { ...config, l1: 0.1, l2: 0.1 }, "float64").slots).toBe(
      slotCount(config),
    );
  });

  test("one that is left out is refused before anything is written", () => {
    const rule = updateRule(kernels, toConfig({ optimizer: "adam" }), "float32");
    rule.begin(kernels, { count: 1, learningRate: 1 });
    expect(() => rule.run(0, 0, [0], 1)).toThrow("expected more than 1 slots; received 1");
  });
});

describe("steps worked out by hand", () => {
  test("none adds", () => expect(stepped("{optimizer: none}", 1, [0.25, 0.5])).toBe(1.75));
  test("sgd", () => expect(stepped({ optimizer: "sgd" }, 1, [0.5, 1])).toBe(0.25));

  test("momentum and nesterov", () => {
    const momentum = { name: "momentum", momentum: 0.5 };
    // m: −0.5, then −0.75; values 0.5, −0.25.
    expect(stepped({ optimizer: momentum }, 1, [1, 1])).toBe(-0.25);
    // 1 − 0.25 − 0.5 = 0.25, then 0.25 − 0.375 − 0.5.
    expect(stepped({ optimizer: { ...momentum, name: "nesterov" } }, 1, [1, 1])).toBe(-0.625);
  });

  test("adagrad descends", () => {
    const optimizer = { name: "adagrad", epsilon: 7 };
    // G: 9, root 4: 1 − 0.375.
    expect(stepped({ optimizer }, 1, [3])).toBe(0.625);
  });

  test("rmsprop", () => {
    const optimizer = { name: "rmsprop", rho: 0.75, epsilon: 1 };
    // E: 4, root 2 + 1: 0.5 · 4 / 3.
    expect(stepped({ optimizer }, 1, [4])).toBeCloseTo(1 - 2 / 3, 15);
  });

  test("adadelta", () => {
    const optimizer = { name: "adadelta", rho: 0.75, epsilon: 12 };
    // E: 4, d = √(12 / 16) · 4.
    expect(stepped({ optimizer }, 1, [4])).toBeCloseTo(1 - Math.sqrt(3), 15);
  });

  test("adam's first step is the rate, whatever the gradient", () => {
    const adam = { beta1: 0.9, beta2: 0.999, epsilon: 1e-37 };
    for (const name of ["adam", "adamw", "amsgrad"]) {
      for (const gradient of [1e-3, 7, -2]) {
        const after = stepped({ optimizer: { name, ...adam }, l2: 0 }, 1, [gradient]);
        expect(after).toBeCloseTo(1 - 0.5 * Math.sign(gradient), 12);
      }
    }
  });

  test("where the epsilon of adam and of adamw lies", () => {
    const numbers = { beta1: 0.5, beta2: 0.75, epsilon: 3 };
    // v = 0.25 · 4: adam's lr·√0.25/0.5 · 1/√(1 + 3), adamw's lr · 2/(2 + 3).
    expect(stepped({ optimizer: { name: "adam", ...numbers } }, 1, [2])).toBeCloseTo(0.75, 15);
    expect(stepped({ optimizer: { name: "adamw", ...numbers }, l2: 0 }, 1, [2])).toBeCloseTo(
      0.8,
      15,
    );
  });

  test("amsgrad keeps the largest second moment", () => {
    const optimizer = { name: "amsgrad", beta1: 0, beta2: 0, epsilon: 1e-37 };
    // Steps of 0.5 · 1 and of 0.5 · 0.25 / 1.
    expect(stepped({ optimizer, l2: 0 }, 1, [1, 0.25])).toBeCloseTo(0.375, 15);
  });

  test("ftrl is exactly 0 within l1 and shrinks beyond", () => {
    const ftrl = { optimizer: { name: "ftrl", beta: 1 }, l1: 2 };
    expect(stepped(ftrl, 0, [1.5])).toBe(0);
    // z = 3, N = 9: −(3 − 2) / ((1 + 3) / 0.5).
    expect(stepped(ftrl, 0, [3])).toBe(-0.125);
    expect(stepped(ftrl, 0, [-3])).toBe(0.125);
  });
});

describe("penalties", () => {
  test("coupled L2 goes through the rule, decoupled past it", () => {
    const momentum = { optimizer: { name: "momentum", momentum: 0.5 }, l2: 0.5 };
    // m = −0.5·(1 + 0.5), value 0.25; m = −0.375 − 0.5·0.125.
    expect(stepped({ ...momentum, l2Mode: "coupled" }, 1, [1, 0])).toBe(-0.1875);
    // m = −0.5, value 1 − 0.5 − 0.25; m = −0.25, value 0.25 − 0.25 − 0.0625.
    expect(stepped({ ...momentum, l2Mode: "decoupled" }, 1, [1, 0])).toBe(-0.0625);
  });

  test("sgd takes both alike", () => {
    for (const l2Mode of ["coupled", "decoupled"]) {
      expect(stepped({ optimizer: "sgd", l2: 0.5, l2Mode }, 1, [1])).toBe(0.25);
    }
  });

  test("nesterov without momentum is sgd, coupled L2 included, to the bit", () => {
    const nesterov = { name: "nesterov", momentum: 0 };
    const gradients = [0.1, -0.3, 1e-5, 0];
    for (const l2 of [0, 0.1]) {
      expect(stepped({ optimizer: nesterov, l2 }, 0.7, gradients, 0.01)).toBe(
        stepped({ optimizer: "sgd", l2 }, 0.7, gradients, 0.01),
      );
    }
  });

  test("L1 brings the new value nearer to 0, not beyond it", () => {
    expect(stepped({ optimizer: "sgd", l1: 0.5 }, 1, [1])).toBe(0.25);
    expect(stepped({ optimizer: "sgd", l1: 0.5 }, -1, [-1])).toBe(-0.25);
    expect(stepped({ optimizer: "sgd", l1: 0.5 }, -0.125, [0])).toBe(0);
  });

  test("a rate of 0 leaves every value as it is", () => {
    for (const optimizer of OPTIMIZERS) {
      if (optimizer === "none") continue;
      expect(stepped({ optimizer, l1: 0.5, l2: 0.5 }, 0.7, [1, 2], 0)).toBe(0.7);
    }
  });
});

describe("chunks", () => {
  test.each(["float32", "float64"] as const)("of any size give the same bits: %s", (dtype) => {
    const numbers = fc.array(fc.double({ min: -10, max: 10, noNaN: true }), {
      minLength: 1,
      maxLength: 40,
    });
    const optimizer = fc.constantFrom(...OPTIMIZERS.filter((name) => name !== "none"));
    fc.assert(
      fc.property(numbers, optimizer, fc.integer({ min: 1, max: 7 }), (values, name, chunk) => {
        const config = toConfig({ optimizer: name, l1: 0.01, l2: 0.1 });
        const gradient = values.map((value) => value / 3);
        const whole = new SteppedBlock(dtype, values, slotCount(config));
        const cut = new SteppedBlock(dtype, values, slotCount(config));
        for (const count of [1, 2, 3]) {
          whole.step(config, { count, learningRate: 0.1 }, gradient);
          cut.step(config, { count, learningRate: 0.1 }, gradient, chunk);
        }
        for (let i = 0; i <= slotCount(config); i++) {
          expect(cut.operand(i)).toEqual(whole.operand(i));
        }
      }),
      { numRuns: 100 },
    );
  });

  test("the recommended one holds whole vectors", () => expect(UPDATE_CHUNK_BYTES % 16).toBe(0));
});

describe("a rule that is used again", () => {
  test("takes the coefficients of the new count and rate", () => {
    const config = toConfig({ optimizer: "adam" });
    const rule = updateRule(kernels, config, "float64");
    const rates = [
      { count: 1, learningRate: 0.1 },
      { count: 1, learningRate: 0.2 },
      { count: 5, learningRate: 0.2 },
      { count: 1, learningRate: 0.1 },
    ];
    for (const rate of rates) {
      const again = new SteppedBlock("float64", [1], 2);
      again.step(config, rate, [0.5]);
      const pointer = memory.allocate(32);
      const floats = new Float64Array(memory.bytes(pointer, 32).buffer, pointer, 4);
      floats.set([1, 0.5, 0, 0]);
      rule.begin(kernels, rate);
      rule.run(pointer, pointer + 8, [pointer + 16, pointer + 24], 1);
      expect(floats[0]).toBe(again.operand(0)[0]);
    }
  });
});

describe("gradients", () => {
  test("the scale, and what brings the scaled norm down to clipNorm", () => {
    const config = toConfig({ gradientScale: -2, clipNorm: 1 });
    expect(gradientScale(config, 0.5)).toBe(-2);
    expect(gradientScale(config, 2)).toBe(-0.5);
    expect(gradientScale(config, Infinity)).toBe(-0);
    expect(gradientScale(config, Number.NaN)).toBe(-2);
    expect(gradientScale(toConfig({ gradientScale: 3 }), 1e9)).toBe(3);
  });

  test("shaping scales, then clips each element", () => {
    const pointer = memory.allocate(12);
    const floats = new Float32Array(memory.bytes(pointer, 12).buffer, pointer, 3);
    floats.set([1, -4, 0.25]);
    shapeGradient(kernels, "float32", pointer, 3, 0.5, 1);
    expect([...floats]).toEqual([0.5, -1, 0.125]);
    shapeGradient(kernels, "float32", pointer, 3, 1, undefined);
    expect([...floats]).toEqual([0.5, -1, 0.125]);
  });

  test("accumulating adds; integers wrap around", () => {
    const pointer = memory.allocate(16);
    const { buffer } = memory.bytes(pointer, 16);
    const floats = new Float64Array(buffer, pointer, 2);
    floats.set([1, 2]);
    accumulate(kernels, "float64", pointer, pointer + 8, 1);
    expect(floats[0]).toBe(3);
    const integers = new Int32Array(buffer, pointer, 2);
    integers.set([2 ** 31 - 1, 2]);
    accumulate(kernels, "int32", pointer, pointer + 4, 1);
    expect(integers[0]).toBe(-(2 ** 31) + 1);
    const longs = new BigUint64Array(buffer, pointer, 2);
    longs.set([2n ** 64n - 1n, 2n]);
    accumulate(kernels, "uint64", pointer, pointer + 8, 1);
    expect(longs[0]).toBe(1n);
  });
});
