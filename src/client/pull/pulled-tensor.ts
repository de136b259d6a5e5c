import type { Dtype, TensorData } from "../../protocol/dtypes.ts";
import type { Encoding } from "../../protocol/encoding/encodings.ts";
import type { Tensor } from "../../protocol/tensor.ts";
import type { BlockState } from "./block-read.ts";

/** A parameter's values, with its name. */
export interface NamedTensor extends Tensor {
  readonly name: string;
  /**
   * Number of changes of the parameter; initialization is the first and each update adds 1. For several
   * blocks, which are not read at one moment, the highest of theirs.
   */
  readonly version: number;
}

/** What the values of a {@link PulledTensor} were read from. */
export interface TensorOrigin {
  readonly epoch: number;
  /** The encoding they came in. */
  readonly encoding: Encoding | undefined;
  /** The state of each block of the parameter, by its number. */
  readonly blocks: readonly BlockState[];
}

/** A {@link NamedTensor} as `getParams` returns it: it remembers what was read. */
export class PulledTensor implements NamedTensor {
  readonly name: string;
  readonly dtype: Dtype;
  readonly shape: readonly number[];
  readonly data: TensorData;
  readonly version: number;
  readonly #origin: TensorOrigin;

  /** The tensor refers to `data`, which the caller may go on changing. */
  constructor(tensor: Omit<NamedTensor, "version">, origin: TensorOrigin) {
    this.name = tensor.name;
    this.dtype = tensor.dtype;
    this.shape = tensor.shape;
    this.data = tensor.data;
    this.version = origin.blocks.reduce((most, { version }) => Math.max(most, version), 0);
    this.#origin = origin;
  }

  /** What a tensor was read from; undefined if no client has read it. */
  static originOf(tensor: object): TensorOrigin | undefined {
    return #origin in tensor ? (tensor as PulledTensor).#origin : undefined;
  }
}
