import { DTYPES } from "../../protocol/dtypes.ts";
import { PserverError } from "../../protocol/errors.ts";
import type { ShardMemory } from "../memory/shard-memory.ts";
import { accumulate } from "../optimizer/gradient.ts";
import { type FloatDtype, UPDATE_CHUNK_BYTES } from "../optimizer/update-rule.ts";
import { eachShaped } from "./apply-gradient.ts";
import type { StoredBlock } from "./block.ts";
import type { BlockTable } from "./block-table.ts";
import type { GradientChange } from "./check-record.ts";
import { ElementRanges } from "./element-ranges.ts";
import { countUpdate } from "./row-counts.ts";
import { RuleRun } from "./rule-run.ts";
import { isFloat } from "./tensor-arithmetic.ts";

// In a `sync` job, gradients are added up in a slot of their block until the step closes.

/** State that the open step is applied to. */
export interface StepContext {
  readonly memory: ShardMemory;
  readonly blocks: BlockTable;
}

const SCALE = { float32: "scaleF32", float64: "scaleF64" } as const;

/**
 * Adds a trainer's gradient, scaled and clipped, to the open step of its block. Values and version
 * stay. The step must have been checked before.
 */
export function accumulateGradient(
  { memory, blocks }: StepContext,
  trainer: string,
  change: GradientChange,
): void {
  const { block, part, operation } = change;
  const { dtype, sum } = openSlots(block);
  const elementBytes = DTYPES[dtype].bytes;
  blocks.beforeChange(block);
  const ranges = ElementRanges.of(block.rows, part);
  eachShaped(memory, change, dtype, ranges, (gradient) => {
    const target = sum + ranges.start * elementBytes;
    accumulate(memory.kernels, dtype, target, gradient, ranges.count);
  });
  touch(block, part?.rows);
  block.contributors.add(trainer);
  block.openRate = operation.lr;
}

/**
 * Applies the open step of each of these blocks that has one: a single update by the optimizer's
 * rule with the sum of the gradients divided by `divisor`. Of a sparse parameter, only rows named by
 * a gradient of the step are updated.
 */
export function closeStep(
  { memory, blocks }: StepContext,
  closing: Iterable<StoredBlock>,
  divisor: number,
): void {
  for (const block of closing) {
    if (block.contributors.size === 0) continue;
    blocks.beforeChange(block);
    applyOpenStep(memory, block, 1 / divisor);
    block.contributors.clear();
    block.openRate = undefined;
    block.updates += 1;
    block.version += 1;
  }
}

function applyOpenStep(memory: ShardMemory, block: StoredBlock, share: number): void {
  const { dtype, sum } = openSlots(block);
  const elementBytes = DTYPES[dtype].bytes;
  const scale = memory.kernels[SCALE[dtype]];
  const run = new RuleRun(memory, block, dtype, { learningRate: block.openRate, divisor: 1 });
  const rows = touchedRows(block);
  const ranges = ElementRanges.of(block.rows, rows === undefined ? undefined : { rows });
  while (ranges.next(UPDATE_CHUNK_BYTES / elementBytes)) {
    const gradient = sum + ranges.start * elementBytes;
    if (share !== 1) scale(gradient, ranges.count, share);
    run.run(ranges.start, ranges.count, gradient);
    memory.bytes(gradient, ranges.count * elementBytes).fill(0);
  }
  countUpdate(block, rows);
  if (block.plan.touched !== undefined) block.slotBytes(block.plan.touched).fill(0);
}

/** Marks rows of a sparse parameter as named by a gradient of the open step; undefined for all. */
function touch(block: StoredBlock, rows: Uint32Array | undefined): void {
  if (block.plan.touched === undefined) return;
  const touched = block.slotBytes(block.plan.touched);
  if (rows === undefined) touched.fill(1);
  else for (const row of rows) touched[row] = 1;
}

/** Rows named by gradients of the open step, ascending; undefined for all. */
function touchedRows(block: StoredBlock): Uint32Array | undefined {
  if (block.plan.touched === undefined) return undefined;
  const touched = block.slotBytes(block.plan.touched);
  const rows = new Uint32Array(touched.length);
  let count = 0;
  for (let row = touched.indexOf(1); row >= 0; row = touched.indexOf(1, row + 1)) {
    rows[count] = row;
    count += 1;
  }
  return rows.subarray(0, count);
}

/** Type and address of the sum of gradients. @throws INTERNAL if the block has no slot for one. */
function openSlots(block: StoredBlock): { dtype: FloatDtype; sum: number } {
  const { dtype, plan } = block;
  if (isFloat(dtype) && plan.accumulator !== undefined) {
    return { dtype, sum: block.slotPointer(plan.accumulator) };
  }
  throw new PserverError("INTERNAL", `${block.label} has no place to add gradients of a step up`);
}
