import { type Allocate, packValue, sealMessage } from "../../protocol/codec.ts";
import { checkTakesGradients } from "../../protocol/config/index.ts";
import {
  bytesOf,
  DTYPES,
  dtypeOf,
  ENCODINGS,
  type Encoding,
  encodedBytes,
  infiniteFrom,
  isEncoding,
  type TensorData,
} from "../../protocol/dtypes.ts";
import { encodeElements, normAsEncoded, staysFinite } from "../../protocol/encoding/encoding.ts";
import { PserverError } from "../../protocol/errors.ts";
import { type BlockPlace, blockPlaces } from "../../protocol/layout.ts";
import type { Declaration, ParameterInfo } from "../../protocol/messages/lifecycle-messages.ts";
import {
  type BlockRows,
  blockRows,
  type PartIndex,
  packedIndexBytes,
  partCounts,
  partIndexBytes,
  writePackedIndex,
  writePartIndex,
} from "../../protocol/messages/parts.ts";
import {
  draftRecord,
  type PushOperation,
  type RecordHeader,
  type TrainerRecord,
} from "../../protocol/messages/records.ts";
import { quoteName } from "../../protocol/names.ts";
import {
  distinct,
  isAscending,
  type Numbers,
  sumByPlace,
} from "../../protocol/row-lists/row-lists.ts";
import type { JobSubjects } from "../../protocol/subjects.ts";
import {
  l2Norm,
  sameShape,
  type Tensor,
  type TensorLike,
  toTensor,
} from "../../protocol/tensor.ts";
import type { SeenVersions } from "../calls/parameters.ts";
import type { EntrySource, Topic, UpdateSource } from "../io/update-sender.ts";
import {
  gatherPart,
  type IndexList,
  normalizeList,
  type PartSlice,
  planRows,
  slicePart,
} from "../part-plan.ts";

/**
 * Returns the given tensor if it fits the parameter; a bare typed array of as many elements takes the
 * parameter's shape. The data is not copied.
 * @throws BAD_DTYPE, BAD_SHAPE or BAD_LENGTH if it does not fit.
 */
export function fitTensor(info: ParameterInfo, given: TensorLike): Tensor {
  const { dtype, shape, layout } = info;
  return { dtype, shape, data: fitData(info, given, shape, layout.elements) };
}

/**
 * Returns the given elements if they fit some elements of a parameter; of a bare typed array only the
 * length counts.
 * @param shape expected of a tensor; a dimension may be 0.
 * @throws BAD_DTYPE, BAD_SHAPE or BAD_LENGTH if they do not fit.
 */
export function fitData(
  { name, dtype }: Pick<Declaration, "name" | "dtype">,
  given: TensorLike,
  shape: readonly number[],
  elements: number,
): TensorData {
  const tensor = named(name, () => (elements === 0 ? toEmpty(given) : toTensor(given)));
  if (tensor.dtype !== dtype) {
    throw new PserverError(
      "BAD_DTYPE",
      `${quoteName(name)}: expected ${dtype}; received ${tensor.dtype}`,
      { parameter: name, expected: dtype, received: tensor.dtype },
    );
  }
  const isBare = ArrayBuffer.isView(given);
  const fits = tensor.data.length === elements && (isBare || sameShape(tensor.shape, shape));
  if (!fits) {
    const received = isBare ? `${tensor.data.length} elements` : `[${tensor.shape}]`;
    throw new PserverError(
      "BAD_SHAPE",
      `${quoteName(name)}: expected shape [${shape}]; received ${received}`,
      { parameter: name, expected: shape, received: tensor.shape },
    );
  }
  return tensor.data;
}

/**
 * Checks that elements are finite, also when encoded, unless the parameter allows others.
 * @throws NON_FINITE naming the first that is not; what {@link checkEncoding} throws.
 */
export function checkFiniteElements(
  parameter: Pick<Declaration, "name" | "dtype" | "config">,
  data: TensorData,
  encoding?: Encoding,
): void {
  checkEncoding(parameter, encoding);
  if (parameter.config.allowNonFinite || allFinite(data, encoding)) return;
  throw nonFinite(parameter.name, data, encoding);
}

