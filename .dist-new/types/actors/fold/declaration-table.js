import { isDeepStrictEqual } from "node:util";
import { PserverError } from "../../protocol/errors.js";
import { blockPlace } from "../../protocol/layout.js";
import { quoteName } from "../../protocol/names.js";
import { sameShape } from "../../protocol/tensor.js";
import { blockLabel } from "./block-actor.js";
/** Parameters that hosts have declared to a shard: what their blocks are and who may create them. */
export class DeclarationTable {
    #shard;
    #declared = new Map();
    /** The parameters by the numbers of those of their blocks that lie on this shard. */
    #numbers = new Map();
    constructor(shard) {
        this.#shard = shard;
    }
    /** Number of declared parameters. */
    get count() {
        return this.#declared.size;
    }
    /** All entries by name, in order of UTF-16 code units. */
    sorted() {
        return [...this.#declared.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
    }
    /** The first `count` entries after this name, in the order of {@link sorted}. */
    after(name, count) {
        return this.sorted()
            .filter((declared) => declared.name > name)
            .slice(0, count);
    }
    /** Returns the block that was declared under a number of this shard; undefined for any other number. */
    ofNumber(number) {
        const name = this.#numbers.get(number);
        const declared = name === undefined ? undefined : this.#declared.get(name);
        return declared && { declared, index: number - declared.firstNumber };
    }
    /**
     * Adds parameters, or replaces those declared under a lower epoch. Ignores new names beyond `declaredMax`, and a
     * parameter whose numbers another one has.
     */
    take({ trainer, parameters }, declaredMax) {
        for (const parameter of parameters) {
            const existing = this.#declared.get(parameter.name);
            if (existing !== undefined && parameter.epoch <= existing.epoch)
                continue;
            if (existing === undefined && this.#declared.size >= declaredMax)
                continue;
            if (!this.#hasFreeNumbers(parameter))
                continue;
            if (existing !== undefined)
                this.#forgetNumbers(existing);
            this.#add({ ...parameter, trainer });
        }
    }
    /** Notes that a parameter is initialized under this epoch; ignores one that is not declared under it. */
    initialized(parameter, epoch) {
        const existing = this.#declared.get(parameter);
        if (existing?.epoch !== epoch)
            return;
        this.#declared.set(parameter, { ...existing, initialized: true });
    }
    /** Forgets what hosts have told of initializations. */
    forgetInitialized() {
        for (const [name, { initialized: _initialized, ...declared }] of this.#declared) {
            this.#declared.set(name, declared);
        }
    }
    /** Removes a parameter unless it was declared under a higher epoch than `epoch`. */
    drop(parameter, epoch) {
        const existing = this.#declared.get(parameter);
        if (existing === undefined || existing.epoch > epoch)
            return;
        this.#forgetNumbers(existing);
        this.#declared.delete(parameter);
    }
    /** Restores a saved parameter. @throws SNAPSHOT_DAMAGED if there is one of its name or numbers already. */
    restore(declared) {
        const { name } = declared;
        if (this.#declared.has(name) || !this.#hasFreeNumbers(declared)) {
            throw new PserverError("SNAPSHOT_DAMAGED", `${quoteName(name)}: expected one declaration`);
        }
        this.#add(declared);
    }
    #add(declared) {
        this.#declared.set(declared.name, declared);
        for (const number of this.#numbersOf(declared))
            this.#numbers.set(number, declared.name);
    }
    #forgetNumbers(declared) {
        for (const number of this.#numbersOf(declared))
            this.#numbers.delete(number);
    }
    #hasFreeNumbers(declared) {
        for (const number of this.#numbersOf(declared)) {
            const name = this.#numbers.get(number);
            if (name !== undefined && name !== declared.name)
                return false;
        }
        return true;
    }
    /** The numbers of those blocks of a parameter that lie on this shard. */
    *#numbersOf({ firstNumber, layout }) {
        const { blocks, firstShard, shards } = layout;
        const first = (this.#shard - firstShard + shards) % shards;
        for (let index = first; index < blocks; index += shards)
            yield firstNumber + index;
    }
    /**
     * Passes if an `init` creates its block as declared; returns the declaration.
     * @throws UNKNOWN_PARAMETER, STALE_EPOCH, NOT_SELECTED, BAD_DTYPE, BAD_SHAPE, BAD_VALUE or BAD_CONFIG
     */
    check(trainer, { parameter, index }, record) {
        const label = blockLabel(parameter, index);
        const declared = this.#declared.get(parameter);
        if (declared === undefined) {
            throw new PserverError("UNKNOWN_PARAMETER", `${label}: expected a parameter that has been declared`);
        }
        const { epoch, dtype, shape, config } = declared;
        if (record.epoch !== epoch) {
            throw new PserverError("STALE_EPOCH", `${label}: expected epoch ${epoch}; received ${record.epoch}`);
        }
        if (trainer !== declared.trainer) {
            throw new PserverError("NOT_SELECTED", `${label}: expected trainer ${quoteName(declared.trainer)}; received ${quoteName(trainer)}`);
        }
        if (record.dtype !== dtype) {
            throw new PserverError("BAD_DTYPE", `${label}: expected ${dtype}; received ${record.dtype}`);
        }
        if (!sameShape(record.shape, shape)) {
            throw new PserverError("BAD_SHAPE", `${label}: expected [${shape}]; received [${record.shape}]`);
        }
        this.#checkPlace(declared, index, record, label);
        if (!isDeepStrictEqual(record.config, config)) {
            throw new PserverError("BAD_CONFIG", `${label}: expected the configuration that was declared`);
        }
        return declared;
    }
    #checkPlace({ layout }, index, record, label) {
        const expected = blockPlace(layout, index);
        const { start, count } = record;
        if (expected.shard === this.#shard && expected.start === start && expected.count === count) {
            return;
        }
        throw new PserverError("BAD_VALUE", `${label}: expected ${expected.count} elements from ${expected.start} on, in shard ` +
            `${expected.shard}; received ${count} from ${start} on, in shard ${this.#shard}`);
    }
}
//# sourceMappingURL=declaration-table.js.map