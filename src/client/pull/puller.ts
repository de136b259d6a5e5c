import { allocateData, bytesOf, dtypeOf, type TensorData } from "../../protocol/dtypes.ts";
import { decodeElements } from "../../protocol/encoding/elements.ts";
import type { Encoding } from "../../protocol/encoding/encodings.ts";
import { PserverError } from "../../protocol/errors.ts";
import { blockPlaces } from "../../protocol/layout.ts";
import type { ParameterInfo } from "../../protocol/lifecycle-messages.ts";
import { quoteName } from "../../protocol/names.ts";
import type { Tensor } from "../../protocol/tensor.ts";
import type { Parameters } from "../calls/parameters.ts";
import type { IndexList } from "../parts/part-index.ts";
import { type BlockPart, planPart } from "../parts/part-plan.ts";
import { scatterPart } from "../parts/part-values.ts";
import { checkEncoding } from "../push/fit-tensor.ts";
import type { Deadline } from "../timing/deadline.ts";
import type { BlockReader, ReadMode } from "./block-reader.ts";

/** A parameter's values, with its name. */
export interface NamedTensor extends Tensor {
  readonly name: string;
  /**
   * Number of changes of the parameter; initialization is the first and each update adds 1. For several
   * blocks, which are not read at one moment, the highest of theirs.
   */
  readonly version: number;
}

/** Arrays to read into, by parameter name. */
export type Into = Readonly<Record<string, TensorData>>;

/** Dependencies of Puller. */
export interface PullerDeps {
  readonly parameters: Parameters;
  readonly reader: BlockReader;
}

/** How the parameters of a call are read. */
export interface PullMode extends ReadMode {
  readonly into?: Into | undefined;
}

/**
 * Reads parameters block by block, straight into the arrays of the result: one copy, from the
 * socket's buffer to the array. That buffer cannot be the array: its bytes are not aligned. A
 * parameter of several blocks is not read at one moment.
 */
export class Puller {
  readonly #options: PullerDeps;

  constructor(options: PullerDeps) {
    this.#options = options;
  }

  /**
   * The values of parameters, in request order; waits until they are initialized. In the arrays of
   * `into`, by name, where there is one, else in new ones.
   * @throws BAD_DTYPE or BAD_LENGTH for an array that does not fit, UNSUPPORTED for an encoding that
   * does not, before anything is read.
   */
  async pull(
    names: readonly string[],
    deadline: Deadline,
    mode: PullMode = {},
  ): Promise<NamedTensor[]> {
    const infos = await this.#options.parameters.waitFor(names, deadline);
    for (const info of infos) {
      targetOf(info, mode.into);
      checkEncoding(info, mode.encoding);
    }
    const { reader } = this.#options;
    return Promise.all(
      infos.map((info) =>
        reader.current(info, (current) => this.#pullWhole(current, deadline, mode)),
      ),
    );
  }

  /** Some elements of a parameter, in new memory; see `Client.pullPart`. */
  async pullPart(
    name: string,
    indices: readonly IndexList[],
    deadline: Deadline,
    mode: ReadMode = {},
  ): Promise<Tensor> {
    const infos = await this.#options.parameters.waitFor([name], deadline);
    const [info] = infos;
    if (info === undefined) throw new PserverError("INTERNAL", `${quoteName(name)} was not found`);
    checkEncoding(info, mode.encoding);
    return this.#options.reader.current(info, (current) =>
      this.#pullPart(current, indices, deadline, mode),
    );
  }

  async #pullWhole(info: ParameterInfo, deadline: Deadline, mode: PullMode): Promise<NamedTensor> {
    const { name, dtype, shape, layout } = info;
    const data = targetOf(info, mode.into) ?? allocateData(dtype, layout.elements);
    const reads = blockPlaces(layout).map((place) => ({
      place,
      elements: place.count,
      take: writerTo(data, place.start, place.count, mode.encoding),
    }));
    const version = await this.#options.reader.readAll(info, reads, mode, deadline);
    return { name, dtype, shape, data, version };
  }

  async #pullPart(
    info: ParameterInfo,
    indices: readonly IndexList[],
    deadline: Deadline,
    mode: ReadMode,
  ): Promise<Tensor> {
    const { dtype } = info;
    const { shape, elements, blocks } = planPart(info, indices);
    const data = allocateData(dtype, elements);
    const reads = blocks.map((part) => ({
      place: part.place,
      index: part.index,
      elements: part.messageRows * part.messageRowElements,
      take: partWriter(data, part, mode.encoding),
    }));
    await this.#options.reader.readAll(info, reads, mode, deadline);
    return { dtype, shape, data };
  }
}

/** Writes the elements of a message to consecutive places. */
function writerTo(
  data: TensorData,
  start: number,
  count: number,
  encoding: Encoding | undefined,
): (message: Uint8Array) => void {
  if (encoding === undefined) {
    const target = bytesOf(data);
    const startByte = start * data.BYTES_PER_ELEMENT;
    return (message) => target.set(message, startByte);
  }
  return (message) => {
    if (data instanceof Float32Array) {
      decodeElements(encoding, message, data.subarray(start, start + count));
    }
  };
}

/** Writes the elements of a message to the places that a plan gives. */
function partWriter(
  data: TensorData,
  part: BlockPart,
  encoding: Encoding | undefined,
): (message: Uint8Array) => void {
  const elements = part.messageRows * part.messageRowElements;
  if (part.tensorStart !== undefined) return writerTo(data, part.tensorStart, elements, encoding);
  return (message) => {
    const aligned = allocateData(dtypeOf(data), elements);
    writerTo(aligned, 0, elements, encoding)(message);
    scatterPart(part, aligned, data);
  };
}

/** The caller's array for a parameter, if there is one. @throws BAD_DTYPE, BAD_LENGTH. */
function targetOf({ name, dtype, layout }: ParameterInfo, into: Into = {}): TensorData | undefined {
  const target = Object.hasOwn(into, name) ? into[name] : undefined;
  if (target === undefined) return undefined;
  const received = dtypeOf(target);
  if (received !== dtype) {
    const details = { parameter: name, expected: dtype, received };
    throw new PserverError(
      "BAD_DTYPE",
      `${quoteName(name)}: into: expected ${dtype}; received ${received}`,
      details,
    );
  }
  if (target.length === layout.elements) return target;
  throw new PserverError(
    "BAD_LENGTH",
    `${quoteName(name)}: into: expected ${layout.elements} elements; received ${target.length}`,
    { parameter: name, expected: layout.elements, received: target.length },
  );
}
