import {
  allocateData,
  arrayName,
  bytesOf,
  type Dtype,
  type Encoding,
  holds,
  kindOf,
  type TensorData,
} from "../../protocol/dtypes.ts";
import { PserverError } from "../../protocol/errors.ts";
import type { ParameterInfo } from "../../protocol/messages/lifecycle-messages.ts";
import type { PartIndex } from "../../protocol/messages/parts.ts";
import { quoteName } from "../../protocol/names.ts";
import type { Tensor } from "../../protocol/tensor.ts";
import type { Deadline, Into, NamedTensor } from "../calls/calls.ts";
import type { Parameters } from "../calls/parameters.ts";
import { type BlockPart, type IndexList, planPart, scatterPart } from "../part-plan.ts";
import { checkEncoding } from "../push/block-updates.ts";
import type { BlockReader } from "./block-reader.ts";
import type { BlockState, ParameterRead } from "./read-plan.ts";
import type { ReadMode } from "./read-requests.ts";
import type { ReceivedValues } from "./received-values.ts";

/** Writes the elements of a part of a block to the places that its plan gives. */
function writePart(
  { dtype, data }: Tensor,
  part: BlockPart,
  encoding: Encoding | undefined,
  values: ReceivedValues,
  at: number,
): void {
  const elements = part.messageRows * part.messageRowElements;
  if (part.tensorStart !== undefined) {
    values.write(data, part.tensorStart, elements, encoding, at);
    return;
  }
  const message = allocateData(dtype, elements);
  values.write(message, 0, elements, encoding, at);
  scatterPart(part, message, data);
}

/** What a {@link PulledTensor} was read from. */
interface TensorOrigin {
  readonly epoch: number;
  /** The encoding in which its values came. */
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

  /** Makes a tensor that refers to `data`, which the caller may go on changing. */
  constructor(tensor: Omit<NamedTensor, "version">, origin: TensorOrigin) {
    this.name = tensor.name;
    this.dtype = tensor.dtype;
    this.shape = tensor.shape;
    this.data = tensor.data;
    let newest = 0;
    for (const { version } of origin.blocks) newest = Math.max(newest, version);
    this.version = newest;
    this.#origin = origin;
  }

  /** Returns what a tensor was read from; undefined if no client has read it. */
  static originOf(tensor: object): TensorOrigin | undefined {
    return #origin in tensor ? (tensor as PulledTensor).#origin : undefined;
  }
}

/** A read of a whole parameter into one array; the blocks of a known tensor that have not changed stay. */
export class WholeRead implements ParameterRead {
  readonly info: ParameterInfo;
  readonly #origin: TensorOrigin | undefined;
  readonly #encoding: Encoding | undefined;
  readonly #known: NamedTensor | undefined;
  readonly #states: BlockState[] = [];
  /** Blocks that have not changed since the known tensor was read. */
  readonly #kept: number[] = [];
  /** The array of the result; undefined while the known tensor can still be the result. */
  #data: TensorData | undefined;

  /**
   * Plans a read. `into` receives the values; it has the parameter's type and length. `known` is an earlier
   * result whose array nobody has changed; it is used if it was read under the same epoch and encoding.
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
    this.#origin = isUsable ? origin : undefined;
  }

  get entries(): number {
    return this.info.layout.blocks;
  }

  blockOf(entry: number): number {
    return entry;
  }

  partOf(): undefined {
    return undefined;
  }

  elementsOf(entry: number): number {
    const { elements, blockElements } = this.info.layout;
    return Math.min(blockElements, elements - entry * blockElements);
  }

  knownOf(entry: number): BlockState | undefined {
    return this.#origin?.blocks[entry];
  }

  take(entry: number, values: ReceivedValues | undefined, at: number, state: BlockState): void {
    this.#states[entry] = state;
    if (values === undefined) {
      this.#kept.push(entry);
      return;
    }
    this.#data ??= this.#allocate();
    const start = entry * this.info.layout.blockElements;
    values.write(this.#data, start, this.elementsOf(entry), this.#encoding, at);
  }

  /** Returns the result, once all blocks have come: the known tensor itself if nothing of it has changed. */
  result(): NamedTensor {
    const { name, dtype, shape, epoch } = this.info;
    const known = this.#known;
    const data = this.#data ?? known?.data ?? this.#allocate();
    if (known !== undefined && known.data !== data) {
      for (const entry of this.#kept) {
        const start = entry * this.info.layout.blockElements;
        copyElements(known.data, data, start, this.elementsOf(entry));
      }
    }
    const isSame = this.#kept.length === this.entries && known?.data === data;
    if (isSame && known !== undefined) return known;
    const origin = { epoch, encoding: this.#encoding, blocks: this.#states };
    return new PulledTensor({ name, dtype, shape, data }, origin);
  }

  #allocate(): TensorData {
    return allocateData(this.info.dtype, this.info.layout.elements);
  }
}

/** Copies elements between arrays of one type, at the same places. */
function copyElements(from: TensorData, to: TensorData, start: number, count: number): void {
  bytesOf(to.subarray(start, start + count)).set(bytesOf(from.subarray(start, start + count)));
}

/** How a call reads parameters. */
export interface PullMode extends ReadMode {
  readonly into?: Into | undefined;
  /** Earlier results; what has not changed since is not sent again. */
  readonly known?: readonly NamedTensor[] | undefined;
}

/** How a call reads some elements of a parameter. */
interface PartMode extends ReadMode {
  /** Receives the values. */
  readonly into?: TensorData | undefined;
}

/** A read of some elements of a parameter. */
class PartRead implements ParameterRead {
  readonly info: ParameterInfo;
  readonly tensor: Tensor;
  readonly #parts: readonly BlockPart[];
  readonly #encoding: Encoding | undefined;

