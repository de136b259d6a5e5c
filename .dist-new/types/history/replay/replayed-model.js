import { blockDigest, stateDigest } from "../../actors/fold/shard.js";
import { DTYPES } from "../../protocol/dtypes.js";
import { elementCount, PserverError, quoteName, } from "../../protocol/index.js";
import { tensorView, zeros } from "../../protocol/tensor.js";
import { foldRecords } from "./replay-shard.js";
/** A replayed shard of this thread. */
export class LocalReplayedShard {
    shard;
    #generation;
    #state;
    #history;
    #signal;
    /** `state`: the shard; `generation`: that of its journal; `history`: where its records are read. */
    constructor(state, generation, history, signal) {
        this.shard = history.shard;
        this.#generation = generation;
        this.#state = state;
        this.#history = history;
        this.#signal = signal;
    }
    get position() {
        return { generation: this.#generation, seq: this.#state.seq };
    }
    async advance(to) {
        if (to.generation !== this.#generation)
            throw replaced(this.shard, this.position, to);
        await foldRecords(this.#state, this.#history, to, { signal: this.#signal });
    }
    get blocks() {
        return this.#state.saveState().blocks;
    }
    async known() {
        const { more: _more, ...known } = this.#state.known("", Number.POSITIVE_INFINITY);
        return known;
    }
    async digest() {
        return this.#state.digest();
    }
    async stateDigest() {
        return stateDigest(this.#state);
    }
    async blockDigest(parameter, index) {
        const block = this.#state.block(parameter, index);
        return block && blockDigest(block);
    }
    async slot(parameter, index, slot) {
        const block = this.#state.block(parameter, index);
        if (block !== undefined)
            return block.slotBytes(slot).slice();
        throw new PserverError("UNKNOWN_PARAMETER", `shard ${this.shard} has no block ${index} of ${quoteName(parameter)}`, { parameter });
    }
    async free() {
        // Its memory goes with the last reference to it.
    }
}
/** Makes the error for a position of another generation than the shard's. */
function replaced(shard, from, to) {
    return new PserverError("JOURNAL_REPLACED", `shard ${shard}: its journal of generation ${from.generation} was replaced by generation ${to.generation}`, { shard, expected: from, received: to });
}
/** The model of a job as it was at a cut: the blocks of its shards joined to parameters. */
export class ReplayedModel {
    shards;
    #parameters;
    constructor(shards) {
        this.shards = shards;
        this.#parameters = joinBlocks(shards);
    }
    /** All parameters, by name, including those that were being initialized. */
    get parameters() {
        return [...this.#parameters.values()];
    }
    /** Returns a parameter. @throws UNKNOWN_PARAMETER, or NOT_INITIALIZED if only some of its blocks were. */
    parameter(name) {
        const parameter = this.#parameters.get(name);
        if (parameter === undefined) {
            const message = `no parameter ${quoteName(name)} existed at that point`;
            throw new PserverError("UNKNOWN_PARAMETER", message, { parameter: name });
        }
        if (parameter.isComplete)
            return parameter;
        const message = `${quoteName(name)} was being initialized at that point: some blocks are missing`;
        throw new PserverError("NOT_INITIALIZED", message, { parameter: name });
    }
    /** Returns the values of a parameter. @throws as {@link parameter}. */
    async tensor(name) {
        const parameter = this.parameter(name);
        const tensor = zeros(parameter.dtype, parameter.shape);
        const target = tensorView(tensor);
        let filled = 0;
        for await (const chunk of this.chunks(parameter)) {
            target.set(chunk, filled);
            filled += chunk.length;
        }
        return tensor;
    }
    /** Yields the bytes of a parameter's values, or of a slot of its optimizer, block by block, in C order. */
    async *chunks({ name, blocks }, slot = 0) {
        for (const { index, shard } of blocks)
            yield await shard.slot(name, index, slot);
    }
    /** Frees the memory of its shards. It must not be used afterwards. */
    async free() {
        await Promise.all(this.shards.map((shard) => shard.free()));
    }
}
/** Returns the bytes of a parameter's values. */
export function parameterBytes({ dtype, shape }) {
    return elementCount(shape) * DTYPES[dtype].bytes;
}
/** Groups the blocks of all shards into parameters, by name. */
function joinBlocks(shards) {
    const found = new Map();
    for (const shard of shards) {
        for (const header of shard.blocks) {
            const block = { ...header, shard };
            const known = found.get(header.parameter);
            if (known === undefined)
                found.set(header.parameter, [block]);
            else
                known.push(block);
        }
    }
    const names = [...found.keys()].sort();
    return new Map(names.map((name) => [name, toParameter(name, found.get(name) ?? [])]));
}
function toParameter(name, all) {
    const epoch = Math.max(...all.map((block) => block.epoch));
    // A block of an older epoch is about to be replaced or dropped.
    const blocks = all.filter((block) => block.epoch === epoch).sort((a, b) => a.index - b.index);
    const [first] = blocks;
    if (first === undefined)
        throw new PserverError("INTERNAL", `${quoteName(name)} has no block`);
    const { dtype, shape, config } = first;
    const elements = blocks.reduce((sum, { count }) => sum + count, 0);
    const isComplete = elements === elementCount(shape);
    return { name, dtype, shape, epoch, config, blocks, isComplete };
}
//# sourceMappingURL=replayed-model.js.map