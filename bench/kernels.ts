import { ShardMemory } from "../src/actors/kernel/shard-memory.ts";

const BLOCK_BYTES = 1024 * 1024;
const ELEMENTS = BLOCK_BYTES / 4;
const ROUNDS = 15;
const CALLS_PER_ROUND = 40;

/** One kernel on a block of 1 MiB. */
export interface KernelResult {
  readonly name: string;
  /** Bytes of the block (the operand's not counted) per second, in 1e9. */
  readonly gbPerSecond: number;
  /** The same over what a plain JavaScript loop on a `Float32Array` did in this run. */
  readonly ratioToPlainJs: number;
}

/**
 * A kernel and the loop it is compared with: both start from a block of `value` and an operand
 * block of `operand`.
 */
interface Comparison {
  readonly name: string;
  readonly value: number;
  readonly operand: number;
  readonly plainJs: (values: Float32Array, operands: Float32Array) => void;
  readonly kernel: (memory: ShardMemory, value: number, operand: number) => void;
}

const COMPARISONS: readonly Comparison[] = [
  {
    name: "mixF32",
    value: 1,
    operand: 0.5,
    plainJs: (values, operands) => mixPlain(values, operands, 0.5, 0.5),
    kernel: (memory, value, operand) => memory.kernels.mixF32(value, operand, ELEMENTS, 0.5, 0.5),
  },
  {
    name: "finiteF32",
    value: 1,
    operand: 0,
    plainJs: (values) => void finitePlain(values),
    kernel: (memory, value) => void memory.kernels.finiteF32(value, ELEMENTS),
  },
  sgd("sgdF32", 1, 0.5, 1e-6),
  sgd("sgdF32, denormal gradients", 1, 1e-40, 0.5),
  sgd("sgdF32, denormal products", 1, 1e-35, 1e-6),
  sgd("sgdF32, all denormal", 1e-39, 1e-40, 1e-3),
];

/**
 * Measures the float32 kernels on a block of 1 MiB that stays in the processor's cache, compared
 * with a plain loop; the best of 15 rounds. The goal is `sgdF32` at 3 times the loop.
 *
 * The loops all run first: once a memory has grown, which detaches an `ArrayBuffer`, V8 checks
 * every access to any typed array of the thread, and they would take nearly twice as long.
 */
export function benchKernels(): KernelResult[] {
  const values = new Float32Array(ELEMENTS);
  const operands = new Float32Array(ELEMENTS);
  const plainMs = COMPARISONS.map((comparison) => {
    values.fill(comparison.value);
    operands.fill(comparison.operand);
    return bestMs(() => comparison.plainJs(values, operands));
  });

  const memory = ShardMemory.create({ bytesMax: 16 * BLOCK_BYTES });
  const value = memory.allocate(BLOCK_BYTES);
  const operand = memory.allocate(BLOCK_BYTES);
  return COMPARISONS.map((comparison, at) => {
    floats(memory, value).fill(comparison.value);
    floats(memory, operand).fill(comparison.operand);
    const kernelMs = bestMs(() => comparison.kernel(memory, value, operand));
    return {
      name: comparison.name,
      gbPerSecond: BLOCK_BYTES / kernelMs / 1e6,
      ratioToPlainJs: (plainMs[at] ?? Number.NaN) / kernelMs,
    };
  });
}

function sgd(name: string, value: number, gradient: number, lr: number): Comparison {
  return {
    name,
    value,
    operand: gradient,
    plainJs: (values, gradients) => sgdPlain(values, gradients, lr),
    kernel: (memory, at, gradientAt) => memory.kernels.sgdF32(at, gradientAt, ELEMENTS, lr),
  };
}

function floats(memory: ShardMemory, pointer: number): Float32Array {
  const bytes = memory.bytes(pointer, BLOCK_BYTES);
  return new Float32Array(bytes.buffer, bytes.byteOffset, ELEMENTS);
}

function mixPlain(value: Float32Array, operand: Float32Array, alpha: number, beta: number): void {
  for (let i = 0; i < value.length; i++) {
    value[i] = alpha * (value[i] ?? 0) + beta * (operand[i] ?? 0);
  }
}

function sgdPlain(value: Float32Array, gradient: Float32Array, lr: number): void {
  for (let i = 0; i < value.length; i++) value[i] = (value[i] ?? 0) - lr * (gradient[i] ?? 0);
}

function finitePlain(value: Float32Array): boolean {
  for (let i = 0; i < value.length; i++) if (!Number.isFinite(value[i])) return false;
  return true;
}

/** Returns the time of one call, in the best round. */
function bestMs(call: () => void): number {
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < ROUNDS; round++) {
    const startMs = performance.now();
    for (let i = 0; i < CALLS_PER_ROUND; i++) call();
    best = Math.min(best, performance.now() - startMs);
  }
  return best / CALLS_PER_ROUND;
}

function main(): void {
  for (const { name, gbPerSecond, ratioToPlainJs } of benchKernels()) {
    const speed = `${gbPerSecond.toFixed(2)} GB/s`.padStart(12);
    console.log(`${name.padEnd(28)}${speed}  ${ratioToPlainJs.toFixed(1)} times plain JS`);
  }
}

if (import.meta.filename === process.argv[1]) main();
