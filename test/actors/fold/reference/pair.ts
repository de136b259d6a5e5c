import { type ParameterSettings, toConfig } from "../../../../src/protocol/config/index.ts";
import { ReferenceBlock } from "./block.ts";
import { type FloatData, KernelBlock } from "./kernel-block.ts";

/** The float types that optimizers work on. */
export const FLOAT_DTYPES = ["float32", "float64"] as const;

/** A block of the kernels and one of the reference, given the same values. */
export interface BlockPair {
  readonly kernels: KernelBlock;
  readonly reference: ReferenceBlock;
}

/** Two blocks; the reference may have settings of its own. */
export function pairOf(
  settings: ParameterSettings,
  values: FloatData,
  referenceSettings: ParameterSettings = settings,
): BlockPair {
  const dtype = values instanceof Float32Array ? "float32" : "float64";
  return {
    kernels: new KernelBlock(toConfig(settings), values),
    reference: new ReferenceBlock(toConfig(referenceSettings), dtype, values),
  };
}

/** Elements of a type from numbers, which are rounded to it. */
export function elementsOf(dtype: "float32" | "float64", numbers: Iterable<number>): FloatData {
  return dtype === "float32" ? Float32Array.from(numbers) : Float64Array.from(numbers);
}

/** L2 norm, as a gradient's record carries it. */
export function normOf(elements: ArrayLike<number>): number {
  return Math.hypot(...Array.from(elements));
}

/**
 * How far the two are apart at most, over all values and slots, in the bounds of the reference: at
 * most 1 if the kernels are right.
 */
export function distance({ kernels, reference }: BlockPair): number {
  let worst = 0;
  for (let column = 0; column < kernels.columns; column++) {
    const computed = kernels.column(column);
    for (const [i, { value, error }] of reference.column(column).entries()) {
      const apart = Math.abs((computed[i] as number) - value);
      if (Number.isNaN(apart)) return Number.POSITIVE_INFINITY;
      if (apart > 0) worst = Math.max(worst, apart / error);
    }
  }
  return worst;
}

/** Lets the reference go on from the values and slots of the kernels. */
export function adoptKernels({ kernels, reference }: BlockPair): void {
  reference.adopt(Array.from({ length: kernels.columns }, (_, i) => kernels.column(i)));
}
