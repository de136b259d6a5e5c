import { isKnownFinite } from "../../protocol/checksum/checksum.ts";
import { DTYPES, type Dtype, type HalfDtype, isHalf } from "../../protocol/dtypes.ts";
import { PserverError } from "../../protocol/errors.ts";
import type { PartIndex } from "../../protocol/messages/parts.ts";
import type { InitRecord, PushOperation, RecordHeader } from "../../protocol/messages/records.ts";
import type { Kernels } from "../kernel/kernels.ts";
import type { ShardMemory } from "../kernel/shard-memory.ts";
import type { BlockActor, BlockName, SlotPlan } from "./block-actor.ts";
import type { BlockTable } from "./block-table.ts";
import { computedAs, ElementRanges, everyEncodedChunk, type Payload } from "./elements.ts";
import {
  type ColumnTarget,
  type ColumnVisit,
  countUpdate,
  eachColumn,
  eachListRange,
  nextCount,
  RangeWalk,
  RowRanges,
  type RowVisit,
  rowCounts,
} from "./row-ranges.ts";
import type { Statistics } from "./statistics.ts";
import type { StepTable } from "./step-table.ts";
import {
  accumulate,
  type FloatDtype,
  gradientScale,
  isConstantRate,
  learningRateAt,
  type NumberDtype,
  shapeGradient,
  UPDATE_CHUNK_BYTES,
  type UpdateRule,
} from "./update-rule.ts";

/** What an `init` says of its block. */
export type NewBlockRecord = Omit<InitRecord, keyof RecordHeader | "verb">;

/** An `init` that passed every check. */
export interface InitChange {
  readonly kind: "init";
  readonly name: BlockName;
  /** Number of the block. */
  readonly number: number;
  readonly record: NewBlockRecord;
  readonly plan: SlotPlan;
  readonly data: Uint8Array;
  /** Absent unless somebody observes the fold. */
  readonly statistics?: Statistics | undefined;
}

/** A `set` that passed every check. */
export interface SetChange {
  readonly kind: "set";
  readonly block: BlockActor;
  readonly data: Uint8Array;
  /** The slot that it overwrites; absent for the values. */
  readonly slot?: number | undefined;
  /** Absent unless somebody observes the fold. */
  readonly statistics?: Statistics | undefined;
}

/** A push whose payload has as many elements as its block or part. */
interface FittingPush {
  readonly block: BlockActor;
  readonly payload: Payload;
  /** The elements of the block that the payload changes; undefined for all. */
  readonly part: PartIndex | undefined;
  /** L2 norm of the trainer's whole tensor; set for a gradient that is clipped by its norm. */
  readonly norm: number | undefined;
  /** Absent unless somebody observes the fold. */
  readonly statistics?: Statistics | undefined;
}

/** A push with `alpha` and `beta` that passed every check. */
export interface MixChange extends FittingPush {
  readonly kind: "mix";
  readonly operation: PushOperation & { readonly op: "mix" };
}

/** A gradient that passed every check. */
export interface GradientChange extends FittingPush {
  readonly kind: "gradient";
  readonly operation: PushOperation & { readonly op: "grad" };
  /** Divisor of the learning rate because of staleness; 1 or more. */
  readonly behind: number;
  /** By what its guard has it multiplied; 1 unless it is clipped. */
  readonly clip: number;
}

/** A change of one block that passed every check. */
export type Change = InitChange | SetChange | MixChange | GradientChange;

/** Learning rate of an update. */
interface RateChoice {
  /** Learning rate that overrides the configuration's. */
  readonly learningRate?: number | undefined;
  /** Divisor of the rate; 1 or more. */
  readonly divisor: number;
}

/**
 * Runs one update of a block by its optimizer's rule. Rows of a sparse parameter have update counts of their own; all
 * elements of any other block share the block's count.
 */
export class RuleRun {
  readonly #memory: ShardMemory;
  readonly #block: BlockActor;
  readonly #rate: RateChoice;
  readonly #rule: UpdateRule;
  readonly #elementBytes: number;
  /** Address of the rows' update counts; undefined if the rule does the same at every count. */
  readonly #counts: number | undefined;
  /** Addresses of the rule's slots for the elements being updated. */
  readonly #slots: number[] = [];
  readonly #updateRate = { count: 0, learningRate: 0 };

