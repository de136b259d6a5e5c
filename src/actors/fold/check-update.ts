import { checkTakesGradients, checkTakesPushes } from "../../protocol/config/index.ts";
import { DTYPES, encodedBytes } from "../../protocol/dtypes.ts";
import { ensureError, PserverError } from "../../protocol/errors.ts";
import {
  type BlockExtent,
  isWholeRows,
  type PartIndex,
  partElements,
  readPartIndex,
} from "../../protocol/messages/parts.ts";
import type {
  InitRecord,
  PushOperation,
  PushRecord,
  SetRecord,
  TrainerRecord,
} from "../../protocol/messages/records.ts";
import { quoteName } from "../../protocol/names.ts";
import type { ShardMemory } from "../kernel/shard-memory.ts";
import {
  allFinite,
  areBools,
  type Change,
  type GradientChange,
  type InitChange,
  type MixChange,
  type NewBlockRecord,
  type SetChange,
} from "./apply-update.ts";
import {
  type BlockActor,
  type BlockName,
  blockLabel,
  heldBytes,
  isPlaced,
  keptSlots,
  type SlotPlan,
  slotPlan,
} from "./block-actor.ts";
import type { BlockTable } from "./block-table.ts";
import type { DeclarationTable } from "./declaration-table.ts";
import { computedAs, decodedElements, type Payload, payloadOf } from "./elements.ts";
import { type Judges, judgeNorm } from "./guards/judge.ts";
import type { Rules } from "./rules.ts";
import { measure, measureIfPossible, type Statistics } from "./statistics.ts";
import type { StepTable } from "./step-table.ts";

/**
 * Passes if a block takes a gradient of this step from this trainer. Gradients of integers are applied at once in
 * every job, so in a `sync` job they may name any step or none.
 * @throws BAD_VALUE, NOT_MEMBER, LATE or EARLY; UNSUPPORTED as {@link checkFragment}.
 */
export function checkGradientStep(
  { steps, trainer, fragment }: Pick<RecordContext, "steps" | "trainer" | "fragment">,
  block: BlockActor,
  step: number | undefined,
): void {
  const { label, plan, contributors } = block;
  if (steps.synchronization.mode === "sync" && plan.accumulator === undefined) return;
  checkFragment(block, fragment);
  steps.checkGradient(trainer, step);
  if (!contributors.has(trainer)) return;
  throw new PserverError(
    "LATE",
    `${label}: expected one gradient of each trainer in step ${step}; received another one`,
  );
}

/**
 * Passes if a gradient may change the block: one of a contribution to a fragment the blocks of that fragment, any other
 * one the blocks of none.
 * @throws UNSUPPORTED
 */
function checkFragment({ label, config }: BlockActor, fragment: string | undefined): void {
  if (config.fragment === fragment) return;
  const expected =
    fragment === undefined
      ? `contributions to its fragment ${quoteName(config.fragment ?? "")}`
      : `contributions to ${config.fragment === undefined ? "no fragment" : `fragment ${quoteName(config.fragment)}`}`;
  const received = fragment === undefined ? "a gradient" : `one to ${quoteName(fragment)}`;
  throw new PserverError("UNSUPPORTED", `${label}: expected ${expected}; received ${received}`);
}

/** A part of a block, as far as these checks need it: whether it has offsets in rows. Undefined for a whole block. */
type Part = Pick<PartIndex, "inner"> | undefined;

/**
 * Passes if the block takes a push of this kind.
 * @returns the divisor of the learning rate for a stale gradient; 1 or more.
 * @throws UNSUPPORTED, and for a gradient as {@link checkGradient}.
 */
export function checkOperation(
  block: BlockActor,
  part: Part,
  norm: number | undefined,
  operation: PushOperation,
): number {
  if (operation.op === "grad") return checkGradient(block, part, norm, operation);
  checkTakesPushes(block.dtype, block.label);
  return 1;
}

