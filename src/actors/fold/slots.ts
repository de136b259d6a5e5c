import type { ParameterConfig } from "../../protocol/config/index.ts";
import type { Synchronization } from "../../protocol/config/synchronization.ts";
import { DTYPES, type Dtype } from "../../protocol/dtypes.ts";
import { type BlockExtent, blockRows } from "../../protocol/parts.ts";
import { slotCount } from "../optimizer/update-rule.ts";

/** Properties of a block that determine its slots. */
export interface SlotOwner extends BlockExtent {
  readonly dtype: Dtype;
  readonly config: ParameterConfig;
}

/** Slots of a block. Slot 0 is the values; the others are numbered from 1 in this order. */
export interface SlotPlan {
  /** Bytes of slots 1, 2, …; all zero in a new block. */
  readonly bytes: readonly number[];
  /** Number of slots of the optimizer's rule, each as long as the values. */
  readonly rule: number;
  /** Slot of the update counts, a uint32 for each row, if the parameter is sparse. */
  readonly counts?: number;
  /** Slot of the sum of gradients of the open step, as long as the values, in a `sync` job. */
  readonly accumulator?: number;
  /** Slot with one byte for each row: whether the open step has a gradient of it. */
  readonly touched?: number;
}

const COUNT_BYTES = 4;

/** The slots of a block. A static parameter has none, because it is never updated. */
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
