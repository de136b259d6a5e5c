import type { ParameterConfig } from "../../protocol/config/index.ts";
import { DTYPES, type Dtype } from "../../protocol/dtypes.ts";
import { PserverError } from "../../protocol/errors.ts";
import { quoteName } from "../../protocol/names.ts";
import { type BlockRows, blockRows } from "../../protocol/parts.ts";
import type { ShardMemory } from "../memory/shard-memory.ts";
import { type FloatDtype, type UpdateRule, updateRule } from "../optimizer/update-rule.ts";
import type { SlotPlan } from "./slots.ts";

/** Gradients of a step that has not closed, added up in a block. */
export interface OpenStep {
  /** Whose gradients, in the order in which they came. */
  readonly trainers: readonly string[];
  /** The learning rate that they gave, all the same; absent: that of the configuration. */
  readonly learningRate?: number;
}

/** Everything of a block but its bytes; what a snapshot's state holds of it. */
export interface BlockHeader {
  readonly parameter: string;
  readonly index: number;
  /** Number of the parameter's initialization that made this block. */
  readonly epoch: number;
  readonly dtype: Dtype;
  /** Shape of the whole parameter. */
  readonly shape: readonly number[];
  /** First element of the block in the parameter, in C order. */
  readonly start: number;
  /** Elements of the block. */
  readonly count: number;
  readonly config: ParameterConfig;
  /** Changes of the values under its epoch: 1 for the `init`, then 1 more each. */
  readonly version: number;
  /** Gradients, or steps of several, applied under its epoch; rows of a sparse one count their own. */
  readonly updates: number;
  /** Absent while nothing is added up. */
  readonly open?: OpenStep;
}

/** A block of a shard, to be read. Its header and bytes change with the records applied. */
export interface Block extends Omit<BlockHeader, "open"> {
  /** Gradients that the open step has added up: with epoch and version it says what bytes these are. */
  readonly accumulated: number;
  /** Bytes of the values. */
  readonly bytes: number;
  /** Bytes of the values and all slots. */
  readonly heldBytes: number;
  /** Slots beside the values, see `SlotPlan`. */
  readonly slots: number;
  /**
   * The values: a live view, invalid after the shard's next `apply`.
   * @throws INTERNAL once the block has been removed from its shard.
   */
  values(): Uint8Array<ArrayBuffer>;
  /**
   * Slot 0 is the values, slot 1 and up what updates keep; as {@link Block.values}.
   * @throws BAD_VALUE if there is no such slot.
   */
  slotBytes(slot: number): Uint8Array<ArrayBuffer>;
}

/** Bytes of the values of a block with this header. */
export function blockBytes(header: Pick<BlockHeader, "dtype" | "count">): number {
  return header.count * DTYPES[header.dtype].bytes;
}

/** How messages speak of a block. */
export function blockLabel(parameter: string, index: number): string {
  return `${quoteName(parameter)} block ${index}`;
}

/** A block that owns ranges of its shard's memory; only the shard changes it. */
export class StoredBlock implements Block {
  /** How messages speak of it: kept, because every record is checked by it. */
  readonly label: string;
  readonly parameter: string;
  readonly index: number;
  readonly epoch: number;
  readonly dtype: Dtype;
  readonly shape: readonly number[];
  readonly start: number;
  readonly count: number;
  readonly config: ParameterConfig;
  readonly bytes: number;
  readonly heldBytes: number;
  readonly slots: number;
  readonly plan: SlotPlan;
  /** How its elements are seen in rows. */
  readonly rows: BlockRows;
  version: number;
  updates: number;
  /** Whose gradients the open step has added up, in the order in which they came. */
  readonly contributors: Set<string>;
  /** The learning rate that these gradients gave; undefined: that of the configuration. */
  openRate: number | undefined;
  readonly #memory: ShardMemory;
  readonly #sizes: readonly number[];
  #pointers: number[] | undefined;
  #rule: UpdateRule | undefined;

  /**
   * Allocates values and slots. What the values hold is undefined, the slots are zero.
   * @throws TOO_LARGE if the memory is full.
   */
  constructor(memory: ShardMemory, header: BlockHeader, plan: SlotPlan) {
    this.label = blockLabel(header.parameter, header.index);
    this.parameter = header.parameter;
    this.index = header.index;
    this.epoch = header.epoch;
    this.dtype = header.dtype;
    this.shape = header.shape;
    this.start = header.start;
    this.count = header.count;
    this.config = header.config;
    this.version = header.version;
    this.updates = header.updates;
    this.contributors = new Set(header.open?.trainers);
    this.openRate = header.open?.learningRate;
    this.bytes = blockBytes(header);
    this.plan = plan;
    this.slots = plan.bytes.length;
    this.rows = blockRows(header);
    this.#memory = memory;
    this.#sizes = [this.bytes, ...plan.bytes];
    this.heldBytes = this.#sizes.reduce((sum, bytes) => sum + bytes, 0);
    this.#pointers = this.#sizes.map((bytes) => memory.allocate(bytes));
    for (let slot = 1; slot <= this.slots; slot++) this.slotBytes(slot).fill(0);
  }

  /** Where the values are in the shard's memory. @throws INTERNAL once the block is freed. */
  get pointer(): number {
    return this.slotPointer(0);
  }

  /**
   * Where a slot is in the shard's memory, 0 being the values.
   * @throws INTERNAL once the block is freed, BAD_VALUE if there is no such slot.
   */
  slotPointer(slot: number): number {
    const pointer = this.#pointers?.[slot];
    if (pointer !== undefined) return pointer;
    const { label } = this;
    if (this.#pointers === undefined) {
      throw new PserverError(
        "INTERNAL",
        `${label} of epoch ${this.epoch} is used after its removal`,
      );
    }
    throw new PserverError(
      "BAD_VALUE",
      `${label}: expected slot 0 to ${this.slots}; received ${slot}`,
      { expected: this.slots, received: slot },
    );
  }

  get accumulated(): number {
    return this.contributors.size;
  }

  values(): Uint8Array<ArrayBuffer> {
    return this.slotBytes(0);
  }

  slotBytes(slot: number): Uint8Array<ArrayBuffer> {
    return this.#memory.bytes(this.slotPointer(slot), this.#sizes[slot] ?? 0);
  }

  /** The optimizer's rule for its elements, which are floats; kept from the first call on. */
  rule(dtype: FloatDtype): UpdateRule {
    this.#rule ??= updateRule(this.#memory.kernels, this.config, dtype);
    return this.#rule;
  }

  /** The header alone, with its entries in the order that snapshots keep. */
  header(): BlockHeader {
    const { parameter, index, epoch, dtype, shape, start, count, config, version, updates } = this;
    const header = {
      parameter,
      index,
      epoch,
      dtype,
      shape,
      start,
      count,
      config,
      version,
      updates,
    };
    if (this.contributors.size === 0) return header;
    const trainers = [...this.contributors];
    const { openRate } = this;
    const open = openRate === undefined ? { trainers } : { trainers, learningRate: openRate };
    return { ...header, open };
  }

  /** Gives the bytes back; the block cannot be read afterwards. */
  free(): void {
    for (let slot = 0; slot <= this.slots; slot++) {
      this.#memory.free(this.slotPointer(slot), this.#sizes[slot] ?? 0);
    }
    this.#pointers = undefined;
  }
}