/**
 * Passes if the parameter's configuration takes this gradient.
 * @returns the divisor of the learning rate for a stale gradient; 1 or more.
 * @throws UNSUPPORTED, NO_LEARNING_RATE or BAD_VALUE
 */
function checkGradient(
  block: BlockActor,
  part: Part,
  norm: number | undefined,
  { lr, seen }: Pick<PushOperation & { readonly op: "grad" }, "lr" | "seen">,
): number {
  checkPart(block, part);
  checkTaken(block);
  checkNorm(block, norm);
  checkRate(block, lr);
  return versionsBehind(block, seen);
}

/** @throws UNSUPPORTED for some rows of a parameter that is not sparse, or for some elements of rows. */
function checkPart({ config, label }: BlockActor, part: Part): void {
  if (part === undefined || (config.sparse && part.inner === undefined)) return;
  const received = part.inner === undefined ? "some rows" : "some elements of some rows";
  const expected = config.sparse ? "whole rows" : "all rows: the parameter is not sparse";
  throw new PserverError(
    "UNSUPPORTED",
    `${label}: expected a gradient of ${expected}; received one of ${received}`,
  );
}

/** @throws UNSUPPORTED if elements of this type take no gradients under the block's configuration. */
function checkTaken({ dtype, config, label }: BlockActor): void {
  checkTakesGradients(dtype, config, label);
  if (DTYPES[dtype].float) return;
  const { gradientScale, clipNorm, clipValue } = config;
  if (gradientScale === 1 && clipNorm === undefined && clipValue === undefined) return;
  throw new PserverError(
    "UNSUPPORTED",
    `${label}: expected ${dtype} to be added as it is; received a configuration that scales or clips`,
  );
}

/** @throws BAD_VALUE if the configuration clips by the norm and the gradient names none. */
function checkNorm({ config, label }: BlockActor, norm: number | undefined): void {
  const { clipNorm } = config;
  if (clipNorm === undefined || norm !== undefined) return;
  throw new PserverError(
    "BAD_VALUE",
    `${label}: expected the norm of the gradient, which is clipped to ${clipNorm}; received none`,
  );
}

/**
 * @throws NO_LEARNING_RATE if neither the configuration nor the call has a learning rate; BAD_VALUE for a rate that
 * the optimizer excludes, or that differs from the rate of earlier gradients of the step.
 */
function checkRate(block: BlockActor, rate: number | undefined): void {
  const { label } = block;
  const { optimizer, learningRate } = block.config;
  if (optimizer.name === "none") {
    if (rate === undefined) return;
    const text = `${label}: optimizer none takes no learning rate; received ${rate}`;
    throw new PserverError("BAD_VALUE", text);
  }
  if (rate === undefined && learningRate === undefined) {
    throw new PserverError(
      "NO_LEARNING_RATE",
      `${label}: expected a learning rate in the parameter's configuration or in the call; ` +
        "received none",
    );
  }
  if (optimizer.name === "ftrl" && rate !== undefined && rate <= 0) {
    const text = `${label}: expected a learning rate above 0; received ${rate}`;
    throw new PserverError("BAD_VALUE", text);
  }
  if (block.accumulated === 0 || rate === block.openRate) return;
  throw new PserverError(
    "BAD_VALUE",
    `${label}: expected the learning rate of the step's first gradient, ` +
      `${block.openRate ?? "that of the configuration"}; received ${rate ?? "none"}`,
  );
}

/** @throws BAD_VALUE if the gradient names a version that the block has not reached. */
function versionsBehind(block: BlockActor, seen: number | undefined): number {
  if (seen === undefined) return 1;
  if (seen > block.version) {
    throw new PserverError(
      "BAD_VALUE",
      `${block.label}: seen: expected a version of at most ${block.version}; received ${seen}`,
    );
  }
  return block.config.stalenessScaling ? Math.max(1, block.version - seen) : 1;
}

// The texts of these errors are part of the fold: a shard remembers them as outcomes, and a snapshot
// holds them. They do not change within a version of the rules.