  constructor(memory: ShardMemory, block: BlockActor, dtype: FloatDtype, rate: RateChoice) {
    this.#memory = memory;
    this.#block = block;
    this.#rate = rate;
    this.#rule = block.rule(dtype);
    this.#elementBytes = DTYPES[dtype].bytes;
    const isPlain = !this.#rule.dependsOnCount && this.#isSteady();
    this.#counts = isPlain ? undefined : rowCounts(block);
  }

  /** Returns these elements of the block in the columns that the rule changes: the values and its slots. */
  target(part: PartIndex | undefined): ColumnTarget {
    const { rows, plan, dtype } = this.#block;
    const columns: number[] = [];
    for (let slot = 0; slot <= plan.rule; slot++) columns.push(this.#block.slotPointer(slot));
    const [elementBytes, counts] = [this.#elementBytes, this.#counts];
    const visitRows = this.#rowVisit(columns, counts);
    return { rows, part, elementBytes, columns, half: halfOf(dtype), counts, visitRows };
  }

  /**
   * Returns a function that updates rows in one call; undefined if the rule has no kernel for that, if the values are
   * half floats, or if the learning rate differs from row to row.
   */
  #rowVisit(columns: readonly number[], counts: number | undefined): RowVisit | undefined {
    const rule = this.#rule;
    if (counts === undefined || rule.runRows === undefined || !this.#isSteady()) return undefined;
    if (isHalf(this.#block.dtype)) return undefined;
    const { rowElements } = this.#block.rows;
    return (gradient, list, n) => {
      this.#begin(1);
      rule.runRows?.(columns, gradient, { list, n, rowElements, counts });
    };
  }

  /** Updates elements of the columns with the gradient at an address; overwrites the gradient. */
  readonly update: ColumnVisit = (columns, gradient, n, count) => {
    this.#begin(this.#counts === undefined ? this.#block.updates + 1 : nextCount(count));
    for (let slot = 1; slot < columns.length; slot++) {
      this.#slots[slot - 1] = columns[slot] as number;
    }
    this.#rule.run(columns[0] as number, gradient, this.#slots, n);
  };

  /** The slots that the rule changes: the values and its own. */
  get slots(): readonly number[] {
    return Array.from({ length: this.#block.plan.rule + 1 }, (_, slot) => slot);
  }

  /** Whether rows have to be updated by counts of their own. */
  get isByRow(): boolean {
    return this.#counts !== undefined;
  }

  /** Whether the update is the same whatever the block's number of updates is. */
  get isAlike(): boolean {
    return !this.#rule.dependsOnCount && this.#isSteady();
  }

  /** Whether every update has the same learning rate. */
  #isSteady(): boolean {
    const { learningRate } = this.#block.config;
    if (this.#rate.learningRate !== undefined || learningRate === undefined) return true;
    return isConstantRate(learningRate);
  }

  #begin(count: number): void {
    if (this.#updateRate.count === count) return;
    this.#updateRate.count = count;
    this.#updateRate.learningRate = this.#rateAt(count) / this.#rate.divisor;
    this.#rule.begin(this.#memory.kernels, this.#updateRate);
  }

  #rateAt(count: number): number {
    const { learningRate } = this.#block.config;
    if (this.#rate.learningRate !== undefined) return this.#rate.learningRate;
    // Only the optimizer `none` comes here without a learning rate, and it ignores the rate.
    if (learningRate === undefined) return 1;
    return learningRateAt(this.#memory.kernels, learningRate, count);
  }
}

/** The kernels that mix numbers of each type. */
export const MIX = {
  int32: "mixI32",
  uint32: "mixU32",
  int64: "mixI64",
  uint64: "mixU64",
  float32: "mixF32",
  float64: "mixF64",
  uint8: "mixU8",
  int8: "mixI8",
} as const satisfies Record<NumberDtype, keyof Kernels>;

const FINITE = {
  float32: "finiteF32",
  float64: "finiteF64",
  bfloat16: "finiteBf16",
  float16: "finiteF16",
} as const satisfies Record<FloatDtype | HalfDtype, keyof Kernels>;
const CANONICAL = { float32: "canonicalF32", float64: "canonicalF64" } as const;

/** Whether elements of this type are floats that are computed with as they are. */
export function isFullFloat(dtype: Dtype): dtype is FloatDtype {
  return dtype === "float32" || dtype === "float64";
}

/** Returns the type in which floats of a type are computed; undefined for integers and bools. */
export function floatOf(dtype: Dtype): FloatDtype | undefined {
  const computed = computedAs(dtype);
  return isFullFloat(computed) ? computed : undefined;
}

/** Returns the type in which elements are computed. @throws INTERNAL for bools, which no check lets come here. */
export function numberOf(dtype: Dtype): NumberDtype {
  const computed = computedAs(dtype);
  if (computed !== "bool") return computed;
  throw new PserverError("INTERNAL", "expected numbers to compute with; received bool");
}

/** Returns the type if it is one of half floats. */
export function halfOf(dtype: Dtype): HalfDtype | undefined {
  return isHalf(dtype) ? dtype : undefined;
}

/**
 * Whether no element of a payload is a NaN or an infinity; true for integers. The payload must not have changed since
 * the checksum of its record was compared: that pass has already found most answers.
 */
export function allFinite(memory: ShardMemory, payload: Payload): boolean {
  const { dtype, encoding } = payload;
  const form = encoding ?? (isHalf(dtype) || isFullFloat(dtype) ? dtype : undefined);
  if (form === undefined || isKnownFinite(payload.bytes, form)) return true;
  const finite = memory.kernels[FINITE[form]];
  return everyEncodedChunk(memory, payload, (pointer, n) => finite(pointer, n) === 1);
}

/** Whether all bytes of a payload are 0 or 1. */
export function areBools(memory: ShardMemory, payload: Payload): boolean {
  const { kernels } = memory;
  return everyEncodedChunk(memory, payload, (pointer, n) => kernels.areBools(pointer, n) === 1);
}

/** `values = alpha · values + beta · payload` in the target's one column. */
export function mix(
  memory: ShardMemory,
  target: ColumnTarget,
  payload: Payload,
  alpha: number,
  beta: number,
): void {
  const kernel = memory.kernels[MIX[numberOf(payload.dtype)]];
  eachColumn(memory, target, payload, (columns, incoming, n) =>
    kernel(columns[0] as number, incoming, n, alpha, beta),
  );
}

/** `values = values + payload` in the target's one column; integers wrap around. */
function add(memory: ShardMemory, target: ColumnTarget, payload: Payload): void {
  const dtype = numberOf(payload.dtype);
  eachColumn(memory, target, payload, (columns, incoming, n) =>
    accumulate(memory.kernels, dtype, columns[0] as number, incoming, n),
  );
}

/**
 * `values = data`, with canonical NaNs except in half floats, which are stored bit for bit. The data must not have changed since the checksum of its record was compared,
 * as for {@link allFinite}.
 */
function overwrite(memory: ShardMemory, dtype: Dtype, pointer: number, data: Uint8Array): void {
  memory.bytes(pointer, data.length).set(data);
  if (isFullFloat(dtype) && !isKnownFinite(data, dtype)) {
    canonical(memory, dtype, pointer, data.length / DTYPES[dtype].bytes);
  }
}

/** Makes the NaNs among `n` elements canonical, in place. */
export function canonical(
  memory: ShardMemory,
  dtype: FloatDtype,
  pointer: number,
  n: number,
): void {
  memory.kernels[CANONICAL[dtype]](pointer, n);
}

/**
 * Applies one gradient to its block at once: floats are scaled, clipped and given to the optimizer's
 * rule, integers are added with wrap-around. Rows outside the part keep values, slots and counts.
 */
export function applyGradient(memory: ShardMemory, change: GradientChange): void {
  const { block, payload, part, operation, behind } = change;
  const { dtype, rows, pointer } = block;
  const float = floatOf(dtype);
  if (float !== undefined) {
    const rate = { learningRate: operation.lr, divisor: behind };
    const run = new RuleRun(memory, block, float, rate);
    eachShapedElement(memory, change, float, run.target(part), run.update);
  } else {
    const elementBytes = DTYPES[dtype].bytes;
    add(memory, { rows, part, elementBytes, columns: [pointer] }, payload);
  }
  countUpdate(memory, block, part?.rows);
  block.updates += 1;
}

/**
 * Scales and clips a gradient in the scratch, and calls `visit` with its elements and the target's, as {@link
 * eachColumn} does.
 */
function eachShapedElement(
  memory: ShardMemory,
  { block, payload, norm, clip }: GradientChange,
  dtype: FloatDtype,
  target: ColumnTarget,
  visit: ColumnVisit,
): void {
  const scale = gradientScale(block.config, norm, clip);
  const { clipValue } = block.config;
  eachColumn(memory, target, payload, visit, (n) =>
    shapeGradient(memory.kernels, dtype, memory.scratch, n, scale, clipValue),
  );
}

// In a `sync` job, gradients are added up in a slot of their block until the step closes.

/** State that applying an open step needs. */
interface StepContext {
  readonly memory: ShardMemory;
  readonly blocks: BlockTable;
}

const SCALE = { float32: "scaleF32", float64: "scaleF64" } as const;

/**
 * Scales and clips a trainer's gradient and adds it to the open step of its block. Values and version stay. The step
 * must have been checked before.
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
  eachShapedElement(memory, change, dtype, target, (columns, gradient, n) =>
    accumulate(memory.kernels, dtype, columns[0] as number, gradient, n),
  );
  touch(memory, block, part?.rows);
  block.contributors.add(trainer);
  block.openRate = operation.lr;
}

/**
 * Applies the open steps of these blocks: divides the sum of a block's gradients by `divisor` and updates the block
 * once by its optimizer's rule. Of a sparse parameter it updates only the rows that a gradient of the step names.
 */
export function closeStep(
  { memory, blocks }: StepContext,
  closing: Iterable<BlockActor>,
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
 * Forgets the gradients of open steps; values and versions stay.
 * @returns how many blocks had an open step.
 */
export function discardOpenSteps(blocks: Iterable<BlockActor>): number {
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

function applyOpenStep(memory: ShardMemory, block: BlockActor, share: number): void {
  const { dtype, sum } = openSlots(block);
  const run = new RuleRun(memory, block, dtype, { learningRate: block.openRate, divisor: 1 });
  const scale = memory.kernels[SCALE[dtype]];
  const shared = (gradient: number, n: number): void => {
    if (share !== 1) scale(gradient, n, share);
  };
  const { touched } = block.plan;
  if (touched === undefined) {
    applySum(memory, run, block, { sum, shared });
    return;
  }
  const touchedAt = block.slotPointer(touched);
  if (RowRanges.isShort(block.rows.rowElements * DTYPES[dtype].bytes)) {
    applyShortRows(memory, run, block, { sum, shared, touchedAt });
  } else {
    applyLongRows(memory, run, block, { sum, shared, touchedAt });
  }
  block.slotBytes(touched).fill(0);
}

/** Gradients that were added up: the address of the sum, and what is done with it before it is applied. */
export interface GradientSum {
  readonly sum: number;
  readonly shared: (gradient: number, n: number) => void;
}

/** Updates all elements of a block by one run of its rule, and clears the sum. */
export function applySum(
  memory: ShardMemory,
  run: RuleRun,
  block: BlockActor,
  { sum, shared }: GradientSum,
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

/** Updates the touched rows of a block with short rows, counts the update, and clears the rows' sums. */
function applyShortRows(
  memory: ShardMemory,
  run: RuleRun,
  block: BlockActor,
  { sum, shared, touchedAt }: GradientSum & { readonly touchedAt: number },
): void {
  const { kernels } = memory;
  const { columns, half, counts, elementBytes, visitRows } = run.target(undefined);
  const { rows, rowElements } = block.rows;
  const ranges = new RowRanges(memory, rowElements, elementBytes, half);
  const allCounts = rowCounts(block);
  for (let first = 0; first < rows; ) {
    const n = kernels.touchedRows(ranges.list, touchedAt, first, rows, ranges.rowsMax);
    if (n === 0) return;
    first = ranges.last(n) + 1;
    const gradient = memory.scratch;
    ranges.gather(gradient, sum, n);
    shared(gradient, n * rowElements);
    ranges.change(columns, counts, n, run.update, visitRows);
    kernels.clearRows(sum, ranges.list, n, rowElements * elementBytes);
    if (allCounts !== undefined) kernels.countRows(allCounts, ranges.list, n);
  }
}

/** Does the same as {@link applyShortRows} for a block with long rows, without gathering them. */
function applyLongRows(
  memory: ShardMemory,
  run: RuleRun,
  block: BlockActor,
  { sum, shared, touchedAt }: GradientSum & { readonly touchedAt: number },
): void {
  const rows = touchedRows(memory, touchedAt, block.rows.rows);
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

/** Notes that a gradient of the open step names these rows of a sparse parameter; undefined stands for all rows. */
function touch(memory: ShardMemory, block: BlockActor, list: Uint32Array | undefined): void {
  if (block.plan.touched === undefined) return;
  if (list === undefined) {
    block.slotBytes(block.plan.touched).fill(1);
    return;
  }
  const touchedAt = block.slotPointer(block.plan.touched);
  eachListRange(memory, list, (pointer, n) => memory.kernels.touchRows(touchedAt, pointer, n));
}

/** Returns the numbers of the touched rows, ascending. */
function touchedRows(memory: ShardMemory, touchedAt: number, rows: number): Uint32Array {
  const bytes = memory.bytes(touchedAt, rows);
  const found: number[] = [];
  for (let row = bytes.indexOf(1); row >= 0; row = bytes.indexOf(1, row + 1)) found.push(row);
  return Uint32Array.from(found);
}

/** Returns type and address of the sum of gradients. @throws INTERNAL if the block has no slot for one. */
function openSlots(block: BlockActor): { dtype: FloatDtype; sum: number } {
  const { plan } = block;
  const dtype = floatOf(block.dtype);
  if (dtype !== undefined && plan.accumulator !== undefined) {
    return { dtype, sum: block.slotPointer(plan.accumulator) };
  }
  throw new PserverError("INTERNAL", `${block.label} has no place to add gradients of a step up`);
}

/** State that applying a record's change needs. */
export interface ChangeContext extends StepContext {
  readonly steps: Pick<StepTable, "noteGradient">;
  /** Sender of the record. */
  readonly trainer: string;
}

/**
 * Applies a change that `checkRecord` passed, or adds its gradient to the open step.
 * @returns the version of the block afterwards.
 * @throws TOO_LARGE if this process lacks the memory for a new block.
 */
export function applyChange(context: ChangeContext, change: Change): number {
  if (change.kind === "init") return initialize(context, change);
  const { memory, blocks, steps, trainer } = context;
  const { block } = change;
  if (change.kind === "gradient" && waitsForStep(block)) {
    accumulateGradient(context, trainer, change);
    steps.noteGradient(trainer);
    return block.version;
  }
  blocks.beforeChange(block);
  if (change.kind === "set") setSlot(memory, change);
  else if (change.kind === "gradient") applyGradient(memory, change);
  else mixIn(memory, change);
  block.version += 1;
  return block.version;
}

function initialize({ memory, blocks }: StepContext, change: InitChange): number {
  const { record, number, plan, data } = change;
  const { epoch, dtype, shape, start, count, config, updates = 0 } = record;
  const header = { ...change.name, number, epoch, dtype, shape, start, count, config };
  const block = blocks.put({ ...header, version: firstVersion(record), updates }, plan, (made) =>
    overwrite(memory, dtype, made.pointer, data),
  );
  return block.version;
}

/** Returns the version of a block after its `init`: the updates before it count as if they had been here. */
export function firstVersion({ updates = 0 }: Pick<InitRecord, "updates">): number {
  return updates + 1;
}

function setSlot(memory: ShardMemory, { block, data, slot }: SetChange): void {
  if (slot === undefined) overwrite(memory, block.dtype, block.pointer, data);
  else if (slot === block.plan.counts) block.slotBytes(slot).set(data);
  // Rules take a NaN with a sign for a number below their floor.
  else overwrite(memory, computedAs(block.dtype), block.slotPointer(slot), data);
}

/** Whether gradients of a block wait for their step to close: those of floats in a `sync` job do. */
export function waitsForStep({ plan }: BlockActor): boolean {
  return plan.accumulator !== undefined;
}

function mixIn(memory: ShardMemory, { block, payload, part, operation }: MixChange): void {
  const { rows, pointer, dtype } = block;
  const elementBytes = DTYPES[computedAs(dtype)].bytes;
  const target = { rows, part, elementBytes, columns: [pointer], half: halfOf(dtype) };
  mix(memory, target, payload, operation.alpha, operation.beta);
}
