import {
  OPTIMIZERS,
  type Optimizer,
  type ParameterConfig,
  type ParameterSettings,
  toConfig,
} from "../../../src/protocol/config/index.ts";
import type { FloatData } from "./reference/kernel-block.ts";

/** A configuration of an optimizer that uses all it can: schedule, penalties, scale, both clips. */
export function fullConfig(
  optimizer: Optimizer["name"],
  settings: ParameterSettings = {},
): ParameterConfig {
  const shaping = { gradientScale: 0.75, clipNorm: 40, clipValue: 1.5 };
  if (optimizer === "none") return toConfig({ optimizer, ...shaping, ...settings });
  const learningRate = {
    schedule: "polynomial",
    rate: 0.3,
    a: 0.5,
    b: 0.75,
    warmup: { steps: 3, from: 0.25 },
  } as const;
  const penalties = { l1: 0.01, l2: 0.02 };
  return toConfig({ optimizer, learningRate, ...penalties, ...shaping, ...settings });
}

/** Elements of both signs, most of them different, from -2 to 2. */
export function floats(dtype: "float32" | "float64", length: number, seed: number): FloatData {
  const at = (_: unknown, i: number): number =>
    (((i + 3) * 7919 + seed * 104_729) % 1_009) / 250 - 2;
  const source = { length };
  return dtype === "float32" ? Float32Array.from(source, at) : Float64Array.from(source, at);
}

export { OPTIMIZERS };
