import { allocateData, bytesOf, type TensorData } from "../../protocol/dtypes.ts";
import type { Encoding } from "../../protocol/encoding/encodings.ts";
import { type BlockPlace, blockPlaces } from "../../protocol/layout.ts";
import type { ParameterInfo } from "../../protocol/lifecycle-messages.ts";
import type { BlockRead, BlockState, ParameterRead } from "./block-read.ts";
import { writeElements } from "./element-writer.ts";
import { type NamedTensor, PulledTensor } from "./pulled-tensor.ts";

/** A read of a whole parameter into one array; the blocks of a known tensor that have not changed stay. */
export class WholeRead implements ParameterRead {
  readonly info: ParameterInfo;
  readonly blocks: readonly BlockRead[];
  readonly #encoding: Encoding | undefined;
  readonly #known: NamedTensor | undefined;
  readonly #states: BlockState[] = [];
  /** Blocks that the known tensor has. */
  readonly #kept: BlockPlace[] = [];
  /** The array of the result; undefined as long as it could be that of the known tensor. */
  #data: TensorData | undefined;

  /**
   * `into`: receives the values; of the parameter's type and length. `known`: an earlier result whose array
   * has not been changed by others; used if it was read under the same epoch and encoding.
   */
  constructor(
    info: ParameterInfo,
    options: {
      readonly encoding?: Encoding | undefined;
      readonly into?: TensorData | undefined;
      readonly known?: NamedTensor | undefined;
    },
  ) {
    const { encoding, into, known } = options;
    const origin = known === undefined ? undefined : PulledTensor.originOf(known);
    const isUsable = origin?.epoch === info.epoch && origin.encoding === encoding;
    this.info = info;
    this.#encoding = encoding;
    this.#known = isUsable ? known : undefined;
    this.#data = into;
    this.blocks = blockPlaces(info.layout).map((place) => ({
      place,
      elements: place.count,
      known: isUsable ? origin.blocks[place.index] : undefined,
      take: (data, state) => this.#take(place, data, state),
    }));
  }

  /** The result, once all blocks have come; the known tensor itself if nothing of it has changed. */
  result(): NamedTensor {
    const { name, dtype, shape, epoch } = this.info;
    const known = this.#known;
    const data = this.#data ?? known?.data ?? this.#allocate();
    if (known !== undefined && known.data !== data) {
      for (const { start, count } of this.#kept) {
        copyElements(known.data, data, start, count);
      }
    }
    const isSame = this.#kept.length === this.blocks.length && known?.data === data;
    if (isSame && known !== undefined) return known;
    const origin = { epoch, encoding: this.#encoding, blocks: this.#states };
    return new PulledTensor({ name, dtype, shape, data }, origin);
  }

  #take(place: BlockPlace, bytes: Uint8Array | undefined, state: BlockState): void {
    this.#states[place.index] = state;
    if (bytes === undefined) {
      this.#kept.push(place);
      return;
    }
    this.#data ??= this.#allocate();
    writeElements(this.#data, place.start, place.count, this.#encoding, bytes);
  }

  #allocate(): TensorData {
    return allocateData(this.info.dtype, this.info.layout.elements);
  }
}

/** Copies elements between arrays of one type, at the same places. */
function copyElements(from: TensorData, to: TensorData, start: number, count: number): void {
  bytesOf(to.subarray(start, start + count)).set(bytesOf(from.subarray(start, start + count)));
}
