import { DTYPES } from "../../protocol/dtypes.js";
import { PserverError } from "../../protocol/errors.js";
import { blockRows } from "../../protocol/messages/parts.js";
import { quoteName } from "../../protocol/names.js";
import { elementCount } from "../../protocol/tensor.js";
import { slotCount, updateRule } from "./update-rule.js";
/** Counts the bytes of the values of a block with this header. */
function blockBytes(header) {
    return header.count * DTYPES[header.dtype].bytes;
}
/** Returns the name of a block in messages. */
export function blockLabel(parameter, index) {
    return `${quoteName(parameter)} block ${index}`;
}
/**
 * Whether block `index` can have this place in some layout: every block but the last has the same number of elements,
 * in order, without a gap.
 */
export function isPlaced(index, place) {
    const { start, count } = place;
    const isLast = start + count === elementCount(place.shape);
    if (index === 0)
        return start === 0;
    if (start === 0 || start % index !== 0)
        return false;
    const blockElements = start / index;
    return count === blockElements || (isLast && count < blockElements);
}
/** Implements a block in ranges of its shard's memory. Only {@link applyChange} and the end of a step change it. */
export class BlockActor {
    /** Name of the block in messages; kept, because every check of a record may need it. */
    label;
    parameter;
    index;
    number;
    epoch;
    dtype;
    shape;
    start;
    count;
    config;
    bytes;
    heldBytes;
    slots;
    plan;
    /** Division of its elements into rows. */
    rows;
    version;
    updates;
    /** Senders of the gradients in the open step, in the order of arrival. */
    contributors;
    /** Learning rate that these gradients name; undefined if they use the configuration's. */
    openRate;
    /** The check of a batch that has met the block last; no part of the state. */
    mark = 0;
    /** Equal for blocks of a shard with the same element type and configuration. */
    kind;
    #memory;
    #sizes;
    #pointers;
    #rule;
    /**
     * Allocates the values, with undefined contents, and the slots, filled with zeros. `kind`: as {@link kind}.
     * @throws TOO_LARGE if the memory is full.
     */
    constructor(memory, header, plan, kind) {
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
        for (let slot = 1; slot <= this.slots; slot++)
            this.slotBytes(slot).fill(0);
    }
    get pointer() {
        return this.slotPointer(0);
    }
    /**
     * Address of a slot in the shard's memory; slot 0 is the values.
     * @throws INTERNAL once the block is freed, BAD_VALUE if there is no such slot.
     */
    slotPointer(slot) {
        const pointer = this.#pointers?.[slot];
        if (pointer !== undefined)
            return pointer;
        const { label } = this;
        if (this.#pointers === undefined) {
            throw new PserverError("INTERNAL", `${label} of epoch ${this.epoch} is used after its removal`);
        }
        throw new PserverError("BAD_VALUE", `${label}: expected slot 0 to ${this.slots}; received ${slot}`, { expected: this.slots, received: slot });
    }
    get accumulated() {
        return this.contributors.size;
    }
    values() {
        return this.slotBytes(0);
    }
    slotBytes(slot) {
        return this.#memory.bytes(this.slotPointer(slot), this.#sizes[slot] ?? 0);
    }
    /** Returns the optimizer's rule for the block's elements, which must be floats. The first call creates it. */
    rule(dtype) {
        this.#rule ??= updateRule(this.#memory.kernels, this.config, dtype);
        return this.#rule;
    }
    /** Copies the header, with its entries in the order that snapshots have. */
    header() {
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
        if (this.contributors.size === 0)
            return header;
        const trainers = [...this.contributors];
        const { openRate } = this;
        const open = openRate === undefined ? { trainers } : { trainers, learningRate: openRate };
        return { ...header, open };
    }
    /** Frees the bytes; the block cannot be read afterwards. */
    free() {
        for (let slot = 0; slot <= this.slots; slot++) {
            this.#memory.free(this.slotPointer(slot), this.#sizes[slot] ?? 0);
        }
        this.#pointers = undefined;
    }
}
const COUNT_BYTES = 4;
/** Plans the slots of a block. A static parameter has none, because it is never updated. */
export function slotPlan(owner, synchronization) {
    const { dtype, config, count } = owner;
    if (config.static)
        return { bytes: [], rule: 0 };
    const { rows } = blockRows(owner);
    const valueBytes = count * DTYPES[dtype].bytes;
    const isFloat = DTYPES[dtype].float;
    const bytes = [];
    const add = (slotBytes) => bytes.push(slotBytes);
    const rule = isFloat ? slotCount(config) : 0;
    for (let slot = 0; slot < rule; slot++)
        add(valueBytes);
    return {
        bytes,
        rule,
        ...(config.sparse ? { counts: add(rows * COUNT_BYTES) } : {}),
        ...(isFloat && synchronization.mode === "sync"
            ? { accumulator: add(valueBytes), ...(config.sparse ? { touched: add(rows) } : {}) }
            : {}),
    };
}
/** Counts the bytes of the values and all slots of a block. */
export function heldBytes(owner, plan) {
    const valueBytes = owner.count * DTYPES[owner.dtype].bytes;
    return plan.bytes.reduce((sum, bytes) => sum + bytes, valueBytes);
}
//# sourceMappingURL=block-actor.js.map