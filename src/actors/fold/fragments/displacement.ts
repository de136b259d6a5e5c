import { DTYPES, isHalf } from "../../../protocol/dtypes.ts";
import { PserverError } from "../../../protocol/errors.ts";
import type { ContributionForm } from "../../../protocol/messages/contributions.ts";
import type { Kernels } from "../../kernel/kernels.ts";
import type { ShardMemory } from "../../kernel/shard-memory.ts";
import { applySum, floatOf, RuleRun } from "../apply-update.ts";
import { entryChange, firstOffsets, passEntry, type RunChange } from "../batch/run-change.ts";
import type { BlockActor } from "../block-actor.ts";
import type { BlockTable } from "../block-table.ts";
import { eachChunk, type Payload, WIDEN } from "../elements.ts";
import { type FloatDtype, gradientScale, shapeGradient } from "../update-rule.ts";

// The arithmetic of contributions. It is done in the type that the elements of a tensor are computed in, with means and
// norms in float64, in the order of the records, and within a contribution in that of its parts and entries.

/** What a contribution's elements are, and from which version they were made. */
export interface ElementForm {
  readonly form: ContributionForm;
  readonly base: number;
}

/** A norm below this counts as 0: what has it has no direction in float32. */
const NORM_MIN = 2 ** -100;

/** The kernels that make weighted means. */
export const MIX = { float32: "mixF32", float64: "mixF64" } as const satisfies Record<
  FloatDtype,
  keyof Kernels
>;
const MEASURE = { float32: "measureF32", float64: "measureF64" } as const satisfies Record<
  FloatDtype,
  keyof Kernels
>;
const SCALE = { float32: "scaleF32", float64: "scaleF64" } as const satisfies Record<
  FloatDtype,
  keyof Kernels
>;

/** Calls `visit` for each entry of the runs of a part, with its block and elements. */
function eachEntry(
  runs: readonly RunChange[],
  visit: (block: BlockActor, payload: Payload) => void,
): void {
  for (const run of runs) {
    const offsets = firstOffsets();
    for (let place = 0; place < run.blocks.length; place++) {
      const change = entryChange(run, place, offsets);
      if (change.kind === "gradient") visit(change.block, change.payload);
      passEntry(run.run, place, offsets);
    }
  }
}

/**
 * Returns the address of the values that elements of a contribution are to be subtracted from: undefined if they are
 * displacements, else those of the version that it was made from, which is the present one or is kept.
 */
export function originOf(
  block: BlockActor,
  { form, base }: ElementForm,
  version: number,
): number | undefined {
  if (form === "displacement") return undefined;
  return base === version ? block.pointer : block.slotPointer(earlierSlot(block, base));
}

/** Returns the slot that keeps the values of an earlier version of the block's fragment. */
function earlierSlot({ plan, label }: BlockActor, version: number): number {
  const { earlier } = plan;
  if (earlier === undefined) throw new PserverError("INTERNAL", `${label} keeps no earlier values`);
  return earlier.first + (version % earlier.count);
}

/** Keeps the values of blocks as those of a version of their fragment, in place of the oldest that are kept. */
export function keepVersion(blocks: BlockTable, kept: Iterable<BlockActor>, version: number): void {
  for (const block of kept) {
    blocks.beforeChange(block);
    block.slotBytes(earlierSlot(block, version)).set(block.slotBytes(0));
  }
}

/**
 * Calls `visit` with the displacement of a block, multiplied by `clip`, chunk after chunk in the scratch, which it may
 * overwrite. `origin`: the address of what the elements are subtracted from; undefined if they are displacements.
 */
export function eachDisplacement(
  memory: ShardMemory,
  block: BlockActor,
  payload: Payload,
  { origin, clip = 1 }: { readonly origin: number | undefined; readonly clip?: number | undefined },
  visit: (start: number, n: number) => void,
): void {
  const scale = memory.kernels[SCALE[floatDtypeOf(block)]];
  // The other half of the scratch is for values that have to be widened.
  const chunkBytes = memory.scratchBytes / 2;
  let start = 0;
  eachChunk(
    memory,
    payload,
    (n) => {
      if (origin !== undefined) subtractFromValues(memory, block, origin, start, n);
      if (clip !== 1) scale(memory.scratch, n, clip);
      visit(start, n);
      start += n;
    },
    chunkBytes,
  );
}

/** Replaces `n` elements in the scratch by what they lack to the values at `origin`: values − elements. */
function subtractFromValues(
  memory: ShardMemory,
  block: BlockActor,
  origin: number,
  start: number,
  n: number,
): void {
  const { kernels, scratch } = memory;
  let values = origin + start * DTYPES[block.dtype].bytes;
  if (isHalf(block.dtype)) {
    const widened = scratch + memory.scratchBytes / 2;
    kernels[WIDEN[block.dtype]](widened, values, n);
    values = widened;
  }
  kernels[MIX[floatDtypeOf(block)]](scratch, values, n, -1, 1);
}

/** Returns the type that elements of a block in a fragment are computed in. */
export function floatDtypeOf({ dtype, label }: BlockActor): FloatDtype {
  const float = floatOf(dtype);
  if (float !== undefined) return float;
  throw new PserverError("INTERNAL", `${label}: expected floats in a fragment`);
}

/**
 * Adds the squares of the elements of a part of a contribution to those of their parameters. `version`: that of the
 * fragment.
 */