/** The state that a record is checked against, and what is known of the record. */
export interface RecordContext extends Judges {
  readonly memory: ShardMemory;
  readonly blocks: BlockTable;
  readonly rules: Rules;
  readonly steps: StepTable;
  readonly declarations: DeclarationTable;
  /** Sender of the record. */
  readonly trainer: string;
  /** Whether the record asks for no answer, or for one to the trainer's own inbox. */
  readonly isAnswerable: boolean;
  /** What the entries of the batch checked so far will add to the shard. */
  readonly added: AddedBlocks;
  /** Whether elements are measured while they are checked, for an observer of the fold. */
  readonly measures?: boolean;
  /** The fragment that the record contributes to; absent for any other record. */
  readonly fragment?: string;
}

/** Blocks that entries of a batch will create: the entries are checked, but not applied yet. */
interface AddedBlocks {
  /** Bytes of their values and slots, less the bytes of the blocks that they replace. */
  bytes: number;
  /** Number of blocks, without those that replace one. */
  count: number;
}

/**
 * Checks a record against the state, in the order: epoch, step, fit, configuration. Changes nothing.
 * @throws the rejection, with a code and a message that names expected and received.
 */
export function checkRecord(
  context: RecordContext,
  name: BlockName,
  record: TrainerRecord,
  data: Uint8Array,
): Change {
  if (record.verb === "init") return checkInit(context, name, record, data);
  const block = checkTarget(context.blocks, name, record);
  return record.verb === "set"
    ? checkSet(context, block, record, data)
    : checkPush(context, block, record, data);
}

/** @throws BAD_REPLY if a record asks for an answer to a subject outside its trainer's inbox. */
export function checkReply({ isAnswerable }: RecordContext, reply: string): void {
  if (isAnswerable) return;
  throw new PserverError(
    "BAD_REPLY",
    `reply: expected a subject under the trainer's inbox, or none; received ${JSON.stringify(reply.slice(0, 100))}`,
  );
}

function checkInit(
  context: RecordContext,
  name: BlockName,
  record: InitRecord,
  data: Uint8Array,
): InitChange {
  const { steps } = context;
  const { firstNumber } = context.declarations.check(context.trainer, name, record);
  const plan = slotPlan(record, steps.synchronization);
  checkNewBlock(context, name, record, plan);
  checkReply(context, record.reply);
  const label = blockLabel(name.parameter, name.index);
  const payload = { dtype: record.dtype, bytes: data };
  const statistics = checkElements(context, { label, config: record.config }, payload);
  const number = firstNumber + name.index;
  return { kind: "init", name, number, record, plan, data, statistics };
}

/**
 * Passes if an `init` may create its block with these slots, or replace the one there.
 * @throws ALREADY_INITIALIZED, STALE_EPOCH, BAD_VALUE or TOO_LARGE
 */
export function checkNewBlock(
  { blocks, rules, added }: RecordContext,
  { parameter, index }: BlockName,
  record: NewBlockRecord,
  plan: SlotPlan,
): void {
  const label = blockLabel(parameter, index);
  const { epoch } = record;
  const existing = blocks.get(parameter, index);
  if (existing?.epoch === epoch) {
    throw new PserverError("ALREADY_INITIALIZED", `${label}: initialized under epoch ${epoch}`);
  }
  if (existing !== undefined && epoch < existing.epoch) {
    const text = `${label}: expected epoch above ${existing.epoch}; received ${epoch}`;
    throw new PserverError("STALE_EPOCH", text);
  }
  if (!isPlaced(index, record)) throw misplaced(label, "the place of such a block", record);
  if (record.config.sparse && !isWholeRows(record)) {
    throw misplaced(label, "whole rows, because the parameter is sparse", record);
  }
  const bytes = blocks.bytes + added.bytes - (existing?.heldBytes ?? 0) + heldBytes(record, plan);
  checkAtMost(label, rules.shardBytesMax, bytes, "bytes of values and slots");
  const count = blocks.count + added.count + (existing === undefined ? 1 : 0);
  checkAtMost(label, rules.blocksMax, count, "blocks");
}

