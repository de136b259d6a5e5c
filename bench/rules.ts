import { slotCount, updateRule } from "../src/actors/fold/update-rule.ts";
import { instantiateKernels } from "../src/actors/kernel/kernels.ts";
import { type ParameterConfigInput, toConfig } from "../src/protocol/config/index.ts";
import { type CopyKernel, instantiateCopy } from "./copy-kernel.ts";

const MIB = 1024 ** 2;
const PAGE_BYTES = 64 * 1024;
/** Each figure is the best round within this time, and of so many rounds at least. */
const MEASURE_MS = 200;
const ROUNDS_MIN = 5;
/** The least work of one round, so that reading the clock does not matter. */
const ROUND_BYTES = 8 * MIB;
/** Length of the rounds that are not counted, while V8 compiles. */
const WARM_UP_MS = 60;

/** One rule on a float32 parameter of one size. */
export interface RuleResult {
  readonly name: string;
  readonly bytes: number;
  /** Bytes that the rule reads and writes per second, in 1e9. */
  readonly gbPerSecond: number;
  /** The time of a plain SIMD copy that reads and writes as many bytes, over the rule's. */
  readonly ratioToCopy: number;
  /** How many times longer the rule takes with the worst of the denormal operands. */
  readonly denormalSlowdown: number;
}

const CONFIGS: readonly (readonly [name: string, config: ParameterConfigInput])[] = [
  ["none", { optimizer: "none" }],
  ["sgd", { optimizer: "sgd" }],
  ["sgd, coupled L2", { optimizer: "sgd", l2: 1e-4 }],
  ["sgd, L1", { optimizer: "sgd", l1: 1e-6 }],
  ["momentum", { optimizer: "momentum" }],
  ["nesterov", { optimizer: "nesterov" }],
  ["adagrad", { optimizer: "adagrad" }],
  ["rmsprop", { optimizer: "rmsprop" }],
  ["adadelta", { optimizer: "adadelta" }],
  ["adam", { optimizer: "adam" }],
  ["adamw", { optimizer: "adamw" }],
  ["amsgrad", { optimizer: "amsgrad" }],
  ["ftrl", { optimizer: "ftrl" }],
];

/** The numbers that values, gradients and slots are filled with. */
interface Filling {
  readonly value: number;
  readonly gradient: number;
  readonly slot: number;
}

const ORDINARY: Filling = { value: 1, gradient: 0.5, slot: 0.1 };

/**
 * Operands and results that leave the normal numbers: the gradients, their products with a rate,
 * their squares; slots that decay while gradients are 0, which is what happens in training; all.
 */
const DENORMAL: readonly Filling[] = [
  { value: 1, gradient: 1.3e-40, slot: 0 },
  { value: 1, gradient: 1.3e-35, slot: 0 },
  { value: 1, gradient: 1.3e-19, slot: 0 },
  { value: 1, gradient: 0, slot: 1.3e-34 },
  { value: 1, gradient: 0, slot: 1.3e-39 },
  { value: 1.3e-39, gradient: 1.3e-39, slot: 1.3e-39 },
];

/** Measures every rule on float32 parameters of these sizes; the best of several rounds. */
export function benchRules(sizes: readonly number[]): RuleResult[] {
  return sizes.flatMap(benchSize);
}

function benchSize(bytes: number): RuleResult[] {
  const bed = new RuleBed(bytes);
  return CONFIGS.map(([name, input]) => {
    const touched = bed.touchedBytes(input);
    const copyMs = bed.copyMs(touched);
    const ordinaryMs = bed.ruleMs(input, ORDINARY);
    const worstMs = Math.max(...DENORMAL.map((filling) => bed.ruleMs(input, filling)));
    return {
      name,
      bytes,
      gbPerSecond: touched / ordinaryMs / 1e6,
      ratioToCopy: copyMs / ordinaryMs,
      denormalSlowdown: worstMs / ordinaryMs,
    };
  });
}

/** A memory with a value, a gradient and three slots, and the same bytes again to copy to. */
class RuleBed {
  readonly #bytes: number;
  readonly #memory: WebAssembly.Memory;
  readonly #kernels: ReturnType<typeof instantiateKernels>;
  readonly #copy: CopyKernel;

  constructor(bytes: number) {
    const pages = 1 + Math.ceil((10 * bytes) / PAGE_BYTES);
    this.#bytes = bytes;
    this.#memory = new WebAssembly.Memory({ initial: pages, maximum: pages });
    this.#kernels = instantiateKernels(this.#memory);
    this.#copy = instantiateCopy(this.#memory);
  }

  /** Counts the bytes that a rule reads and writes: all operands, and all but the gradient. */
  touchedBytes(input: ParameterConfigInput): number {
    return (3 + 2 * slotCount(toConfig(input))) * this.#bytes;
  }

  copyMs(touched: number): number {
    const vectors = touched / 2 / 16;
    return this.#bestMs(() => this.#copy(this.#operand(5), this.#operand(0), vectors));
  }

  ruleMs(input: ParameterConfigInput, filling: Filling): number {
    const config = toConfig(input);
    const rule = updateRule(this.#kernels, config, "float32");
    const slots = Array.from({ length: rule.slots }, (_, i) => this.#operand(2 + i));
    this.#fill(0, filling.value);
    this.#fill(1, filling.gradient);
    for (const [i] of slots.entries()) this.#fill(2 + i, filling.slot);
    const value = this.#operand(0);
    const gradient = this.#operand(1);
    const elements = this.#bytes / 4;
    // A later update, so that Adam's correction is near its end.
    const rate = { count: 1000, learningRate: 1e-3 };
    return this.#bestMs(() => {
      rule.begin(this.#kernels, rate);
      rule.run(value, gradient, slots, elements);
    });
  }

  #operand(i: number): number {
    return PAGE_BYTES + i * this.#bytes;
  }

  #fill(operand: number, x: number): void {
    new Float32Array(this.#memory.buffer, this.#operand(operand), this.#bytes / 4).fill(x);
  }

  /** Returns the time of one call, in the best round. */
  #bestMs(call: () => void): number {
    const calls = Math.max(1, Math.floor(ROUND_BYTES / this.#bytes));
    const warmUntil = performance.now() + WARM_UP_MS;
    while (performance.now() < warmUntil) call();
    const measureUntil = performance.now() + MEASURE_MS;
    let best = Number.POSITIVE_INFINITY;
    for (let round = 0; round < ROUNDS_MIN || performance.now() < measureUntil; round++) {
      const startMs = performance.now();
      for (let i = 0; i < calls; i++) call();
      best = Math.min(best, performance.now() - startMs);
    }
    return best / calls;
  }
}
