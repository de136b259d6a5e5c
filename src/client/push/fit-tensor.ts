import {
  dtypeOf,
  ENCODINGS,
  type Encoding,
  encodedBytes,
  infiniteFrom,
  isEncoding,
  type TensorData,
} from "../../protocol/dtypes.ts";
import { normAsEncoded, staysFinite } from "../../protocol/encoding/encoding.ts";

import { PserverError } from "../../protocol/errors.ts";
import type { Declaration, ParameterInfo } from "../../protocol/messages/lifecycle-messages.ts";
import { quoteName } from "../../protocol/names.ts";
import {
  l2Norm,
  sameShape,
  type Tensor,
  type TensorLike,
  toTensor,
} from "../../protocol/tensor.ts";

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
  // A norm is finite exactly if all elements are: the one pass tells both.
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

/** A tensor without elements, which `toTensor` rejects. */
function toEmpty(given: TensorLike): Tensor {
  if (ArrayBuffer.isView(given)) {
    return { dtype: dtypeOf(given), shape: [given.length], data: given };
  }
  return { dtype: dtypeOf(given?.data), shape: [...(given.shape ?? [])], data: given.data };
}