function misplaced(
  label: string,
  expected: string,
  { start, count, shape }: BlockExtent,
): PserverError {
  return new PserverError(
    "BAD_VALUE",
    `${label}: expected ${expected}; received ${count} elements from ${start} on, of shape [${shape}]`,
  );
}

function checkAtMost(label: string, most: number, received: number, of: string): void {
  if (received <= most) return;
  throw new PserverError(
    "TOO_LARGE",
    `${label}: expected at most ${most} ${of} in the shard; received ${received}`,
  );
}

/**
 * Returns the block that a `push` or `set` names.
 * @throws NOT_INITIALIZED, STALE_EPOCH or BAD_DTYPE if there is none, or it has another epoch or element type.
 */
function checkTarget(
  blocks: BlockTable,
  { parameter, index }: BlockName,
  record: PushRecord | SetRecord,
): BlockActor {
  const block = blocks.get(parameter, index);
  if (block === undefined) {
    throw new PserverError(
      "NOT_INITIALIZED",
      `${blockLabel(parameter, index)}: expected an init of epoch ${record.epoch} before; found none`,
    );
  }
  const { label, epoch, dtype } = block;
  if (record.epoch !== epoch) {
    const text = `${label}: expected epoch ${epoch}; received ${record.epoch}`;
    throw new PserverError("STALE_EPOCH", text);
  }
  if (record.dtype !== dtype) {
    throw new PserverError("BAD_DTYPE", `${label}: expected ${dtype}; received ${record.dtype}`);
  }
  return block;
}

function checkSet(
  context: RecordContext,
  block: BlockActor,
  { dtype, reply, slot }: SetRecord,
  data: Uint8Array,
): SetChange {
  if (slot !== undefined) return checkSetSlot(context, block, slot, reply, data);
  checkBytes(block, block.bytes, data.length);
  checkNotStatic(block);
  checkReply(context, reply);
  const statistics = checkElements(context, block, { dtype, bytes: data });
  return { kind: "set", block, data, statistics };
}

/**
 * Passes if an optimizer's slot, or the rows' update counts, can be overwritten. The sums of an open step are nobody's
 * to set. A block with such slots is not static.
 * @throws BAD_VALUE, BAD_LENGTH, BAD_REPLY or NON_FINITE
 */
function checkSetSlot(
  context: RecordContext,
  block: BlockActor,
  slot: number,
  reply: string,
  data: Uint8Array,
): SetChange {
  const { label, plan, config } = block;
  const settable = keptSlots(plan);
  if (slot > settable) {
    const text = `${label}: slot: expected at most ${settable}; received ${slot}`;
    throw new PserverError("BAD_VALUE", text);
  }
  checkBytes(block, plan.bytes[slot - 1] ?? 0, data.length);
  checkReply(context, reply);
  const isCounts = slot === plan.counts;
  const isUnchecked = isCounts || config.allowNonFinite;
  const dtype = computedAs(block.dtype);
  if (!isUnchecked && !allFinite(context.memory, { dtype, bytes: data })) {
    throw nonFinite(label, data.length);
  }
  return { kind: "set", block, data, slot };
}

function checkPush(
  context: RecordContext,
  block: BlockActor,
  record: PushRecord,
  data: Uint8Array,
): MixChange | GradientChange {
  const { operation } = record;
  if (operation.op === "grad") {
    checkGradientStep(context, block, operation.step);
  }
  const { dtype, encoding, norm } = record;
  const part = record.part && readPartIndex(record.part, data, block.rows);
  const bytes = part?.elements ?? data;
  const elements = record.part ? partElements(record.part, block.rows) : block.count;
  checkBytes(block, encodedBytes(dtype, encoding, elements), bytes.length);
  checkNotStatic(block);
  const behind = checkOperation(block, part, norm, operation);
  checkReply(context, record.reply);
  decodedElements.begin();
  const payload = labelled(block.label, () =>
    payloadOf({ dtype, encoding }, bytes, elements, decodedElements),
  );
  if (operation.op === "mix") {
    const statistics = checkElements(context, block, payload, norm);
    return { kind: "mix", block, payload, part, norm, statistics, operation };
  }
  const kind = "gradient";
  if (context.guards.of(block) === undefined) {
    const statistics = checkElements(context, block, payload, norm);
    return { kind, block, payload, part, norm, statistics, operation, behind, clip: 1 };
  }
  const statistics = checkMeasured(context, block, payload, norm);
  const clip = judgeNorm(context, block, statistics.norm, "record");
  return { kind, block, payload, part, norm, statistics, operation, behind, clip };
}

