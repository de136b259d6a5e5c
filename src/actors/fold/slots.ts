import type { ParameterConfig } from "../../protocol/config/index.ts";
import type { Synchronization } from "../../protocol/config/synchronization.ts";
import { DTYPES, type Dtype } from "../../protocol/dtypes.ts";
import { type BlockExtent, blockRows } from "../../protocol/parts.ts";
import { slotCount } from "../optimizer/update-rule.ts";

/** What the slots of a block follow from. */
export interface SlotOwner extends BlockExtent {
  readonly dtype: Dtype;
  readonly config: ParameterConfig;
}

/** The slots of a block. Slot 0 is its values; the others are numbered from 1 in this order. */
export interface SlotPlan {
  /** Bytes of slots 1, 2, …; all zero when the block is made. */
  readonly bytes: readonly number[];
  /** How many belong to the optimizer's rule, as long as the values each. */
  readonly rule: number;
  /** The slot of the update counts, a uint32 for each row, if the parameter is sparse. */
  readonly counts?: number;
  /** The slot of the open step's sum of gradients, as the values, in a job that applies steps. */
  readonly accumulator?: number;
  /** The slot that says of each row, in one byte, whether the open step has a gradient of it. */
  readonly touched?: number;
}

const COUNT_BYTES = 4;

/** The slots that a block of a job has; a static parameter, which is never updated, has none. */
export function slotPlan(owner: SlotOwner, synchronization: Synchronization): SlotPlan {
  const { dtype, config, count } = owner;
  if (config.static) return { bytes: [], rule: 0 };
  const { rows } = blockRows(owner);
  const valueBytes = count * DTYPES[dtype].bytes;
  const isFloat = DTYPES[dtype].float;
  const bytes: number[] = [];
  const add = (slotBytes: number): number => bytes.push(slotBytes);
  const rule = isFloat ? slotCount(config) : 0;
  for (let slot = 0; slot < rule; slot++) add(valueBytes);
  return {
    bytes,
    rule,
    ...(config.sparse ? { counts: add(rows * COUNT_BYTES) } : {}),
    ...(isFloat && synchronization.mode === "sync"
      ? { accumulator: add(valueBytes), ...(config.sparse ? { touched: add(rows) } : {}) }
      : {}),
  };
}

/** Bytes of the values and all slots of a block. */
export function heldBytes(owner: SlotOwner, plan: SlotPlan): number {
  const valueBytes = owner.count * DTYPES[owner.dtype].bytes;
  return plan.bytes.reduce((sum, bytes) => sum + bytes, valueBytes);
}
