import { DTYPES } from "../../protocol/dtypes.ts";
import type { ShardMemory } from "../memory/shard-memory.ts";
import { gradientScale, shapeGradient } from "../optimizer/gradient.ts";
import { type FloatDtype, UPDATE_CHUNK_BYTES } from "../optimizer/update-rule.ts";
import type { GradientChange } from "./check-record.ts";
import { ElementRanges } from "./element-ranges.ts";
import { eachChunk } from "./payload.ts";
import { countUpdate } from "./row-counts.ts";
import { RuleRun } from "./rule-run.ts";
import { add, isFloat } from "./tensor-arithmetic.ts";

/**
 * Applies one gradient to its block at once: floats are scaled, clipped and given to the optimizer's
 * rule, integers are added with wrap-around. Rows outside the part keep values, slots and counts.
 */
export function applyGradient(memory: ShardMemory, change: GradientChange): void {
  const { block, payload, part, operation, behind } = change;
  const { dtype } = block;
  const ranges = ElementRanges.of(block.rows, part);
  if (isFloat(dtype)) {
    const rate = { learningRate: operation.lr, divisor: behind };
    const run = new RuleRun(memory, block, dtype, rate);
    eachShaped(memory, change, dtype, ranges, (gradient) =>
      run.run(ranges.start, ranges.count, gradient),
    );
  } else {
    add(memory, block.pointer, ranges, payload);
  }
  countUpdate(block, part?.rows);
  block.updates += 1;
}

/**
 * Scales and clips a gradient in the scratch and calls `visit` for each range with the address of its
 * elements; `ranges` is positioned at that range then.
 */
export function eachShaped(
  memory: ShardMemory,
  { block, payload, norm }: GradientChange,
  dtype: FloatDtype,
  ranges: ElementRanges,
  visit: (gradient: number) => void,
): void {
  const scale = gradientScale(block.config, norm);
  const { clipValue } = block.config;
  const shape = (n: number): void => {
    shapeGradient(memory.kernels, dtype, memory.scratch, n, scale, clipValue);
    for (let done = 0; done < n && ranges.next(n - done); done += ranges.count) {
      visit(memory.scratch + done * DTYPES[dtype].bytes);
    }
  };
  eachChunk(memory, payload, shape, UPDATE_CHUNK_BYTES);
}