export function addSquares(
  memory: ShardMemory,
  runs: readonly RunChange[],
  form: ElementForm,
  version: number,
  squares: Map<string, number>,
): void {
  eachEntry(runs, (block, payload) => {
    const measure = memory.kernels[MEASURE[floatDtypeOf(block)]];
    let sum = squares.get(block.parameter) ?? 0;
    const origin = originOf(block, form, version);
    eachDisplacement(memory, block, payload, { origin }, (_start, n) => {
      sum += measure(memory.scratch, n);
    });
    squares.set(block.parameter, sum);
  });
}

/** How a contribution is added to weighted means. */
export interface Shares {
  /** What the means so far count. */
  readonly before: number;
  /** What the contribution counts; both together are 1, but for rounding. */
  readonly own: number;
}

/** The tensors of a contribution, by parameter. */
export interface TensorNorms {
  /** Their norms as they count: clipped. */
  readonly norms: ReadonlyMap<string, number>;
  /** By what guards have them multiplied; tensors that stay as they are have no entry. */
  readonly clips: ReadonlyMap<string, number>;
}

/** Adds the elements of a part of a contribution to the means of the open round, that after `version`. */
export function addToMeans(
  { memory, blocks }: { readonly memory: ShardMemory; readonly blocks: BlockTable },
  runs: readonly RunChange[],
  form: ElementForm,
  version: number,
  { before, own }: Shares,
  { norms, clips }: TensorNorms,
): void {
  eachEntry(runs, (block, payload) => {
    const dtype = floatDtypeOf(block);
    const { bytes } = DTYPES[dtype];
    const mix = memory.kernels[MIX[dtype]];
    const norm = norms.get(block.parameter) ?? 0;
    const ownDirection = norm < NORM_MIN ? 0 : own / norm;
    const { mean, direction } = sumsOf(block);
    blocks.beforeChange(block);
    const origin = originOf(block, form, version);
    const clip = clips.get(block.parameter);
    eachDisplacement(memory, block, payload, { origin, clip }, (start, n) => {
      const { scratch } = memory;
      mix(mean + start * bytes, scratch, n, before, own);
      if (direction !== undefined) {
        mix(direction + start * bytes, scratch, n, before, ownDirection);
      }
    });
    block.contributions += 1;
  });
}

/** Returns the address of the merged displacement of a block. */
export function accumulatorOf(block: BlockActor): number {
  const { accumulator } = block.plan;
  if (accumulator !== undefined) return block.slotPointer(accumulator);
  throw new PserverError("INTERNAL", `${block.label} has no place to add contributions up`);
}

/** Addresses of the means of a block: of displacements and, with a radial-directional merge, of directions. */
function sumsOf(block: BlockActor): { mean: number; direction: number | undefined } {
  const { direction } = block.plan;
  return {
    mean: accumulatorOf(block),
    direction: direction === undefined ? undefined : block.slotPointer(direction),
  };
}

/**
 * Updates the blocks of a parameter by their optimizer's rule with the merged displacement of a round as gradient, and
 * clears the means. `norm`: the weighted mean of the contributions' norms. One contribution alone is applied as it is.
 */
export function applyMerged(
  { memory, blocks }: { readonly memory: ShardMemory; readonly blocks: BlockTable },
  parameter: readonly BlockActor[],
  norm: number,
  contributions: number,
): void {
  const factor = contributions === 1 ? undefined : radialFactor(memory, parameter, norm);
  for (const block of parameter) {
    const dtype = floatDtypeOf(block);
    const { kernels } = memory;
    const { mean, direction } = sumsOf(block);
    const { clipValue } = block.config;
    const scale = gradientScale(block.config, undefined);
    const shared = (gradient: number, n: number): void => {
      if (factor !== undefined) kernels[SCALE[dtype]](gradient, n, factor);
      shapeGradient(kernels, dtype, gradient, n, scale, clipValue);
    };
    const sum = factor === undefined || direction === undefined ? mean : direction;
    const run = new RuleRun(memory, block, dtype, { learningRate: undefined, divisor: 1 });
    blocks.beforeChange(block);
    applySum(memory, run, block, { sum, shared });
    clearSums(block);
    block.updates += 1;
    block.version += 1;
  }
}

/**
 * Returns by what the mean of the directions is multiplied for a tensor with the mean length: undefined if the tensor is
 * merged by the mean of displacements, also because the directions cancel each other out.
 */
function radialFactor(
  memory: ShardMemory,
  parameter: readonly BlockActor[],
  norm: number,
): number | undefined {
  let squares = 0;
  for (const block of parameter) {
    const { direction } = sumsOf(block);
    if (direction === undefined) return undefined;
    squares += memory.kernels[MEASURE[floatDtypeOf(block)]](direction, block.count);
  }
  const length = Math.sqrt(squares);
  return length < NORM_MIN ? undefined : norm / length;
}

/** Forgets the contributions in the means of these blocks; counts as a change of each that had any. */
export function discardSums(blocks: BlockTable, discarded: Iterable<BlockActor>): number {
  let count = 0;
  for (const block of discarded) {
    if (block.contributions === 0) continue;
    blocks.beforeChange(block);
    clearSums(block);
    // The bytes differ from those of the same version and number of contributions in the round that was discarded.
    block.version += 1;
    count += 1;
  }
  return count;
}

function clearSums(block: BlockActor): void {
  for (const slot of [block.plan.accumulator, block.plan.direction]) {
    if (slot !== undefined) block.slotBytes(slot).fill(0);
  }
  block.contributions = 0;
}
