import type { ParameterConfig } from "../../protocol/config/index.ts";
import type { Synchronization } from "../../protocol/config/synchronization.ts";
import { DTYPES, type Dtype } from "../../protocol/dtypes.ts";
import { PserverError } from "../../protocol/errors.ts";
import { type BlockExtent, type BlockRows, blockRows } from "../../protocol/messages/parts.ts";
import { quoteName } from "../../protocol/names.ts";
import { elementCount } from "../../protocol/tensor.ts";
import type { ShardMemory } from "../kernel/shard-memory.ts";
import { computedAs } from "./elements.ts";
import { type FloatDtype, slotCount, type UpdateRule, updateRule } from "./update-rule.ts";

// The block actor: a contiguous range of a parameter's elements, the state that optimizers keep of it, and nobody else
// who changes either. Blocks of one shard share its journal, its memory and its thread, and no locks.
//
// Subjects. Trainers publish what changes a block to `ps.<job>.log.<shard>.trainer.<id>.<verb>.<parameter>.<index>`,
// several small blocks at once to `….batch`. The journal, the JetStream stream of the shard, captures these subjects
// and gives every record its place. A block that is served is asked for its values on
// `ps.<job>.block.<parameter>.<index>.*.pull`, to which the owner of the shard subscribes for it
// (owner/subscriptions.ts).
//
// Serial application. A record comes from the broker into the owner's worker (journal/journal-reader.ts), waits in the
// fold loop until it is the next one (owner/fold-loop.ts), is read and checked against the state (`apply` of shard.ts,
// fold-record.ts, check-update.ts), and changes its blocks (`applyChange` of apply-update.ts): one record after the
// other, in the journal's order, synchronously. So a block needs no lock, and whoever folds the journal again gets the
// same bytes. The blocks of a shard, by name, are in block-table.ts.
//
// State. The values, which are slot 0, and the further slots of `SlotPlan`; epoch, version, the number of updates, and
// the gradients of a step that has not closed. All of it is in the shard's snapshots.

/** The block that a record names. */
export interface BlockName {
  readonly parameter: string;
  readonly index: number;
}

/** Gradients of a step that has not closed, added up in a block. */
export interface OpenStep {
  /** Senders of the gradients, in the order of arrival. */
  readonly trainers: readonly string[];
  /** Learning rate that all these gradients name; absent if they use the configuration's. */
  readonly learningRate?: number;
}

/** What a block is, without its bytes; its entry in the state of a snapshot. */
export interface BlockHeader extends BlockName {
  /** Its number in the job, by which batches name it. */
  readonly number: number;
  /** Number of the initialization that created this block. */
  readonly epoch: number;
  readonly dtype: Dtype;
  /** Shape of the whole parameter. */
  readonly shape: readonly number[];
  /** First element of the block in the parameter, in C order. */
  readonly start: number;
  /** Elements of the block. */
  readonly count: number;
  readonly config: ParameterConfig;
  /** How often the values have changed under this epoch; the `init` counts as 1. */
  readonly version: number;
  /**
   * How many updates by gradients there were under this epoch, in `sync` one for each closed step. Rows of a sparse
   * parameter count their own.
   */
  readonly updates: number;
  /** Absent while no gradient is added up. */
  readonly open?: OpenStep;
}

/** Read access to a block of a shard. Its header and bytes change with the records applied. */
export interface Block extends Omit<BlockHeader, "open"> {
  /**
   * How many gradients are added up in the open step, or contributions in the open round. Epoch, version and this
   * number identify the bytes.
   */
  readonly accumulated: number;
  /** Bytes of the values. */
  readonly bytes: number;
  /** Bytes of the values and all slots. */
  readonly heldBytes: number;
  /** Number of slots beside the values, see `SlotPlan`. */
  readonly slots: number;
  /** Address of the values in the shard's memory. @throws INTERNAL once the block has been removed from its shard. */
  readonly pointer: number;
  /**
   * The values: a live view, invalid after the shard's next `apply`.
   * @throws INTERNAL once the block has been removed from its shard.
   */
  values(): Uint8Array<ArrayBuffer>;
  /**
   * A live view of a slot, like {@link Block.values}. Slot 0 is the values; from slot 1 on, slots hold the
   * optimizer's state.
   * @throws BAD_VALUE if there is no such slot.
   */
  slotBytes(slot: number): Uint8Array<ArrayBuffer>;
}