  /** @throws as `planPart`; BAD_DTYPE, BAD_LENGTH if the caller's array does not fit. */
  constructor(info: ParameterInfo, indices: readonly IndexList[], { encoding, into }: PartMode) {
    const { dtype } = info;
    const { shape, elements, blocks } = planPart(info, indices);
    if (into !== undefined) checkTarget(info, elements, into);
    const data = into ?? allocateData(dtype, elements);
    this.info = info;
    this.tensor = { dtype, shape, data };
    this.#parts = blocks;
    this.#encoding = encoding;
  }

  get entries(): number {
    return this.#parts.length;
  }

  blockOf(entry: number): number {
    return this.#part(entry).place.index;
  }

  partOf(entry: number): PartIndex | undefined {
    return this.#part(entry).index;
  }

  elementsOf(entry: number): number {
    const { messageRows, messageRowElements } = this.#part(entry);
    return messageRows * messageRowElements;
  }

  knownOf(): undefined {
    return undefined;
  }

  take(entry: number, values: ReceivedValues | undefined, at: number): void {
    // Values always come, because no state is known.
    if (values === undefined) return;
    writePart(this.tensor, this.#part(entry), this.#encoding, values, at);
  }

  #part(entry: number): BlockPart {
    return this.#parts[entry] as BlockPart;
  }
}

/**
 * Reads parameters block by block, straight into the arrays of the result: one copy, from the
 * socket's buffer to the array. That buffer cannot be the array: its bytes are not aligned. A
 * parameter of several blocks is not read at one moment.
 */
export class Puller {
  readonly #parameters: Parameters;
  readonly #reader: BlockReader;

  constructor(parameters: Parameters, reader: BlockReader) {
    this.#parameters = parameters;
    this.#reader = reader;
  }

  /**
   * Reads the values of parameters, in request order; waits until they are initialized. Each result has the
   * array of `into` with its name; without one, that of `known` if nothing has changed, else a new one.
   * @throws BAD_DTYPE or BAD_LENGTH for an array that does not fit, UNSUPPORTED for an encoding that
   * does not, before anything is read.
   */
  async pull(
    names: readonly string[],
    deadline: Deadline,
    mode: PullMode = {},
  ): Promise<NamedTensor[]> {
    const infos = await this.#parameters.waitFor(names, deadline);
    const { encoding, into, known = [] } = mode;
    const targets = infos.map((info) => targetOf(info, into));
    for (const info of infos) checkEncoding(info, encoding);
    const knownByName = new Map(known.map((tensor) => [tensor.name, tensor]));
    // Without an index the parameter was initialized again, and may need another array.
    const plan = (info: ParameterInfo, place?: number): WholeRead =>
      new WholeRead(info, {
        encoding,
        into: place === undefined ? targetOf(info, into) : targets[place],
        known: knownByName.get(info.name),
      });
    const reads = await this.#readCurrent(infos, plan, mode, deadline);
    return reads.map((read) => read.result());
  }

  /** Reads some elements of a parameter; see `Client.pullPart`. */
  async pullPart(
    name: string,
    indices: readonly IndexList[],
    deadline: Deadline,
    mode: PartMode = {},
  ): Promise<Tensor> {
    const infos = await this.#parameters.waitFor([name], deadline);
    for (const info of infos) checkEncoding(info, mode.encoding);
    const plan = (info: ParameterInfo): PartRead => new PartRead(info, indices, mode);
    const [read] = await this.#readCurrent(infos, plan, mode, deadline);
    if (read !== undefined) return read.tensor;
    throw new PserverError("INTERNAL", `${quoteName(name)} was not found`);
  }

  /**
   * Reads each parameter as `plan` says. A parameter that is initialized again during the read, perhaps with
   * another type, shape or layout, is planned and read again.
   */
  async #readCurrent<Read extends ParameterRead>(
    infos: readonly ParameterInfo[],
    plan: (info: ParameterInfo, place?: number) => Read,
    mode: ReadMode,
    deadline: Deadline,
  ): Promise<Read[]> {
    const reads = infos.map((info, place) => plan(info, place));
    let open = reads.map((_, place) => place);
    while (open.length > 0) {
      const pending = open.map((place) => reads[place] as Read);
      const replaced = await this.#reader.readAll(pending, mode, deadline);
      const replacedPlaces: number[] = [];
      replaced.forEach((info, i) => {
        if (info === undefined) return;
        const place = open[i] as number;
        reads[place] = plan(info);
        replacedPlaces.push(place);
      });
      open = replacedPlaces;
    }
    return reads;
  }
}

/** Returns the caller's array for a parameter, if there is one. @throws BAD_DTYPE, BAD_LENGTH. */
function targetOf(info: ParameterInfo, into: Into | undefined): TensorData | undefined {
  if (into === undefined || !Object.hasOwn(into, info.name)) return undefined;
  const target = into[info.name];
  if (target !== undefined) checkTarget(info, info.layout.elements, target);
  return target;
}

/** Checks a caller's array. @throws BAD_DTYPE, BAD_LENGTH if it does not fit. */
function checkTarget({ name, dtype }: ParameterInfo, elements: number, target: TensorData): void {
  if (!holds(dtype, target)) {
    const [expected, received] = [arrayName(dtype), kindOf(target)];
    throw new PserverError(
      "BAD_DTYPE",
      `${quoteName(name)}: into: expected a ${expected} for ${dtype}; received a ${received}`,
      { parameter: name, expected, received },
    );
  }
  if (target.length === elements) return;
  throw new PserverError(
    "BAD_LENGTH",
    `${quoteName(name)}: into: expected ${elements} elements; received ${target.length}`,
    { parameter: name, expected: elements, received: target.length },
  );
}
