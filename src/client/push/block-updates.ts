import { checkTakesGradients } from "../../protocol/config/index.ts";
import {
  type Dtype,
  dtypeOf,
  ENCODINGS,
  type Encoding,
  encodedBytes,
  infiniteFrom,
  isEncoding,
  isGrouped,
  isHalf,
  type TensorData,
} from "../../protocol/dtypes.ts";
import { normAsEncoded, staysFinite } from "../../protocol/encoding/encoding.ts";
import { squaresAsGroups } from "../../protocol/encoding/grouped.ts";
import { firstNonFinite, toNumbers } from "../../protocol/encoding/half-floats.ts";
import { PserverError } from "../../protocol/errors.ts";
import { blockPlaces } from "../../protocol/layout.ts";
import type { Declaration, ParameterInfo } from "../../protocol/messages/lifecycle-messages.ts";
import { quoteName } from "../../protocol/names.ts";
import {
  distinct,
  isAscending,
  type Numbers,
  sumByPlace,
} from "../../protocol/row-lists/row-lists.ts";
import {
  l2Norm,
  namedDtype,
  sameShape,
  type Tensor,
  type TensorLike,
  toTensor,
} from "../../protocol/tensor.ts";
import type { SeenVersions } from "../calls/parameters.ts";
import { type IndexList, normalizeList, planRows, slicePart } from "../part-plan.ts";
import {
  gatherErrors,
  type RoundingErrors,
  slicePlace,
  type UpdatePlace,
} from "./rounding-errors.ts";
import type { UpdateCollector } from "./update-collector.ts";

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
 * Checks that elements, with the `errors` that are added to them, are finite, also when encoded, unless the parameter
 * allows others.
 * @throws NON_FINITE naming the first that is not; what {@link checkEncoding} throws.
 */
export function checkFiniteElements(
  parameter: Pick<Declaration, "name" | "dtype" | "config">,
  data: TensorData,
  encoding?: Encoding,
  errors?: Float32Array,
): void {
  checkEncoding(parameter, encoding);
  if (parameter.config.allowNonFinite || allFinite(parameter.dtype, data, encoding, errors)) return;
  throw nonFinite(parameter, data, encoding, errors);
}

/**
 * Checks a gradient, whose updates are of these places, as {@link checkFiniteElements} does, with the `errors` that are
 * added to it; returns its L2 norm, as encoded, if the parameter clips by it: every block update carries the norm of
 * the whole gradient.
 * @throws as {@link checkFiniteElements}.
 */
export function checkedNorm(
  info: ParameterInfo,
  data: TensorData,
  places: () => readonly UpdatePlace[],
  { encoding, errors }: Pick<GradientMode, "encoding" | "errors">,
): number | undefined {
  checkEncoding(info, encoding);
  const own = data instanceof Float32Array ? errorsOf(info, data, places, errors) : undefined;
  if (info.config.clipNorm === undefined) {
    checkFiniteElements(info, data, encoding, own);
    return undefined;
  }
  let norm: number;
  if (encoding === undefined || !(data instanceof Float32Array)) {
    norm = l2Norm(toNumbers(info.dtype, data));
  } else if (isGrouped(encoding)) {
    const counts = places().map(({ elements }) => elements);
    norm = Math.sqrt(squaresAsGroups(encoding, counts, data, own));
  } else {
    norm = normAsEncoded(encoding, data);
  }
  // A norm is finite exactly if all elements are, so one pass finds both.
  if (!Number.isFinite(norm)) checkFiniteElements(info, data, encoding, own);
  return norm;
}

/** Returns the errors that will be added to a gradient; undefined if there are none. */
function errorsOf(
  info: ParameterInfo,
  data: Float32Array,
  places: () => readonly UpdatePlace[],
  errors: RoundingErrors | undefined,
): Float32Array | undefined {
  const all = errors?.find(info);
  if (all === undefined || all.length === data.length) return all;
  const own = new Float32Array(data.length);
  const each = places();
  gatherErrors(
    each,
    each.map(() => all),
    own,
  );
  return own;
}

function allFinite(
  dtype: Dtype,
  data: TensorData,
  encoding: Encoding | undefined,
  errors: Float32Array | undefined,
): boolean {
  if (isHalf(dtype)) return firstNonFinite(dtype, data as Uint16Array) < 0;
  if (data instanceof Float32Array) return staysFinite(data, encoding, errors);
  if (!(data instanceof Float64Array)) return true;
  for (let i = 0; i < data.length; i++) if (!Number.isFinite(data[i])) return false;
  return true;
}