/**
 * Checks a gradient as {@link checkFiniteElements} does and returns its L2 norm, as encoded, if the
 * parameter clips by it: every block update carries the norm of the whole gradient.
 * @throws as {@link checkFiniteElements}.
 */
export function checkedNorm(
  parameter: Pick<Declaration, "name" | "dtype" | "config">,
  data: TensorData,
  encoding?: Encoding,
): number | undefined {
  if (parameter.config.clipNorm === undefined) {
    checkFiniteElements(parameter, data, encoding);
    return undefined;
  }
  checkEncoding(parameter, encoding);
  const norm =
    encoding !== undefined && data instanceof Float32Array
      ? normAsEncoded(encoding, data)
      : l2Norm(data);
  // A norm is finite exactly if all elements are, so one pass finds both.
  if (!Number.isFinite(norm)) checkFiniteElements(parameter, data, encoding);
  return norm;
}

function allFinite(data: TensorData, encoding: Encoding | undefined): boolean {
  if (data instanceof Float32Array) return staysFinite(data, encoding);
  if (!(data instanceof Float64Array)) return true;
  for (let i = 0; i < data.length; i++) if (!Number.isFinite(data[i])) return false;
  return true;
}

function nonFinite(
  parameter: string,
  data: TensorData,
  encoding: Encoding | undefined,
): PserverError {
  const bound = infiniteFrom(encoding);
  const index = data.findIndex((value: number | bigint) => !(Math.abs(Number(value)) < bound));
  const received = data[index];
  const form = Number.isFinite(received) ? `, an infinity as ${encoding},` : "";
  return new PserverError(
    "NON_FINITE",
    `${quoteName(parameter)}: expected finite values; received ${received}${form} as element ${index}. Declare it with allowNonFinite to take them`,
    { parameter, expected: "finite values", received: String(received), index },
  );
}

/**
 * Checks that the elements of a parameter can be encoded; undefined stands for no encoding.
 * @throws BAD_VALUE for an unknown one, UNSUPPORTED for one of another type than float32.
 */
export function checkEncoding(
  { name, dtype }: Pick<Declaration, "name" | "dtype">,
  encoding: Encoding | undefined,
): void {
  if (encoding !== undefined && !isEncoding(encoding)) {
    const expected = Object.keys(ENCODINGS);
    throw new PserverError(
      "BAD_VALUE",
      `encoding: expected ${expected.join(" or ")}; received ${String(encoding)}`,
      { expected, received: String(encoding) },
    );
  }
  named(name, () => encodedBytes(dtype, encoding, 1));
}

/** Runs a check and adds the parameter to its error. */
export function named<T>(parameter: string, check: () => T): T {
  try {
    return check();
  } catch (error) {
    if (!(error instanceof PserverError)) throw error;
    throw new PserverError(
      error.code,
      `${quoteName(parameter)}: ${error.message}`,
      { ...error.details, parameter },
      { cause: error },
    );
  }
}

/** Returns a tensor without elements, which `toTensor` does not accept. */
function toEmpty(given: TensorLike): Tensor {
  if (ArrayBuffer.isView(given)) {
    return { dtype: dtypeOf(given), shape: [given.length], data: given };
  }
  return { dtype: dtypeOf(given?.data), shape: [...(given.shape ?? [])], data: given.data };
}

/** The trainer that sends the records, and its subjects. */
interface Sender {
  readonly subjects: JobSubjects;
  readonly trainer: string;
}

/** Settings of the push of one parameter. */
export interface Push {
  /**
   * L2 norm, as encoded, of all elements that the call sends of the parameter; absent if it is not needed.
   */
  readonly norm?: number;
  readonly encoding?: Encoding;
  /** Returns the operation on the block with this index; called when the message is made. */
  readonly operation: (block: number, namesVersion: boolean) => PushOperation;
  /** Returns whether the operation of a block can name the version that a gradient was made from. */
  readonly namesVersion?: (block: number) => boolean;
}

/** What all messages of one tensor share. */
interface Source {
  readonly sender: Sender;
  readonly info: ParameterInfo;
  readonly verb: TrainerRecord["verb"];
  readonly encoding?: Encoding | undefined;
  readonly toRecord: (header: RecordHeader, load: Load, namesVersion: boolean) => TrainerRecord;
  readonly namesVersion?: Push["namesVersion"];
}

