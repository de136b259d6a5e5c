import type { ParameterConfig } from "../../protocol/config/index.ts";
import type { Dtype } from "../../protocol/dtypes.ts";
import type { Kernels } from "../kernel/kernels.ts";

const SCALE = { float32: "scaleF32", float64: "scaleF64" } as const;
const CLIP = { float32: "clipF32", float64: "clipF64" } as const;
const ADD = {
  int32: "addI32",
  uint32: "addI32",
  int64: "addI64",
  uint64: "addI64",
  float32: "addF32",
  float64: "addF64",
} as const satisfies Record<Dtype, keyof Kernels>;

/**
 * Factor of a gradient before its elements are clipped: `gradientScale`, reduced so that the norm is at
 * most `clipNorm`. `norm` is the L2 norm of the trainer's whole gradient before scaling, known where
 * there is a `clipNorm`. It is 0 for an infinite norm; a NaN is not clipped.
 */
export function gradientScale(config: ParameterConfig, norm: number | undefined): number {
  const { clipNorm, gradientScale: scale } = config;
  if (clipNorm === undefined || norm === undefined) return scale;
  const scaled = norm * Math.abs(scale);
  return scaled > clipNorm ? scale * (clipNorm / scaled) : scale;
}

/** Multiplies the `n` elements of a gradient by `scale`, then clips them to ±`clipValue`, in place. */
export function shapeGradient(
  kernels: Kernels,
  dtype: "float32" | "float64",
  gradient: number,
  n: number,
  scale: number,
  clipValue: number | undefined,
): void {
  if (scale !== 1) kernels[SCALE[dtype]](gradient, n, scale);
  if (clipValue !== undefined) kernels[CLIP[dtype]](gradient, n, clipValue);
}

/** `accumulator += gradient` over `n` elements; integers wrap around. */
export function accumulate(
  kernels: Kernels,
  dtype: Dtype,
  accumulator: number,
  gradient: number,
  n: number,
): void {
  kernels[ADD[dtype]](accumulator, gradient, n);
}
