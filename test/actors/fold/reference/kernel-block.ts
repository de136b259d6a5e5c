import {
  gradientScale,
  learningRateAt,
  shapeGradient,
  slotCount,
  type UpdateRule,
  updateRule,
} from "../../../../src/actors/fold/update-rule.ts";
import { ShardMemory } from "../../../../src/actors/kernel/shard-memory.ts";
import type { ParameterConfig } from "../../../../src/protocol/config/index.ts";
import type { Encoding } from "../../../../src/protocol/dtypes.ts";
import type { GradientInput } from "./block.ts";

/** Elements of a type in its array. */
export type FloatData = Float32Array<ArrayBuffer> | Float64Array<ArrayBuffer>;

/** A block of float elements that the kernels update, in the order in which the fold does it. */
export class KernelBlock {
  readonly #memory: ShardMemory;
  readonly #config: ParameterConfig;
  readonly #dtype: "float32" | "float64";
  readonly #count: number;
  readonly #bytes: number;
  readonly #rule: UpdateRule;
  /** Pointers of the values, then of the slots. */
  readonly #columns: readonly number[];
  readonly #gradient: number;
  readonly #encoded: number;
  #updates = 0;

  /** `memory` may serve more than one block; what they take is never freed. */
  constructor(config: ParameterConfig, values: FloatData, memory = ShardMemory.create()) {
    this.#memory = memory;
    this.#config = config;
    this.#dtype = values instanceof Float32Array ? "float32" : "float64";
    this.#count = values.length;
    this.#bytes = values.byteLength;
    this.#rule = updateRule(this.#memory.kernels, config, this.#dtype);
    this.#columns = Array.from({ length: 1 + slotCount(config) }, () => this.#allocate());
    this.#gradient = this.#allocate();
    this.#encoded = this.#allocate();
    this.#write(this.#columns[0] as number, bytesOf(values));
  }

  /** The values (0) or one of the slots (from 1 on), copied. */
  column(index: number): FloatData {
    const bytes = this.#memory.bytes(this.#columns[index] as number, this.#bytes).slice();
    return this.#dtype === "float32"
      ? new Float32Array(bytes.buffer)
      : new Float64Array(bytes.buffer);
  }

  get columns(): number {
    return this.#columns.length;
  }

  /** Applies a gradient: elements, or the bytes of encoded ones. */
  push(gradient: FloatData | Uint8Array, input: GradientInput, encoding?: Encoding): void {
    const { kernels } = this.#memory;
    if (encoding === undefined) {
      this.#write(this.#gradient, bytesOf(gradient));
    } else {
      this.#write(this.#encoded, bytesOf(gradient));
      const widen = encoding === "bfloat16" ? kernels.widenBf16 : kernels.widenF16;
      widen(this.#gradient, this.#encoded, this.#count);
    }
    const scale = gradientScale(this.#config, input.norm);
    const { clipValue, learningRate: schedule } = this.#config;
    shapeGradient(kernels, this.#dtype, this.#gradient, this.#count, scale, clipValue);
    const count = ++this.#updates;
    const scheduled = schedule === undefined ? 0 : learningRateAt(kernels, schedule, count);
    this.#rule.begin(kernels, { count, learningRate: input.learningRate ?? scheduled });
    const [values, ...slots] = this.#columns as [number, ...number[]];
    this.#rule.run(values, this.#gradient, slots, this.#count);
  }

  #allocate(): number {
    const pointer = this.#memory.allocate(this.#bytes);
    this.#memory.bytes(pointer, this.#bytes).fill(0);
    return pointer;
  }

  #write(pointer: number, bytes: Uint8Array): void {
    this.#memory.bytes(pointer, bytes.length).set(bytes);
  }
}

function bytesOf(data: FloatData | Uint8Array): Uint8Array {
  return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
}
