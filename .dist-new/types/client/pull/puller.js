import { allocateData, bytesOf, dtypeOf, } from "../../protocol/dtypes.js";
import { PserverError } from "../../protocol/errors.js";
import { quoteName } from "../../protocol/names.js";
import { planPart, scatterPart } from "../part-plan.js";
import { checkEncoding } from "../push/block-updates.js";
/** Writes the elements of a part of a block to the places that its plan gives. */
function writePart(data, part, encoding, values, at) {
    const elements = part.messageRows * part.messageRowElements;
    if (part.tensorStart !== undefined) {
        values.write(data, part.tensorStart, elements, encoding, at);
        return;
    }
    const message = allocateData(dtypeOf(data), elements);
    values.write(message, 0, elements, encoding, at);
    scatterPart(part, message, data);
}
/** A {@link NamedTensor} as `getParams` returns it: it remembers what was read. */
export class PulledTensor {
    name;
    dtype;
    shape;
    data;
    version;
    #origin;
    /** Makes a tensor that refers to `data`, which the caller may go on changing. */
    constructor(tensor, origin) {
        this.name = tensor.name;
        this.dtype = tensor.dtype;
        this.shape = tensor.shape;
        this.data = tensor.data;
        let newest = 0;
        for (const { version } of origin.blocks)
            newest = Math.max(newest, version);
        this.version = newest;
        this.#origin = origin;
    }
    /** Returns what a tensor was read from; undefined if no client has read it. */
    static originOf(tensor) {
        return #origin in tensor ? tensor.#origin : undefined;
    }
}
/** A read of a whole parameter into one array; the blocks of a known tensor that have not changed stay. */
export class WholeRead {
    info;
    #origin;
    #encoding;
    #known;
    #states = [];
    /** Blocks that have not changed since the known tensor was read. */
    #kept = [];
    /** The array of the result; undefined while the known tensor can still be the result. */
    #data;
    /**
     * Plans a read. `into` receives the values; it has the parameter's type and length. `known` is an earlier
     * result whose array nobody has changed; it is used if it was read under the same epoch and encoding.
     */
    constructor(info, options) {
        const { encoding, into, known } = options;
        const origin = known === undefined ? undefined : PulledTensor.originOf(known);
        const isUsable = origin?.epoch === info.epoch && origin.encoding === encoding;
        this.info = info;
        this.#encoding = encoding;
        this.#known = isUsable ? known : undefined;
        this.#data = into;
        this.#origin = isUsable ? origin : undefined;
    }
    get entries() {
        return this.info.layout.blocks;
    }
    blockOf(entry) {
        return entry;
    }
    partOf() {
        return undefined;
    }
    elementsOf(entry) {
        const { elements, blockElements } = this.info.layout;
        return Math.min(blockElements, elements - entry * blockElements);
    }
    knownOf(entry) {
        return this.#origin?.blocks[entry];
    }
    take(entry, values, at, state) {
        this.#states[entry] = state;
        if (values === undefined) {
            this.#kept.push(entry);
            return;
        }
        this.#data ??= this.#allocate();
        const start = entry * this.info.layout.blockElements;
        values.write(this.#data, start, this.elementsOf(entry), this.#encoding, at);
    }
    /** Returns the result, once all blocks have come: the known tensor itself if nothing of it has changed. */
    result() {
        const { name, dtype, shape, epoch } = this.info;
        const known = this.#known;
        const data = this.#data ?? known?.data ?? this.#allocate();
        if (known !== undefined && known.data !== data) {
            for (const entry of this.#kept) {
                const start = entry * this.info.layout.blockElements;
                copyElements(known.data, data, start, this.elementsOf(entry));
            }
        }
        const isSame = this.#kept.length === this.entries && known?.data === data;
        if (isSame && known !== undefined)
            return known;
        const origin = { epoch, encoding: this.#encoding, blocks: this.#states };
        return new PulledTensor({ name, dtype, shape, data }, origin);
    }
    #allocate() {
        return allocateData(this.info.dtype, this.info.layout.elements);
    }
}
/** Copies elements between arrays of one type, at the same places. */
function copyElements(from, to, start, count) {
    bytesOf(to.subarray(start, start + count)).set(bytesOf(from.subarray(start, start + count)));
}
/** A read of some elements of a parameter. */
class PartRead {
    info;
    tensor;
    #parts;
    #encoding;
    /** @throws as `planPart`; BAD_DTYPE, BAD_LENGTH if the caller's array does not fit. */
    constructor(info, indices, { encoding, into }) {
        const { dtype } = info;
        const { shape, elements, blocks } = planPart(info, indices);
        if (into !== undefined)
            checkTarget(info, elements, into);
        const data = into ?? allocateData(dtype, elements);
        this.info = info;
        this.tensor = { dtype, shape, data };
        this.#parts = blocks;
        this.#encoding = encoding;
    }
    get entries() {
        return this.#parts.length;
    }
    blockOf(entry) {
        return this.#part(entry).place.index;
    }
    partOf(entry) {
        return this.#part(entry).index;
    }
    elementsOf(entry) {
        const { messageRows, messageRowElements } = this.#part(entry);
        return messageRows * messageRowElements;
    }
    knownOf() {
        return undefined;
    }
    take(entry, values, at) {
        // Values always come, because no state is known.
        if (values === undefined)
            return;
        writePart(this.tensor.data, this.#part(entry), this.#encoding, values, at);
    }
    #part(entry) {
        return this.#parts[entry];
    }
}
/**
 * Reads parameters block by block, straight into the arrays of the result: one copy, from the
 * socket's buffer to the array. That buffer cannot be the array: its bytes are not aligned. A
 * parameter of several blocks is not read at one moment.
 */
export class Puller {
    #parameters;
    #reader;
    constructor(parameters, reader) {
        this.#parameters = parameters;
        this.#reader = reader;
    }
    /**
     * Reads the values of parameters, in request order; waits until they are initialized. Each result has the
     * array of `into` with its name; without one, that of `known` if nothing has changed, else a new one.
     * @throws BAD_DTYPE or BAD_LENGTH for an array that does not fit, UNSUPPORTED for an encoding that
     * does not, before anything is read.
     */
    async pull(names, deadline, mode = {}) {
        const infos = await this.#parameters.waitFor(names, deadline);
        const { encoding, into, known = [] } = mode;
        const targets = infos.map((info) => targetOf(info, into));
        for (const info of infos)
            checkEncoding(info, encoding);
        const knownByName = new Map(known.map((tensor) => [tensor.name, tensor]));
        // Without an index the parameter was initialized again, and may need another array.
        const plan = (info, place) => new WholeRead(info, {
            encoding,
            into: place === undefined ? targetOf(info, into) : targets[place],
            known: knownByName.get(info.name),
        });
        const reads = await this.#readCurrent(infos, plan, mode, deadline);
        return reads.map((read) => read.result());
    }
    /** Reads some elements of a parameter; see `Client.pullPart`. */
    async pullPart(name, indices, deadline, mode = {}) {
        const infos = await this.#parameters.waitFor([name], deadline);
        for (const info of infos)
            checkEncoding(info, mode.encoding);
        const plan = (info) => new PartRead(info, indices, mode);
        const [read] = await this.#readCurrent(infos, plan, mode, deadline);
        if (read !== undefined)
            return read.tensor;
        throw new PserverError("INTERNAL", `${quoteName(name)} was not found`);
    }
    /**
     * Reads each parameter as `plan` says. A parameter that is initialized again during the read, perhaps with
     * another type, shape or layout, is planned and read again.
     */
    async #readCurrent(infos, plan, mode, deadline) {
        const reads = infos.map((info, place) => plan(info, place));
        let open = reads.map((_, place) => place);
        while (open.length > 0) {
            const pending = open.map((place) => reads[place]);
            const replaced = await this.#reader.readAll(pending, mode, deadline);
            const replacedPlaces = [];
            replaced.forEach((info, i) => {
                if (info === undefined)
                    return;
                const place = open[i];
                reads[place] = plan(info);
                replacedPlaces.push(place);
            });
            open = replacedPlaces;
        }
        return reads;
    }
}
/** Returns the caller's array for a parameter, if there is one. @throws BAD_DTYPE, BAD_LENGTH. */
function targetOf(info, into) {
    if (into === undefined || !Object.hasOwn(into, info.name))
        return undefined;
    const target = into[info.name];
    if (target !== undefined)
        checkTarget(info, info.layout.elements, target);
    return target;
}
/** Checks a caller's array. @throws BAD_DTYPE, BAD_LENGTH if it does not fit. */
function checkTarget({ name, dtype }, elements, target) {
    const received = dtypeOf(target);
    if (received !== dtype) {
        const details = { parameter: name, expected: dtype, received };
        throw new PserverError("BAD_DTYPE", `${quoteName(name)}: into: expected ${dtype}; received ${received}`, details);
    }
    if (target.length === elements)
        return;
    throw new PserverError("BAD_LENGTH", `${quoteName(name)}: into: expected ${elements} elements; received ${target.length}`, { parameter: name, expected: elements, received: target.length });
}
//# sourceMappingURL=puller.js.map