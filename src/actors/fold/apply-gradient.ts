import { DTYPES } from "../../protocol/dtypes.ts";
import type { ShardMemory } from "../memory/shard-memory.ts";
import { gradientScale, shapeGradient } from "../optimizer/gradient.ts";
import type { FloatDtype } from "../optimizer/update-rule.ts";
import type { GradientChange } from "./change.ts";
import { type ColumnTarget, eachColumn } from "./column-walk.ts";
import { countUpdate } from "./row-counts.ts";
import type { ColumnVisit } from "./row-pieces.ts";
import { RuleRun } from "./rule-run.ts";
import { add, isFloat } from "./tensor-arithmetic.ts";

/**
 * Applies one gradient to its block at once: floats are scaled, clipped and given to the optimizer's
 * rule, integers are added with wrap-around. Rows outside the part keep values, slots and counts.
 */
export function applyGradient(memory: ShardMemory, change: GradientChange): void {
  const { block, payload, part, operation, behind } = change;
  const { dtype, rows, pointer } = block;
  if (isFloat(dtype)) {
    const rate = { learningRate: operation.lr, divisor: behind };
    const run = new RuleRun(memory, block, dtype, rate);
    eachShaped(memory, change, dtype, run.target(part), run.update);
  } else {
    const elementBytes = DTYPES[dtype].bytes;
    add(memory, { rows, part, elementBytes, columns: [pointer] }, payload);
  }
  countUpdate(memory, block, part?.rows);
  block.updates += 1;
}

/**
 * Scales and clips a gradient in the scratch and calls `visit` for its elements and those of the target,
 * as {@link eachColumn} does.
 */
export function eachShaped(
  memory: ShardMemory,
  { block, payload, norm }: GradientChange,
  dtype: FloatDtype,
  target: ColumnTarget,
  visit: ColumnVisit,
): void {
  const scale = gradientScale(block.config, norm);
  const { clipValue } = block.config;
  eachColumn(memory, target, payload, visit, (n) =>
    shapeGradient(memory.kernels, dtype, memory.scratch, n, scale, clipValue),
  );
}
