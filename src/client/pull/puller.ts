import { allocateData, dtypeOf, type TensorData } from "../../protocol/dtypes.ts";
import { PserverError } from "../../protocol/errors.ts";
import type { ParameterInfo } from "../../protocol/lifecycle-messages.ts";
import { quoteName } from "../../protocol/names.ts";
import type { Tensor } from "../../protocol/tensor.ts";
import type { Parameters } from "../calls/parameters.ts";
import type { IndexList } from "../parts/part-index.ts";
import { planPart } from "../parts/part-plan.ts";
import { checkEncoding } from "../push/fit-tensor.ts";
import type { Deadline } from "../timing/deadline.ts";
import type { ParameterRead, ReadMode } from "./block-read.ts";
import type { BlockReader } from "./block-reader.ts";
import { writePart } from "./element-writer.ts";
import type { NamedTensor } from "./pulled-tensor.ts";
import { WholeRead } from "./whole-read.ts";

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
  /** Earlier results; what has not changed since is not sent again. */
  readonly known?: readonly NamedTensor[] | undefined;
}

/** How some elements of a parameter are read. */
export interface PartMode extends ReadMode {
  /** Receives the values. */
  readonly into?: TensorData | undefined;
}

/** A read of some elements of a parameter. */
interface PartRead extends ParameterRead {
  readonly tensor: Tensor;
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
   * `into`, by name, where there is one, else in those of `known` if nothing has changed, else in new ones.
   * @throws BAD_DTYPE or BAD_LENGTH for an array that does not fit, UNSUPPORTED for an encoding that
   * does not, before anything is read.
   */
  async pull(
    names: readonly string[],
    deadline: Deadline,
    mode: PullMode = {},
  ): Promise<NamedTensor[]> {
    const infos = await this.#options.parameters.waitFor(names, deadline);
    const { encoding, into, known = [] } = mode;
    const targets = infos.map((info) => targetOf(info, into));
    for (const info of infos) checkEncoding(info, encoding);
    const knownByName = new Map(known.map((tensor) => [tensor.name, tensor]));
    // Without a place, it was initialized anew and may need another array.
    const plan = (info: ParameterInfo, place?: number): WholeRead =>
      new WholeRead(info, {
        encoding,
        into: place === undefined ? targetOf(info, into) : targets[place],
        known: knownByName.get(info.name),
      });
    const reads = await this.#readCurrent(infos, plan, mode, deadline);
    return reads.map((read) => read.result());
  }

  /** Some elements of a parameter; see `Client.pullPart`. */
  async pullPart(
    name: string,
    indices: readonly IndexList[],
    deadline: Deadline,
    mode: PartMode = {},
  ): Promise<Tensor> {
    const infos = await this.#options.parameters.waitFor([name], deadline);
    for (const info of infos) checkEncoding(info, mode.encoding);
    const plan = (info: ParameterInfo): PartRead => planPartRead(info, indices, mode);
    const [read] = await this.#readCurrent(infos, plan, mode, deadline);
    if (read !== undefined) return read.tensor;
    throw new PserverError("INTERNAL", `${quoteName(name)} was not found`);
  }

  /**
   * Reads what `plan` makes of each parameter. Reads a parameter again if it was initialized anew meanwhile,
   * which may have changed its type, shape or layout.
   */
  async #readCurrent<Read extends ParameterRead>(
    infos: readonly ParameterInfo[],
    plan: (info: ParameterInfo, place?: number) => Read,
    mode: ReadMode,
    deadline: Deadline,
  ): Promise<Read[]> {
    const { reader } = this.#options;
    const reads = infos.map((info, place) => plan(info, place));
    let open = reads.map((_, place) => place);
    while (open.length > 0) {
      const pending = open.map((place) => reads[place] as Read);
      const replaced = await reader.readAll(pending, mode, deadline);
      const again: number[] = [];
      replaced.forEach((info, i) => {
        if (info === undefined) return;
        const place = open[i] as number;
        reads[place] = plan(info);
        again.push(place);
      });
      open = again;
    }
    return reads;
  }
}

function planPartRead(
  info: ParameterInfo,
  indices: readonly IndexList[],
  { encoding, into }: PartMode,
): PartRead {
  const { dtype } = info;
  const { shape, elements, blocks } = planPart(info, indices);
  if (into !== undefined) checkTarget(info, elements, into);
  const data = into ?? allocateData(dtype, elements);
  return {
    info,
    tensor: { dtype, shape, data },
    blocks: blocks.map((part) => ({
      place: part.place,
      index: part.index,
      elements: part.messageRows * part.messageRowElements,
      take: (message) => {
        // Values always come, because none are known.
        if (message !== undefined) writePart(data, part, encoding, message);
      },
    })),
  };
}

/** The caller's array for a parameter, if there is one. @throws BAD_DTYPE, BAD_LENGTH. */
function targetOf(info: ParameterInfo, into: Into | undefined): TensorData | undefined {
  if (into === undefined || !Object.hasOwn(into, info.name)) return undefined;
  const target = into[info.name];
  if (target !== undefined) checkTarget(info, info.layout.elements, target);
  return target;
}

/** @throws BAD_DTYPE, BAD_LENGTH for a caller's array that does not fit. */
function checkTarget({ name, dtype }: ParameterInfo, elements: number, target: TensorData): void {
  const received = dtypeOf(target);
  if (received !== dtype) {
    const details = { parameter: name, expected: dtype, received };
    throw new PserverError(
      "BAD_DTYPE",
      `${quoteName(name)}: into: expected ${dtype}; received ${received}`,
      details,
    );
  }
  if (target.length === elements) return;
  throw new PserverError(
    "BAD_LENGTH",
    `${quoteName(name)}: into: expected ${elements} elements; received ${target.length}`,
    { parameter: name, expected: elements, received: target.length },
  );
}