function nonFinite(
  { name: parameter, dtype }: Pick<Declaration, "name" | "dtype">,
  data: TensorData,
  encoding: Encoding | undefined,
  errors: Float32Array | undefined,
): PserverError {
  const bound = infiniteFrom(encoding);
  const numbers = toNumbers(dtype, data);
  const sum = (value: number | bigint, i: number): number =>
    errors === undefined ? Number(value) : Math.fround(Number(value) + (errors[i] as number));
  const index = numbers.findIndex(
    (value: number | bigint, i: number) => !(Math.abs(sum(value, i)) < bound),
  );
  const received = sum(numbers[index] as number, index);
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
  return { dtype: namedDtype(given), shape: [...(given.shape ?? [])], data: given.data };
}

/** Adds an update of every block of a parameter. `seen`: the versions that a gradient was made from. */
export function addTensor(
  collector: UpdateCollector,
  info: ParameterInfo,
  data: TensorData,
  norm?: number,
  seen?: SeenVersions,
): void {
  for (let block = 0; block < info.layout.blocks; block++) {
    collector.addBlock(info, block, data, norm, seen?.get(info.firstNumber + block));
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
 * (integers wrap around, half floats are rounded once). The data is not copied if there is nothing to do.
 * @param rows normalized; `values` has `rowElements` elements for each.
 */
export function sumRows(
  dtype: Dtype,
  rows: Numbers,
  values: TensorData,
  rowElements: number,
): RowSums {
  if (isAscending(rows)) return { rows, values };
  const sums = distinct(rows);
  const placed = { dtype, values, rowElements, places: sums.places, sums: sums.values.length };
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

/** Settings of the gradients of a call. */
export interface GradientMode {
  readonly learningRate: number | undefined;
  readonly encoding: Encoding | undefined;
  /** What rounding has left out before, and is added now; undefined if nothing is. */
  readonly errors?: RoundingErrors | undefined;
  readonly seen: SeenVersions;
}

/**
 * Adds the updates of one gradient of a parameter; none if no row is named.
 * @throws UNSUPPORTED, NO_LEARNING_RATE, BAD_DTYPE, BAD_SHAPE, BAD_INDEX or NON_FINITE for what does
 * not fit.
 */
export function addGradient(
  collector: UpdateCollector,
  info: ParameterInfo,
  given: Gradient,
  mode: GradientMode,
): void {
  const { name, dtype, config } = info;
  checkTakesGradients(dtype, config, name);
  const hasRate = mode.learningRate !== undefined || config.learningRate !== undefined;
  if (!hasRate && config.optimizer.name !== "none") throw noRate(name);
  if (isRowGradient(given)) {
    addRows(collector, info, given, mode);
    return;
  }
  const { layout, shape } = info;
  const data = fitData(info, given, shape, layout.elements);
  const norm = checkedNorm(info, data, () => blocksOf(info), mode);
  addTensor(collector, info, data, norm, mode.seen);
}

function blocksOf(info: ParameterInfo): UpdatePlace[] {
  return blockPlaces(info.layout).map(({ start, count }) => {
    return { info, start, count, rows: undefined, elements: count };
  });
}

function addRows(
  collector: UpdateCollector,
  info: ParameterInfo,
  given: RowGradient,
  mode: GradientMode,
): void {
  const { name, dtype, shape, config, layout } = info;
  if (!config.sparse) throw notSparse(name);
  const [size, ...rowShape] = shape;
  if (size === undefined) throw noRows(name);
  const named = normalizeList(name, size, given.rows, 0);
  const rowElements = layout.elements / size;
  const elements = named.length * rowElements;
  const data = fitData(info, given.values, [named.length, ...rowShape], elements);
  if (elements === 0) return;
  const { rows, values } = sumRows(dtype, named, data, rowElements);
  // The layout of a sparse parameter leaves room for the row numbers of a whole block.
  const slices = planRows(info, rows).flatMap((part) =>
    slicePart(part, 0, Number.POSITIVE_INFINITY),
  );
  const norm = checkedNorm(
    info,
    values,
    () => slices.map((slice) => slicePlace(info, slice)),
    mode,
  );
  for (const slice of slices) {
    const seen = mode.seen.get(info.firstNumber + slice.part.place.index);
    collector.addSlice(info, slice, values, norm, seen);
  }
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

/** Names of parameters, and what a call was given for each of them. */
export interface Entries<Given> {
  readonly names: readonly string[];
  readonly values: readonly Given[];
}

/** Lists what a call was given for each name. @throws EMPTY if it was given nothing. */
export function entriesOf<Given>(
  given: Readonly<Record<string, Given>> | ReadonlyMap<string, Given>,
  what: string,
): Entries<Given> {
  const isMap = given instanceof Map;
  const names: string[] = isMap ? [...given.keys()] : Object.keys(given);
  const values: Given[] = isMap ? [...given.values()] : Object.values(given);
  if (names.length > 0) return { names, values };
  throw new PserverError("EMPTY", `${what}: expected at least one tensor; received none`);
}
