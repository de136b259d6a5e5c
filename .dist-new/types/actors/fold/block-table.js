import { BlockActor } from "./block-actor.js";
/** The blocks of a shard by parameter and index, and by number, and the sum of their bytes. */
export class BlockTable {
    hooks;
    #memory;
    #parameters = new Map();
    #numbers = new Map();
    /** Numbers of element types with configurations, by what they are. */
    #kinds = new Map();
    #marks = 0;
    #count = 0;
    #bytes = 0;
    constructor(memory, hooks) {
        this.#memory = memory;
        this.hooks = hooks;
    }
    /** Number of blocks. */
    get count() {
        return this.#count;
    }
    /** Bytes of all values and slots. */
    get bytes() {
        return this.#bytes;
    }
    get(parameter, index) {
        return this.#parameters.get(parameter)?.get(index);
    }
    /** The block that has this number now. */
    ofNumber(number) {
        return this.#numbers.get(number);
    }
    /** Returns a mark that no block has. */
    nextMark() {
        this.#marks += 1;
        return this.#marks;
    }
    /** The blocks of one parameter, in no particular order. */
    of(parameter) {
        return this.#parameters.get(parameter)?.values() ?? [];
    }
    *all() {
        for (const blocks of this.#parameters.values())
            yield* blocks.values();
    }
    /** All blocks by name, in order of UTF-16 code units, then by index: the order in saved states. */
    sorted() {
        return [...this.all()].sort((a, b) => {
            if (a.parameter === b.parameter)
                return a.index - b.index;
            return a.parameter < b.parameter ? -1 : 1;
        });
    }
    /**
     * Creates a block, in place of an existing one; `fill` must write its values.
     * @throws TOO_LARGE if the memory is full; the shard is unusable afterwards.
     */
    put(header, plan, fill) {
        const { parameter, index } = header;
        const previous = this.get(parameter, index);
        // The former block is freed first, so that a shard near its limit can be initialized again.
        if (previous !== undefined)
            this.#remove(previous);
        const block = new BlockActor(this.#memory, header, plan, this.#kindOf(header));
        fill(block);
        const blocks = this.#parameters.get(parameter) ?? new Map();
        this.#parameters.set(parameter, blocks.set(index, block));
        this.#numbers.set(block.number, block);
        this.#count += 1;
        this.#bytes += block.heldBytes;
        this.hooks.blockAdded?.(block);
        return block;
    }
    /** Must be called before the values or slots of a block are changed in place. */
    beforeChange(block) {
        this.hooks.beforeChange?.(block);
    }
    /** Removes the blocks of a parameter whose epoch is at most `epoch`. */
    drop(parameter, epoch) {
        for (const block of [...(this.#parameters.get(parameter)?.values() ?? [])]) {
            if (block.epoch <= epoch)
                this.#remove(block);
        }
    }
    #kindOf({ dtype, config }) {
        const key = JSON.stringify([dtype, config]);
        const kind = this.#kinds.get(key) ?? this.#kinds.size;
        this.#kinds.set(key, kind);
        return kind;
    }
    #remove(block) {
        this.hooks.beforeChange?.(block);
        const blocks = this.#parameters.get(block.parameter);
        blocks?.delete(block.index);
        if (blocks?.size === 0)
            this.#parameters.delete(block.parameter);
        this.#numbers.delete(block.number);
        this.#count -= 1;
        this.#bytes -= block.heldBytes;
        block.free();
        this.hooks.blockRemoved?.(block);
    }
}
//# sourceMappingURL=block-table.js.map