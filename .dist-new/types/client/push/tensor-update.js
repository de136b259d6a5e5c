import { sealMessage } from "../../protocol/codec.js";
import { bytesOf, DTYPES, encodedBytes, isGrouped, } from "../../protocol/dtypes.js";
import { encodeElements } from "../../protocol/encoding/encoding.js";
import { splitGroups } from "../../protocol/encoding/grouped.js";
import { partCounts, partIndexBytes, writePartIndex, } from "../../protocol/messages/parts.js";
import { draftRecord, } from "../../protocol/messages/records.js";
import { gatherPart } from "../part-plan.js";
/** Returns the operation of a push in its message; undefined for another verb. `seen`: 0 for none. */
export function operationOf({ operation, step }, seen) {
    if (operation?.op !== "grad")
        return operation;
    const { op, lr } = operation;
    const present = step?.();
    // All gradients of one step are made from the same version, so they name none.
    if (present !== undefined)
        return { op, lr, step: present };
    return seen === 0 ? { op, lr } : { op, lr, seen };
}
/** Returns the elements for a block, in the order of the message. */
function elementsFor({ place, data, slice }) {
    if (slice !== undefined)
        return gatherPart(slice, data);
    const { start, count } = place;
    return start === 0 && count === data.length ? data : data.subarray(start, start + count);
}
/** An update of one block that has a record of its own. */
export class TensorUpdate {
    shard;
    blocks = 1;
    dataBytes;
    #sender;
    #kind;
    #elements;
    /** What the first message had, if its elements were encoded with their errors: these count once. */
    #encoded;
    constructor(sender, kind, elements) {
        const { info, place, slice } = elements;
        this.#sender = sender;
        this.#kind = kind;
        this.#elements = elements;
        this.shard = place.shard;
        const bytes = encodedBytes(info.dtype, kind.encoding, slice?.elements ?? place.count);
        this.dataBytes =
            bytes + (this.#index === undefined ? 0 : partIndexBytes(partCounts(this.#index)));
    }
    get subject() {
        const { subjects, trainer } = this.#sender;
        const { info, place } = this.#elements;
        return subjects.log(this.shard, trainer, this.#kind.verb, info.name, place.index);
    }
    get topic() {
        const { info, place } = this.#elements;
        return { kind: "blocks", blocks: [{ parameter: info.name, index: place.index }] };
    }
    /** Read when the update is sent, because the answer depends on its step, which is not known before. */
    get namesVersion() {
        return this.#elements.seen > 0 && this.#kind.step?.() === undefined;
    }
    draft(header, namesVersion, allocate) {
        const index = this.#index;
        const draft = draftRecord(this.#record(header, namesVersion), this.dataBytes, allocate);
        const indexBytes = index === undefined ? 0 : writePartIndex(draft.data, index);
        this.#write(draft.data.subarray(indexBytes));
        return sealMessage(draft);
    }
    #write(target) {
        const { encoding, errors } = this.#kind;
        if (this.#encoded !== undefined) {
            target.set(this.#encoded);
            return;
        }
        const elements = elementsFor(this.#elements);
        if (errors === undefined || !isGrouped(encoding) || !(elements instanceof Float32Array)) {
            writeElements(encoding, elements, target);
            return;
        }
        const { info, place, slice } = this.#elements;
        const { start, count } = place;
        const own = { info, start, count, rows: slice?.index?.rows, elements: elements.length };
        errors.encode(encoding, [own], elements, splitGroups(elements.length, target));
        this.#encoded = target.slice();
    }
    get #index() {
        return this.#elements.slice?.index;
    }
    #record(header, namesVersion) {
        const { info, place, norm, seen } = this.#elements;
        const { epoch, dtype, shape, config } = info;
        const { session, n, done, reply } = header;
        const { verb, encoding } = this.#kind;
        if (verb === "set")
            return { verb, session, n, done, reply, epoch, dtype };
        if (verb === "init") {
            const { start, count } = place;
            return { verb, session, n, done, reply, epoch, dtype, shape, start, count, config };
        }
        const operation = operationOf(this.#kind, namesVersion ? seen : 0) ?? { op: "grad" };
        const part = this.#index && partCounts(this.#index);
        return { verb, session, n, done, reply, epoch, dtype, norm, encoding, operation, part };
    }
}
/** Writes the elements of one update to their place in a message, encoded if they are to be. */
export function writeElements(encoding, elements, target) {
    if (encoding === undefined)
        target.set(bytesOf(elements));
    else if (elements instanceof Float32Array)
        encodeElements(encoding, elements, target);
}
/** Whether elements of a parameter are floats. */
export function hasFloats({ dtype }) {
    return DTYPES[dtype].float;
}
//# sourceMappingURL=tensor-update.js.map