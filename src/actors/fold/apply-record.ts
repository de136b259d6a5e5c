import { PserverError } from "../../protocol/errors.ts";
import type { InitRecord, SetRecord, TrainerRecord } from "../../protocol/records.ts";
import type { ShardMemory } from "../memory/shard-memory.ts";
import { blockLabel, type StoredBlock } from "./block.ts";
import type { BlockTable } from "./block-table.ts";
import { checkInit } from "./check-init.ts";
import { checkPush, type GradientChange, type MixChange } from "./check-push.ts";
import {
  type BlockName,
  checkBytes,
  checkFinite,
  checkNotStatic,
  checkTarget,
} from "./check-record.ts";
import { checkStep } from "./check-step.ts";
import type { DeclarationTable } from "./declaration-table.ts";
import { ElementRanges } from "./element-ranges.ts";
import { applyGradient } from "./gradient-step.ts";
import type { Rules } from "./rules.ts";
import { type SlotPlan, slotPlan } from "./slots.ts";
import { accumulateGradient } from "./step-gradient.ts";
import type { StepTable } from "./steps.ts";
import { mix, overwrite } from "./tensor-arithmetic.ts";

/** What a record is checked against and applied to. */
export interface ApplyContext {
  readonly memory: ShardMemory;
  readonly blocks: BlockTable;
  readonly rules: Rules;
  readonly steps: StepTable;
  readonly declarations: DeclarationTable;
  /** Who sent the record. */
  readonly trainer: string;
  /** Whether the record's answer goes nowhere or where it may. */
  readonly isAnswerable: boolean;
}

/** An `init` that passed every check. */
interface InitChange {
  readonly name: BlockName;
  readonly record: InitRecord;
  readonly plan: SlotPlan;
  readonly data: Uint8Array;
}

/** A `set` that passed every check. */
interface SetChange {
  readonly block: StoredBlock;
  readonly record: SetRecord;
  readonly data: Uint8Array;
}

/** A record that passed every check, with the block it is for. */
export type Change = InitChange | SetChange | MixChange | GradientChange;

/**
 * Checks a record against the state, in the order: epoch, step, fit, configuration. Changes nothing.
 * @throws the rejection, with a code and a message that names expected and received.
 */
export function checkRecord(
  context: ApplyContext,
  name: BlockName,
  record: TrainerRecord,
  data: Uint8Array,
): Change {
  const { memory, blocks, steps, rules, trainer } = context;
  const { dtype } = record;
  if (record.verb === "init") {
    if (rules.bounds !== undefined) context.declarations.check(trainer, name, record);
    const plan = slotPlan(record, steps.synchronization);
    checkInit(blocks, name, record, plan, rules);
    checkReply(context, record.reply);
    const label = blockLabel(name.parameter, name.index);
    checkFinite(memory, { label, config: record.config }, { dtype, bytes: data });
    return { name, record, plan, data };
  }
  const block = checkTarget(blocks, name, record);
  if (record.verb === "set") {
    checkBytes(block, block.bytes, data.length);
    checkNotStatic(block);
    checkReply(context, record.reply);
    checkFinite(memory, block, { dtype, bytes: data });
    return { block, record, data };
  }
  const { operation } = record;
  if (operation.op === "grad") checkStep(steps, block, trainer, operation.step);
  const push = checkPush(block, record, data);
  checkReply(context, record.reply);
  checkFinite(memory, block, push.payload, push.norm);
  return push;
}

/**
 * Applies what {@link checkRecord} passed, at once, or adds a gradient to its step; gives the version
 * the block has then.
 * @throws TOO_LARGE if this process lacks the memory for a new block.
 */
export function applyChange(context: ApplyContext, change: Change): number {
  const { memory, blocks } = context;
  if ("name" in change) return initialize(context, change);
  const { block } = change;
  if ("behind" in change && isOfStep(block)) {
    accumulateGradient(context, context.trainer, change);
    context.steps.noteGradient(context.trainer);
    return block.version;
  }
  blocks.beforeChange(block);
  if ("data" in change) overwrite(memory, block.dtype, block.pointer, change.data);
  else if ("behind" in change) applyGradient(memory, change);
  else mixIn(memory, change);
  block.version += 1;
  return block.version;
}

function initialize({ memory, blocks }: ApplyContext, change: InitChange): number {
  const { record, plan, data } = change;
  const { epoch, dtype, shape, start, count, config } = record;
  const header = { ...change.name, epoch, dtype, shape, start, count, config };
  const block = blocks.put({ ...header, version: 1, updates: 0 }, plan, ({ pointer }) =>
    overwrite(memory, dtype, pointer, data),
  );
  return block.version;
}

/** Whether gradients of a block wait for their step to close: of floats, in a job in steps. */
function isOfStep({ plan }: StoredBlock): boolean {
  return plan.accumulator !== undefined;
}

function mixIn(memory: ShardMemory, { block, payload, part, operation }: MixChange): void {
  const ranges = ElementRanges.of(block.rows, part);
  mix(memory, block.pointer, ranges, payload, operation.alpha, operation.beta);
}

/** @throws BAD_REPLY unless a record's answer goes nowhere or where it may. */
export function checkReply({ isAnswerable }: ApplyContext, reply: string): void {
  if (isAnswerable) return;
  throw new PserverError(
    "BAD_REPLY",
    `reply: expected a subject under the trainer's inbox, or none; received ${JSON.stringify(reply.slice(0, 100))}`,
  );
}