/** Elements that go to one block in one message. */
interface Load {
  readonly place: BlockPlace;
  readonly index?: PartIndex | undefined;
  readonly elements: number;
  /** Returns the elements when the message is made: waiting updates hold no copy. */
  readonly values: () => TensorData;
}

/** Makes updates that initialize every block of a parameter. */
export function initUpdates(sender: Sender, info: ParameterInfo, tensor: Tensor): UpdateSource[] {
  const { epoch, dtype, shape, config } = info;
  const toRecord = (header: RecordHeader, { place }: Load): TrainerRecord => {
    const { start, count } = place;
    return { verb: "init", ...header, epoch, dtype, shape, start, count, config };
  };
  return wholeBlocks({ sender, info, verb: "init", toRecord }, tensor.data);
}

/** Makes updates that overwrite every block of a parameter. */
export function setUpdates(sender: Sender, info: ParameterInfo, tensor: Tensor): UpdateSource[] {
  const { epoch, dtype } = info;
  const toRecord = (header: RecordHeader): TrainerRecord => ({
    verb: "set",
    ...header,
    epoch,
    dtype,
  });
  return wholeBlocks({ sender, info, verb: "set", toRecord }, tensor.data);
}

/** Makes updates that change every block of a parameter. */
export function pushUpdates(
  sender: Sender,
  info: ParameterInfo,
  data: TensorData,
  push: Push,
): UpdateSource[] {
  return wholeBlocks(pushSource(sender, info, push), data);
}

/** Makes updates that change parts of blocks with the elements that `data` has for them. */
export function partUpdates(
  sender: Sender,
  info: ParameterInfo,
  slices: readonly PartSlice[],
  data: TensorData,
  push: Push,
): UpdateSource[] {
  const source = pushSource(sender, info, push);
  return slices.map((slice) => {
    const { index, elements, part } = slice;
    const values = (): TensorData => gatherPart(slice, data);
    return new TensorUpdate(source, { place: part.place, index, elements, values });
  });
}

function pushSource(sender: Sender, info: ParameterInfo, push: Push): Source {
  const { epoch, dtype } = info;
  const { norm, encoding, operation, namesVersion } = push;
  // Written field by field: spreading the header would take as long as everything else here.
  const toRecord = (
    header: RecordHeader,
    { place, index }: Load,
    isNamed: boolean,
  ): TrainerRecord => ({
    verb: "push",
    session: header.session,
    n: header.n,
    done: header.done,
    reply: header.reply,
    epoch,
    dtype,
    norm,
    encoding,
    operation: operation(place.index, isNamed),
    part: index && partCounts(index),
  });
  return { sender, info, verb: "push", encoding, toRecord, ...(namesVersion && { namesVersion }) };
}

function wholeBlocks(source: Source, data: TensorData): UpdateSource[] {
  return blockPlaces(source.info.layout).map((place) => {
    const { start, count } = place;
    const values = (): TensorData => data.subarray(start, start + count);
    return new TensorUpdate(source, { place, elements: count, values });
  });
}

/** Most bytes of a group in the header of a batch, besides the parameter's name. */
const GROUP_BYTES_MAX = 160;

class TensorUpdate implements UpdateSource, EntrySource {
  readonly shard: number;
  readonly parameter: string;
  readonly index: number;
  readonly blocks = 1;
  readonly dataBytes: number;
  readonly entryBytes: number;
  readonly #source: Source;
  readonly #load: Load;