/** Returns the result of a check, and puts the block before the text of its error. */
function labelled<Value>(label: string, check: () => Value): Value {
  try {
    return check();
  } catch (cause) {
    const { code, message, details } = ensureError(cause);
    throw new PserverError(code, `${label}: ${message}`, details, { cause });
  }
}

/** @throws BAD_LENGTH if there are more or fewer bytes than expected. */
function checkBytes({ label }: BlockActor, expected: number, received: number): void {
  if (received === expected) return;
  const text = `${label}: expected ${expected} bytes; received ${received}`;
  throw new PserverError("BAD_LENGTH", text);
}

/** @throws STATIC if the parameter takes no update. */
export function checkNotStatic({ label, config }: BlockActor): void {
  if (!config.static) return;
  throw new PserverError("STATIC", `${label}: the parameter is static`);
}

/**
 * Passes if bools are 0 and 1, and if the parameter allows any elements, or these elements are finite and so is the
 * norm of the whole tensor, where it is known. The norm is the same in all block updates of one gradient, so they are
 * all rejected alike.
 * @returns the statistics of the elements if the context asks for them: one pass finds both.
 * @throws BAD_VALUE, NON_FINITE
 */
function checkElements(
  { memory, measures }: RecordContext,
  { label, config }: Pick<BlockActor, "label" | "config">,
  payload: Payload,
  norm?: number,
): Statistics | undefined {
  const statistics = measures ? measureIfPossible(memory, payload) : undefined;
  if (payload.dtype === "bool" && !areBools(memory, payload)) throw noBools(label, payload);
  if (config.allowNonFinite) return statistics;
  checkFiniteNorm(label, norm);
  const passes = statistics === undefined ? allFinite(memory, payload) : statistics.nonFinite === 0;
  if (passes) return statistics;
  throw nonFinite(label, payload.bytes.length);
}

/**
 * Measures the elements of a gradient in the pass in which it checks that they, and the norm of the whole tensor, are
 * finite.
 * @throws NON_FINITE
 */
function checkMeasured(
  { memory }: RecordContext,
  { label }: Pick<BlockActor, "label">,
  payload: Payload,
  norm: number | undefined,
): Statistics {
  const statistics = measure(memory, payload);
  checkFiniteNorm(label, norm);
  if (statistics.nonFinite === 0) return statistics;
  throw nonFinite(label, payload.bytes.length);
}

/** Returns the error for bools of which one is neither 0 nor 1. */
export function noBools(label: string, { bytes }: Pick<Payload, "bytes">): PserverError {
  return new PserverError(
    "BAD_VALUE",
    `${label}: expected bools as 0 and 1; received another value among ${bytes.length}`,
  );
}

/** @throws NON_FINITE for a norm that is no finite number. */
export function checkFiniteNorm(label: string, norm: number | undefined): void {
  if (norm === undefined || Number.isFinite(norm)) return;
  throw new PserverError("NON_FINITE", `${label}: expected a finite norm; received ${norm}`);
}

/** Returns the error for elements, in so many bytes, of which one is not finite. */
export function nonFinite(label: string, bytes: number): PserverError {
  return new PserverError(
    "NON_FINITE",
    `${label}: expected finite elements; received a NaN or an infinity among ${bytes} bytes`,
  );
}
