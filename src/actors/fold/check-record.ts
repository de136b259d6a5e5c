import { encodedBytes } from "../../protocol/encoding/encodings.ts";
import { PserverError } from "../../protocol/errors.ts";
import {
  type BlockExtent,
  isWholeRows,
  partElements,
  type readPartIndex,
} from "../../protocol/parts.ts";
import type { InitRecord, PushRecord, SetRecord, TrainerRecord } from "../../protocol/records.ts";
import type { ShardMemory } from "../memory/shard-memory.ts";
import { type BlockName, blockLabel, isPlaced, type StoredBlock } from "./block.ts";
import type { BlockTable } from "./block-table.ts";
import type { Change, GradientChange, InitChange, MixChange, SetChange } from "./change.ts";
import { checkGradient, checkGradientStep } from "./check-gradient.ts";
import type { DeclarationTable } from "./declaration-table.ts";
import type { Payload } from "./payload.ts";
import type { Rules } from "./rules.ts";
import { heldBytes, type SlotPlan, slotPlan } from "./slots.ts";
import { measureIfPossible, type Statistics } from "./statistics.ts";
import type { StepTable } from "./step-table.ts";
import { allFinite } from "./tensor-arithmetic.ts";

// The texts of these errors are part of the fold: a shard remembers them as outcomes, and a snapshot
// holds them. They do not change within a version of the rules.

/** State that a record is checked against and applied to. */
export interface RecordContext {
  readonly memory: ShardMemory;
  readonly blocks: BlockTable;
  readonly rules: Rules;
  readonly steps: StepTable;
  readonly declarations: DeclarationTable;
  /** Sender of the record. */
  readonly trainer: string;
  /** Whether the record asks for no answer, or for one to the trainer's own inbox. */
  readonly isAnswerable: boolean;
  /** Reads the index of a part: packed in a batch. */
  readonly readIndex: typeof readPartIndex;
  /** What the entries of a batch that have been checked add to the shard. */
  readonly added: AddedBlocks;
  /** Whether elements are measured while they are checked, for an observer of the fold. */
  readonly measures?: boolean;
}

/** Blocks that checked but not yet applied entries of a batch create. */
export interface AddedBlocks {
  /** Bytes of values and slots, less those of the blocks that are replaced. */
  bytes: number;
  /** Number of blocks, those that are replaced not counted. */
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

/** @throws BAD_REPLY if a record asks for an answer elsewhere than to its trainer's inbox. */
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
  const { rules, steps } = context;
  if (rules.bounds !== undefined) context.declarations.check(context.trainer, name, record);
  const plan = slotPlan(record, steps.synchronization);
  checkNewBlock(context, name, record, plan);
  checkReply(context, record.reply);
  const label = blockLabel(name.parameter, name.index);
  const payload = { dtype: record.dtype, bytes: data };
  const statistics = checkFinite(context, { label, config: record.config }, payload);
  return { kind: "init", name, record, plan, data, statistics };
}

/**
 * Passes if an `init` may create its block with these slots, or replace the one there.
 * @throws ALREADY_INITIALIZED, STALE_EPOCH, BAD_VALUE or TOO_LARGE
 */
function checkNewBlock(
  { blocks, rules, added }: RecordContext,
  { parameter, index }: BlockName,
  record: InitRecord,
  plan: SlotPlan,
): void {
  const label = blockLabel(parameter, index);
  const { epoch } = record;
  const present = blocks.get(parameter, index);
  if (present?.epoch === epoch) {
    throw new PserverError("ALREADY_INITIALIZED", `${label}: initialized under epoch ${epoch}`);
  }
  if (present !== undefined && epoch < present.epoch) {
    const text = `${label}: expected epoch above ${present.epoch}; received ${epoch}`;
    throw new PserverError("STALE_EPOCH", text);
  }
  if (!isPlaced(index, record)) throw misplaced(label, "the place of such a block", record);
  if (record.config.sparse && !isWholeRows(record)) {
    throw misplaced(label, "whole rows, because the parameter is sparse", record);
  }
  const bytes = blocks.bytes + added.bytes - (present?.heldBytes ?? 0) + heldBytes(record, plan);
  checkAtMost(label, rules.shardBytesMax, bytes, "bytes of values and slots");
  const count = blocks.count + added.count + (present === undefined ? 1 : 0);
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
 * The block that a `push` or `set` is for, if epoch and element type are its own.
 * @throws NOT_INITIALIZED, STALE_EPOCH or BAD_DTYPE
 */
function checkTarget(
  blocks: BlockTable,
  { parameter, index }: BlockName,
  record: PushRecord | SetRecord,
): StoredBlock {
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
  block: StoredBlock,
  { dtype, reply }: SetRecord,
  data: Uint8Array,
): SetChange {
  checkBytes(block, block.bytes, data.length);
  checkNotStatic(block);
  checkReply(context, reply);
  const statistics = checkFinite(context, block, { dtype, bytes: data });
  return { kind: "set", block, data, statistics };
}

function checkPush(
  context: RecordContext,
  block: StoredBlock,
  record: PushRecord,
  data: Uint8Array,
): MixChange | GradientChange {
  const { operation } = record;
  if (operation.op === "grad") {
    checkGradientStep(context.steps, block, context.trainer, operation.step);
  }
  const { dtype, encoding, norm } = record;
  const part = record.part && context.readIndex(record.part, data, block.rows);
  const bytes = part?.elements ?? data;
  const elements = record.part ? partElements(record.part, block.rows) : block.count;
  checkBytes(block, encodedBytes(dtype, encoding, elements), bytes.length);
  checkNotStatic(block);
  const payload = { dtype, encoding, bytes };
  const behind = operation.op === "grad" ? checkGradient(block, part, norm, operation) : 1;
  checkReply(context, record.reply);
  const statistics = checkFinite(context, block, payload, norm);
  return operation.op === "grad"
    ? { kind: "gradient", block, payload, part, norm, statistics, operation, behind }
    : { kind: "mix", block, payload, part, norm, statistics, operation };
}

/** @throws BAD_LENGTH unless there are as many bytes as expected. */
function checkBytes({ label }: StoredBlock, expected: number, received: number): void {
  if (received === expected) return;
  const text = `${label}: expected ${expected} bytes; received ${received}`;
  throw new PserverError("BAD_LENGTH", text);
}

/** @throws STATIC if the parameter takes no update. */
function checkNotStatic({ label, config }: StoredBlock): void {
  if (!config.static) return;
  throw new PserverError("STATIC", `${label}: the parameter is static`);
}

/**
 * Passes if the parameter allows any elements, or if these are finite and so is the norm of the
 * whole tensor, where it is known. By the norm all block updates of one gradient are rejected alike.
 * @returns the statistics of the elements if the context asks for them: one pass finds both.
 * @throws NON_FINITE
 */
function checkFinite(
  { memory, measures }: RecordContext,
  { label, config }: Pick<StoredBlock, "label" | "config">,
  payload: Payload,
  norm?: number,
): Statistics | undefined {
  const statistics = measures ? measureIfPossible(memory, payload) : undefined;
  if (config.allowNonFinite) return statistics;
  if (norm !== undefined && !Number.isFinite(norm)) {
    throw new PserverError("NON_FINITE", `${label}: expected a finite norm; received ${norm}`);
  }
  const passes = statistics === undefined ? allFinite(memory, payload) : statistics.nonFinite === 0;
  if (passes) return statistics;
  throw new PserverError(
    "NON_FINITE",
    `${label}: expected finite elements; received a NaN or an infinity among ` +
      `${payload.bytes.length} bytes`,
  );
}