  constructor(source: Source, load: Load) {
    const { info, encoding } = source;
    const { place, index, elements } = load;
    this.#source = source;
    this.#load = load;
    this.shard = place.shard;
    this.parameter = info.name;
    this.index = place.index;
    const elementBytes = encodedBytes(info.dtype, encoding, elements);
    const counts = index && partCounts(index);
    this.dataBytes = elementBytes + (counts ? partIndexBytes(counts) : 0);
    this.entryBytes = elementBytes + (counts ? packedIndexBytes(counts, this.#rows()) : 0);
  }

  get subject(): string {
    const { sender, verb } = this.#source;
    return sender.subjects.log(this.shard, sender.trainer, verb, this.parameter, this.index);
  }

  get topic(): Topic {
    return { kind: "blocks", blocks: [this] };
  }

  get entry(): EntrySource {
    return this;
  }

  get isFloat(): boolean {
    return DTYPES[this.#source.info.dtype].float;
  }

  get groupBytesMax(): number {
    const { verb, info } = this.#source;
    const { shape, config } = info;
    const declared = verb === "init" ? packValue({ shape, config }).length : 0;
    // A character takes up to three bytes.
    return GROUP_BYTES_MAX + declared + 3 * this.parameter.length;
  }

  /** Read when the update is sent, because the answer depends on its step, which is not known before. */
  get namesVersion(): boolean {
    return this.#source.namesVersion?.(this.index) ?? false;
  }

  record(header: RecordHeader, namesVersion: boolean): TrainerRecord {
    return this.#source.toRecord(header, this.#load, namesVersion);
  }

  draft(header: RecordHeader, namesVersion: boolean, allocate?: Allocate): Uint8Array {
    const { index } = this.#load;
    const draft = draftRecord(this.record(header, namesVersion), this.dataBytes, allocate);
    const indexBytes = index === undefined ? 0 : writePartIndex(draft.data, index);
    this.#writeElements(draft.data.subarray(indexBytes));
    return sealMessage(draft);
  }

  writeEntry(target: Uint8Array): void {
    const { index } = this.#load;
    const indexBytes = index === undefined ? 0 : writePackedIndex(target, index, this.#rows());
    this.#writeElements(target.subarray(indexBytes));
  }

  #writeElements(target: Uint8Array): void {
    const { encoding } = this.#source;
    const values = this.#load.values();
    if (encoding === undefined) target.set(bytesOf(values));
    else if (values instanceof Float32Array) encodeElements(encoding, values, target);
  }

  /** Returns how its block is divided into rows. */
  #rows(): BlockRows {
    const { start, count } = this.#load.place;
    return blockRows({ shape: this.#source.info.shape, start, count });
  }
}

/** Rows of a gradient, each once, ascending. */
interface RowSums {
  readonly rows: Numbers;
  /** A row of elements for each of `rows`. */
  readonly values: TensorData;
}

/**
 * Sorts rows, and adds up those that are named repeatedly, in the order given and in the element type
 * (integers wrap around). The data is not copied if there is nothing to do.
 * @param rows normalized; `values` has `rowElements` elements for each.
 */
export function sumRows(rows: Numbers, values: TensorData, rowElements: number): RowSums {
  if (isAscending(rows)) return { rows, values };
  const sums = distinct(rows);
  const placed = { values, rowElements, places: sums.places, sums: sums.values.length };
  return { rows: sums.values, values: sumByPlace(placed) };
}

/**
 * A gradient of some rows (of axis 0) of a parameter that is configured `sparse`. Negative numbers
 * count from the end. Of a row that is named repeatedly the values are added up, in order.
 */
export interface RowGradient {
  readonly rows: IndexList;
  /** A row of elements for each number in `rows`: a tensor of shape [rows, …], or a bare array. */
  readonly values: TensorLike;
}

/** A gradient of a whole parameter, or of some of its rows. */
export type Gradient = TensorLike | RowGradient;

/** Gradients by parameter name. */
export type GradientRecord = Readonly<Record<string, Gradient>> | ReadonlyMap<string, Gradient>;

/** Dependencies and settings of gradient updates. */
export interface GradientMode {
  readonly subjects: JobSubjects;
  readonly trainer: string;
  readonly learningRate: number | undefined;
  readonly encoding: Encoding | undefined;
  readonly seen: SeenVersions;
  /** The step they belong to, read when a message is made. */
  readonly step: () => number | undefined;
}

/**
 * Makes the updates of one gradient of a parameter; none if no row is named.
 * @throws UNSUPPORTED, NO_LEARNING_RATE, BAD_DTYPE, BAD_SHAPE, BAD_INDEX or NON_FINITE for what does
 * not fit.
 */
export function gradientUpdates(
  info: ParameterInfo,
  given: Gradient,
  mode: GradientMode,
): UpdateSource[] {
  const { name, dtype, config } = info;
  checkTakesGradients(dtype, config, name);
  const hasRate = mode.learningRate !== undefined || config.learningRate !== undefined;
  if (!hasRate && config.optimizer.name !== "none") throw noRate(name);
  if (isRowGradient(given)) return rowUpdates(info, given, mode);
  const tensor = fitTensor(info, given);
  const norm = checkedNorm(info, tensor.data, mode.encoding);
  return pushUpdates(mode, info, tensor.data, toPush(info, norm, mode));
}

function rowUpdates(info: ParameterInfo, given: RowGradient, mode: GradientMode): UpdateSource[] {
  const { name, shape, config, layout } = info;
  if (!config.sparse) throw notSparse(name);
  const [size, ...rowShape] = shape;
  if (size === undefined) throw noRows(name);
  const named = normalizeList(name, size, given.rows, 0);
  const rowElements = layout.elements / size;
  const elements = named.length * rowElements;
  const data = fitData(info, given.values, [named.length, ...rowShape], elements);
  if (elements === 0) return [];
  const { rows, values } = sumRows(named, data, rowElements);
  const norm = checkedNorm(info, values, mode.encoding);
  // The layout of a sparse parameter leaves room for the row numbers of a whole block.
  const slices = planRows(info, rows).flatMap((part) =>
    slicePart(part, 0, Number.POSITIVE_INFINITY),
  );
  return partUpdates(mode, info, slices, values, toPush(info, norm, mode));
}

function toPush(info: ParameterInfo, norm: number | undefined, mode: GradientMode): Push {
  const { learningRate: lr, encoding, step: currentStep } = mode;
  const seenBefore = versionsSeen(info, mode.seen);
  return {
    ...(norm === undefined ? {} : { norm }),
    ...(encoding === undefined ? {} : { encoding }),
    // All gradients of one step are made from the same version, so they name none.
    namesVersion: (block) => currentStep() === undefined && seenBefore.has(block),
    operation: (block, namesVersion): PushOperation => {
      const step = currentStep();
      const version = namesVersion ? seenBefore.get(block) : undefined;
      return {
        op: "grad",
        ...(lr === undefined ? {} : { lr }),
        ...(step === undefined ? (version === undefined ? {} : { seen: version }) : { step }),
      };
    },
  };
}

/** Returns the versions of a parameter's blocks that were read last. */
function versionsSeen(info: ParameterInfo, seen: SeenVersions): Map<number, number> {
  const versions = new Map<number, number>();
  for (let block = 0; block < info.layout.blocks; block++) {
    const version = seen.get(info, block);
    if (version !== undefined) versions.set(block, version);
  }
  return versions;
}

function isRowGradient(given: Gradient): given is RowGradient {
  return (
    !ArrayBuffer.isView(given) && typeof given === "object" && given !== null && "rows" in given
  );
}

function noRate(parameter: string): PserverError {
  return new PserverError(
    "NO_LEARNING_RATE",
    `${quoteName(parameter)}: expected a learningRate in its config or in the call; received neither`,
    { parameter },
  );
}

function noRows(parameter: string): PserverError {
  const expected = "a parameter with rows";
  return new PserverError(
    "BAD_INDEX",
    `${quoteName(parameter)}: rows: expected ${expected}; received a scalar`,
    { parameter, expected, received: "a scalar" },
  );
}

function notSparse(parameter: string): PserverError {
  return new PserverError(
    "UNSUPPORTED",
    `${quoteName(parameter)}: gradients of some rows are for parameters with sparse: true in their config`,
    { parameter, expected: "sparse: true", received: "sparse: false" },
  );
}

/** Tensors by parameter name. */
export type TensorRecord = Readonly<Record<string, TensorLike>> | ReadonlyMap<string, TensorLike>;

/** Names of parameters, each with what the call was given for it. */
export type Entries<Given> = readonly (readonly [name: string, given: Given])[];

/** Lists what a call was given for each name. @throws EMPTY if it was given nothing. */
export function entriesOf<Given>(
  given: Readonly<Record<string, Given>> | ReadonlyMap<string, Given>,
  what: string,
): Entries<Given> {
  const entries = given instanceof Map ? [...given] : Object.entries(given);
  if (entries.length > 0) return entries;
  throw new PserverError("EMPTY", `${what}: expected at least one tensor; received none`);
}