/** Counts the bytes of the values of a block with this header. */
function blockBytes(header: Pick<BlockHeader, "dtype" | "count">): number {
  return header.count * DTYPES[header.dtype].bytes;
}

/** Returns the name of a block in messages. */
export function blockLabel(parameter: string, index: number): string {
  return `${quoteName(parameter)} block ${index}`;
}

/**
 * Whether block `index` can have this place in some layout: every block but the last has the same number of elements,
 * in order, without a gap.
 */
export function isPlaced(index: number, place: BlockExtent): boolean {
  const { start, count } = place;
  const isLast = start + count === elementCount(place.shape);
  if (index === 0) return start === 0;
  if (start === 0 || start % index !== 0) return false;
  const blockElements = start / index;
  return count === blockElements || (isLast && count < blockElements);
}

/** Implements a block in ranges of its shard's memory. Only {@link applyChange} and the end of a step change it. */
export class BlockActor implements Block {
  /** Name of the block in messages; kept, because every check of a record may need it. */
  readonly label: string;
  readonly parameter: string;
  readonly index: number;
  readonly number: number;
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
  /** Division of its elements into rows. */
  readonly rows: BlockRows;
  version: number;
  updates: number;
  /** Senders of the gradients in the open step, in the order of arrival. */
  readonly contributors: Set<string>;
  /** Learning rate that these gradients name; undefined if they use the configuration's. */
  openRate: number | undefined;
  /**
   * Contributions in its means of the open round. The shard's fragments know it, so it is no part of the header.
   */
  contributions = 0;
  /** The check of a batch that has met the block last; no part of the state. */
  mark = 0;
  /** Equal for blocks of a shard with the same element type and configuration. */
  readonly kind: number;
  readonly #memory: ShardMemory;
  readonly #sizes: readonly number[];
  #pointers: number[] | undefined;
  #rule: UpdateRule | undefined;

  /**
   * Allocates the values, with undefined contents, and the slots, filled with zeros. `kind`: as {@link kind}.
   * @throws TOO_LARGE if the memory is full.
   */
  constructor(memory: ShardMemory, header: BlockHeader, plan: SlotPlan, kind: number) {
    this.label = blockLabel(header.parameter, header.index);
    this.parameter = header.parameter;
    this.index = header.index;
    this.number = header.number;
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
    this.kind = kind;
    this.slots = plan.bytes.length;
    this.rows = blockRows(header);
    this.#memory = memory;
    this.#sizes = [this.bytes, ...plan.bytes];
    this.heldBytes = this.#sizes.reduce((sum, bytes) => sum + bytes, 0);
    this.#pointers = this.#sizes.map((bytes) => memory.allocate(bytes));
    for (let slot = 1; slot <= this.slots; slot++) this.slotBytes(slot).fill(0);
  }

  get pointer(): number {
    return this.slotPointer(0);
  }

  /**
   * Address of a slot in the shard's memory; slot 0 is the values.
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
    return this.contributors.size + this.contributions;
  }

  values(): Uint8Array<ArrayBuffer> {
    return this.slotBytes(0);
  }

  slotBytes(slot: number): Uint8Array<ArrayBuffer> {
    return this.#memory.bytes(this.slotPointer(slot), this.#sizes[slot] ?? 0);
  }

  /** Returns the optimizer's rule for the block's floats, computed in `dtype`. The first call creates it. */
  rule(dtype: FloatDtype): UpdateRule {
    this.#rule ??= updateRule(this.#memory.kernels, this.config, dtype);
    return this.#rule;
  }

