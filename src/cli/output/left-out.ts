import { dataBytes, type OpenModel, type TensorSource } from "../../model-files/index.ts";
import { mismatch } from "../../protocol/errors.ts";
import { quoteName } from "../../protocol/names.ts";
import { formatCount } from "./amounts.ts";
import type { Output } from "./output.ts";

/** A tensor of a file that no parameter can hold, and what of it no parameter has. */
interface LeftOut {
  readonly name: string;
  readonly code: "BAD_DTYPE" | "BAD_SHAPE";
  readonly property: string;
}

/** What of a file can be loaded. */
export interface Loadable {
  readonly tensors: readonly TensorSource[];
  /** Names of the others. */
  readonly leftOut: readonly string[];
}

/**
 * Returns the tensors of a file that parameters can hold, and tells of each other one: of an element type that
 * no parameter has, or without elements.
 * @throws BAD_DTYPE, BAD_SHAPE naming the first of the others unless they may be skipped, and if nothing remains.
 */
export function loadableOf(output: Output, model: OpenModel, canSkip: boolean): Loadable {
  const tensors = model.tensors.filter(({ header }) => dataBytes(header) > 0);
  const empty = model.tensors.filter(({ header }) => dataBytes(header) === 0);
  const leftOut = [
    ...ofUnheldTypes(model),
    ...empty.map(({ header: { name, shape } }): LeftOut => {
      return { name, code: "BAD_SHAPE", property: `the shape [${shape}]` };
    }),
  ];
  const [first] = leftOut;
  if (first !== undefined && (!canSkip || tensors.length === 0)) {
    const { name, code, property } = first;
    const more = leftOut.length > 1 ? `, and ${leftOut.length - 1} more such tensors` : "";
    const hint = tensors.length > 0 ? " (--skip-unsupported leaves them out)" : "";
    const expected = "what a parameter can have";
    throw mismatch(code, quoteName(name), expected, property + more + hint, { parameter: name });
  }
  tell(output, leftOut, tensors);
  return { tensors, leftOut: leftOut.map(({ name }) => name) };
}

/** Tells which tensors of a file are not compared, and which are compared as another element type. */
export function tellConversions(output: Output, model: OpenModel): void {
  tell(output, ofUnheldTypes(model), model.tensors);
}

function ofUnheldTypes({ skipped }: OpenModel): LeftOut[] {
  return skipped.map(({ name, type }) => {
    return { name, code: "BAD_DTYPE", property: `the type ${quoteName(type)}` };
  });
}

function tell(output: Output, leftOut: readonly LeftOut[], tensors: readonly TensorSource[]): void {
  for (const { name, property } of leftOut) {
    output.warning(`${quoteName(name)} is left out: no parameter has ${property}`);
  }
  const counts = new Map<string, number>();
  for (const { conversion } of tensors) {
    if (conversion !== undefined) counts.set(conversion, (counts.get(conversion) ?? 0) + 1);
  }
  for (const [conversion, count] of counts) {
    output.message(`${formatCount(count, "tensor")} of ${conversion}; each value stays the same`);
  }
}
