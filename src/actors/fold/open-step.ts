import { DTYPES } from "../../protocol/dtypes.ts";
import { PserverError } from "../../protocol/errors.ts";
import type { ShardMemory } from "../memory/shard-memory.ts";
import { accumulate } from "../optimizer/gradient.ts";
import { type FloatDtype, UPDATE_CHUNK_BYTES } from "../optimizer/update-rule.ts";
import { eachShaped } from "./apply-gradient.ts";
import type { StoredBlock } from "./block.ts";
import type { BlockTable } from "./block-table.ts";
import type { GradientChange } from "./change.ts";
import { RangeWalk } from "./column-walk.ts";
import { ElementRanges } from "./element-ranges.ts";
import { countUpdate, rowCounts } from "./row-counts.ts";
import { eachListPiece, RowPieces } from "./row-pieces.ts";
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
  blocks.beforeChange(block);
  const { rows } = block;
  const target = { rows, part, elementBytes: DTYPES[dtype].bytes, columns: [sum] };
  eachShaped(memory, change, dtype, target, (columns, gradient, n) =>
    accumulate(memory.kernels, dtype, columns[0] as number, gradient, n),
  );
  touch(memory, block, part?.rows);
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

/**
 * Forgets the gradients of the open step; values and versions stay.
 * @returns the number of blocks that had one.
 */
export function discardOpenSteps(blocks: Iterable<StoredBlock>): number {
  let discarded = 0;
  for (const block of blocks) {
    if (block.contributors.size === 0) continue;
    const { accumulator, touched } = block.plan;
    for (const slot of [accumulator, touched]) {
      if (slot !== undefined) block.slotBytes(slot).fill(0);
    }
    block.contributors.clear();
    block.openRate = undefined;
    discarded += 1;
  }
  return discarded;
}

function applyOpenStep(memory: ShardMemory, block: StoredBlock, share: number): void {
  const { dtype, sum } = openSlots(block);
  const run = new RuleRun(memory, block, dtype, { learningRate: block.openRate, divisor: 1 });
  const scale = memory.kernels[SCALE[dtype]];
  const shared = (gradient: number, n: number): void => {
    if (share !== 1) scale(gradient, n, share);
  };
  const { touched } = block.plan;
  if (touched === undefined) {
    applyAll(memory, run, block, { sum, shared });
    return;
  }
  const marks = block.slotPointer(touched);
  if (RowPieces.isShort(block.rows.rowElements * DTYPES[dtype].bytes)) {
    applyPieces(memory, run, block, { sum, shared, marks });
  } else {
    applyLongRows(memory, run, block, { sum, shared, marks });
  }
  block.slotBytes(touched).fill(0);
}

/** The sum of gradients at its address, and the division by the number of trainers. */
interface OpenSum {
  readonly sum: number;
  readonly shared: (gradient: number, n: number) => void;
}

/** Updates all elements of a block, and clears the sum. */
function applyAll(
  memory: ShardMemory,
  run: RuleRun,
  block: StoredBlock,
  { sum, shared }: OpenSum,
): void {
  const target = run.target(undefined);
  const walk = new RangeWalk(memory, target);
  const step = UPDATE_CHUNK_BYTES / target.elementBytes;
  for (let start = 0; start < block.count; start += step) {
    const n = Math.min(step, block.count - start);
    const gradient = sum + start * target.elementBytes;
    shared(gradient, n);
    walk.visit(start, n, gradient, run.update);
    memory.bytes(gradient, n * target.elementBytes).fill(0);
  }
}

/** Updates the marked rows, which are short, counts the update, and clears their sums. */
function applyPieces(
  memory: ShardMemory,
  run: RuleRun,
  block: StoredBlock,
  { sum, shared, marks }: OpenSum & { readonly marks: number },
): void {
  const { kernels } = memory;
  const { columns, counts, elementBytes, visitRows } = run.target(undefined);
  const { rows, rowElements } = block.rows;
  const pieces = new RowPieces(memory, rowElements, elementBytes);
  const allCounts = rowCounts(block);
  for (let first = 0; first < rows; ) {
    const n = kernels.markedRows(pieces.list, marks, first, rows, pieces.rowsMax);
    if (n === 0) return;
    first = pieces.last(n) + 1;
    const gradient = memory.scratch;
    pieces.gather(gradient, sum, n);
    shared(gradient, n * rowElements);
    pieces.change(columns, counts, n, run.update, visitRows);
    kernels.clearRows(sum, pieces.list, n, rowElements * elementBytes);
    if (allCounts !== undefined) kernels.countRows(allCounts, pieces.list, n);
  }
}

/** Does for long rows what {@link applyPieces} does for short ones, where they are. */
function applyLongRows(
  memory: ShardMemory,
  run: RuleRun,
  block: StoredBlock,
  { sum, shared, marks }: OpenSum & { readonly marks: number },
): void {
  const rows = markedRows(memory, marks, block.rows.rows);
  const target = run.target({ rows });
  const walk = new RangeWalk(memory, target);
  const ranges = ElementRanges.of(block.rows, { rows });
  while (ranges.next(UPDATE_CHUNK_BYTES / target.elementBytes)) {
    const gradient = sum + ranges.start * target.elementBytes;
    shared(gradient, ranges.count);
    walk.visit(ranges.start, ranges.count, gradient, run.update);
    memory.bytes(gradient, ranges.count * target.elementBytes).fill(0);
  }
  countUpdate(memory, block, rows);
}

/** Marks rows of a sparse parameter as named by a gradient of the open step; undefined for all. */
function touch(memory: ShardMemory, block: StoredBlock, list: Uint32Array | undefined): void {
  if (block.plan.touched === undefined) return;
  if (list === undefined) {
    block.slotBytes(block.plan.touched).fill(1);
    return;
  }
  const marks = block.slotPointer(block.plan.touched);
  eachListPiece(memory, list, (pointer, n) => memory.kernels.markRows(marks, pointer, n));
}

/** Rows that are marked, ascending. */
function markedRows(memory: ShardMemory, marks: number, rows: number): Uint32Array {
  const bytes = memory.bytes(marks, rows);
  const found: number[] = [];
  for (let row = bytes.indexOf(1); row >= 0; row = bytes.indexOf(1, row + 1)) found.push(row);
  return Uint32Array.from(found);
}

/** Type and address of the sum of gradients. @throws INTERNAL if the block has no slot for one. */
function openSlots(block: StoredBlock): { dtype: FloatDtype; sum: number } {
  const { dtype, plan } = block;
  if (isFloat(dtype) && plan.accumulator !== undefined) {
    return { dtype, sum: block.slotPointer(plan.accumulator) };
  }
  throw new PserverError("INTERNAL", `${block.label} has no place to add gradients of a step up`);
}
