import {
  type MergedTensor,
  mergeSparse,
  shardsByName,
  type TensorHeader,
  type TensorSource,
} from "../../model-files/index.ts";
import type { ErrorCode, PserverError } from "../../protocol/errors.ts";
import type { ParameterInfo } from "../../protocol/lifecycle-messages.ts";
import { mismatch } from "../../protocol/mismatch.ts";
import { quoteName } from "../../protocol/names.ts";
import { elementCount, sameShape, type Tensor } from "../../protocol/tensor.ts";

/** The parameters that each tensor of a file goes into, in the order of its rows, by the tensor's name. */
export type OverwritePlan = ReadonlyMap<string, readonly ParameterInfo[]>;

/**
 * Finds the parameters of an initialized job that each tensor of a file overwrites: the one of its name,
 * or the sparse shards `<name>:sparse-0` … that a save joins into such a tensor.
 * @throws UNKNOWN_PARAMETER, BAD_DTYPE, BAD_SHAPE or STATIC for a tensor that does not fit; MISSING_SHARD
 * if the job lacks one of the shards; BAD_NAME if two tensors go into one parameter.
 */
export function planOverwrite(
  tensors: readonly TensorSource[],
  existing: readonly ParameterInfo[],
): OverwritePlan {
  const byName = new Map(existing.map((info) => [info.name, info]));
  const shards = shardsByName(existing);
  const taken = new Set<string>();
  const plan = new Map<string, readonly ParameterInfo[]>();
  for (const { header } of tensors) {
    const { name } = header;
    const own = byName.get(name);
    const joined = own ? { header: own, parts: [own] } : join(name, shards.get(name));
    checkFit(header, joined);
    for (const { name: target } of joined.parts) {
      if (taken.has(target)) throw refusal("BAD_NAME", target, "values once", "values twice");
      taken.add(target);
    }
    plan.set(name, joined.parts);
  }
  return plan;
}

/** Splits a tensor into those of its target parameters, with their names. They are views, not copies. */
export function splitTensor(
  { dtype, data }: Tensor,
  targets: readonly ParameterInfo[],
): [name: string, piece: Tensor][] {
  const pieces: [string, Tensor][] = [];
  let start = 0;
  for (const { name, shape } of targets) {
    const end = start + elementCount(shape);
    pieces.push([name, { dtype, shape, data: data.subarray(start, end) }]);
    start = end;
  }
  return pieces;
}

function join(name: string, shards: readonly ParameterInfo[] = []): MergedTensor<ParameterInfo> {
  const joined = shards.length === 0 ? undefined : mergeSparse(shards)[0];
  if (joined !== undefined) return joined;
  const expected = "parameters of the initialized job only";
  throw refusal("UNKNOWN_PARAMETER", name, expected, "another one");
}

function checkFit(
  { name, dtype, shape }: TensorHeader,
  { header: expected, parts }: MergedTensor<ParameterInfo>,
): void {
  if (expected.dtype !== dtype) throw refusal("BAD_DTYPE", name, expected.dtype, dtype);
  if (!sameShape(expected.shape, shape)) {
    throw refusal("BAD_SHAPE", name, `[${expected.shape}]`, `[${shape}]`);
  }
  const fixed = parts.find(({ config }) => config.static);
  if (fixed !== undefined) {
    throw refusal("STATIC", fixed.name, "parameters that are not static", "a static one");
  }
}

function refusal(
  code: ErrorCode,
  parameter: string,
  expected: string,
  received: string,
): PserverError {
  return mismatch(code, quoteName(parameter), expected, received, { parameter });
}