  /** Copies the header, with its entries in the order that snapshots have. */
  header(): BlockHeader {
    const { parameter, index, number, epoch, dtype, shape, start, count } = this;
    const { config, version, updates } = this;
    const header = {
      parameter,
      index,
      number,
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

  /** Frees the bytes; the block cannot be read afterwards. */
  free(): void {
    for (let slot = 0; slot <= this.slots; slot++) {
      this.#memory.free(this.slotPointer(slot), this.#sizes[slot] ?? 0);
    }
    this.#pointers = undefined;
  }
}

/** Properties of a block that determine its slots. */
export interface SlotOwner extends BlockExtent {
  readonly dtype: Dtype;
  readonly config: ParameterConfig;
}

/** The slots of a block. Slot 0 is the values; the others are numbered from 1 in the order of this type's entries. */
export interface SlotPlan {
  /** Bytes of slots 1, 2, …; all zero in a new block. */
  readonly bytes: readonly number[];
  /** Number of slots of the optimizer's rule, each of as many elements as the values, of the type that is computed with. */
  readonly rule: number;
  /** Slot of the rows' update counts, a uint32 for each row; only of a sparse parameter. */
  readonly counts?: number;
  /**
   * Slot of the sum of the open step's gradients, in a `sync` job, or of the mean of the open round's contributions, in
   * a fragment; like the slots of the rule.
   */
  readonly accumulator?: number;
  /** Slot of the mean of the directions of these contributions; only with a radial-directional merge. */
  readonly direction?: number;
  /** First of the slots with the values of earlier versions of the fragment, and how many; only if such are kept. */
  readonly earlier?: { readonly first: number; readonly count: number };
  /** Slot with one byte for each row: 1 if a gradient of the open step names the row, else 0. */
  readonly touched?: number;
}

const COUNT_BYTES = 4;

/** Plans the slots of a block. A static parameter has none, because it is never updated. */
export function slotPlan(owner: SlotOwner, synchronization: Synchronization): SlotPlan {
  const { dtype, config, count } = owner;
  if (config.static) return { bytes: [], rule: 0 };
  const { rows } = blockRows(owner);
  const elementsBytes = count * DTYPES[computedAs(dtype)].bytes;
  const isFloat = DTYPES[dtype].float;
  const bytes: number[] = [];
  const add = (slotBytes: number): number => bytes.push(slotBytes);
  const countsOf = (): Pick<SlotPlan, "counts"> =>
    config.sparse ? { counts: add(rows * COUNT_BYTES) } : {};
  const rule = isFloat ? slotCount(config) : 0;
  for (let slot = 0; slot < rule; slot++) add(elementsBytes);
  if (synchronization.mode === "diloco") {
    if (!isFloat || config.fragment === undefined) return { bytes, rule, ...countsOf() };
    const accumulator = add(elementsBytes);
    const merge = config.merge ?? synchronization.merge;
    const direction = merge === "rda" ? { direction: add(elementsBytes) } : {};
    const { lateVersions } = synchronization;
    if (lateVersions === 0) return { bytes, rule, accumulator, ...direction };
    const first = bytes.length + 1;
    for (let i = 0; i < lateVersions; i++) add(count * DTYPES[dtype].bytes);
    return { bytes, rule, accumulator, ...direction, earlier: { first, count: lateVersions } };
  }
  return {
    bytes,
    rule,
    ...countsOf(),
    ...(isFloat && synchronization.mode === "sync"
      ? { accumulator: add(elementsBytes), ...(config.sparse ? { touched: add(rows) } : {}) }
      : {}),
  };
}

/** Counts the slots of a plan that outlive a step: those of the optimizer's rule and the rows' update counts. */
export function keptSlots({ rule, counts }: SlotPlan): number {
  return counts ?? rule;
}

/** Counts the bytes of the values and all slots of a block. */
export function heldBytes(owner: SlotOwner, plan: SlotPlan): number {
  const valueBytes = owner.count * DTYPES[owner.dtype].bytes;
  return plan.bytes.reduce((sum, bytes) => sum + bytes, valueBytes);
}

/**
 * Returns how many versions a block had gone on since the values from which a gradient was computed that it has just
 * taken; `seen` is the version of these values.
 */
export function versionsSince(
  { plan, version }: Pick<BlockActor, "plan" | "version">,
  seen: number,
): number {
  // A gradient that waits for its step to close has not raised the version.
  const isWaiting = plan.accumulator !== undefined;
  return Math.max(0, (isWaiting ? version : version - 1) - seen);
}
