import { packValue, sealMessage } from "../../protocol/codec.js";
import { checkTakesGradients } from "../../protocol/config/index.js";
import { bytesOf, DTYPES, dtypeOf, ENCODINGS, encodedBytes, infiniteFrom, isEncoding, } from "../../protocol/dtypes.js";
import { encodeElements, normAsEncoded, staysFinite } from "../../protocol/encoding/encoding.js";
import { PserverError } from "../../protocol/errors.js";
import { blockPlaces } from "../../protocol/layout.js";
import { blockRows, packedIndexBytes, partCounts, partIndexBytes, writePackedIndex, writePartIndex, } from "../../protocol/messages/parts.js";
import { draftRecord, } from "../../protocol/messages/records.js";
import { quoteName } from "../../protocol/names.js";
import { distinct, isAscending, sumByPlace, } from "../../protocol/row-lists/row-lists.js";
import { l2Norm, sameShape, toTensor, } from "../../protocol/tensor.js";
import { gatherPart, normalizeList, planRows, slicePart, } from "../part-plan.js";
/**
 * Returns the given tensor if it fits the parameter; a bare typed array of as many elements takes the
 * parameter's shape. The data is not copied.
 * @throws BAD_DTYPE, BAD_SHAPE or BAD_LENGTH if it does not fit.
 */
export function fitTensor(info, given) {
    const { dtype, shape, layout } = info;
    return { dtype, shape, data: fitData(info, given, shape, layout.elements) };
}
/**
 * Returns the given elements if they fit some elements of a parameter; of a bare typed array only the
 * length counts.
 * @param shape expected of a tensor; a dimension may be 0.
 * @throws BAD_DTYPE, BAD_SHAPE or BAD_LENGTH if they do not fit.
 */
export function fitData({ name, dtype }, given, shape, elements) {
    const tensor = named(name, () => (elements === 0 ? toEmpty(given) : toTensor(given)));
    if (tensor.dtype !== dtype) {
        throw new PserverError("BAD_DTYPE", `${quoteName(name)}: expected ${dtype}; received ${tensor.dtype}`, { parameter: name, expected: dtype, received: tensor.dtype });
    }
    const isBare = ArrayBuffer.isView(given);
    const fits = tensor.data.length === elements && (isBare || sameShape(tensor.shape, shape));
    if (!fits) {
        const received = isBare ? `${tensor.data.length} elements` : `[${tensor.shape}]`;
        throw new PserverError("BAD_SHAPE", `${quoteName(name)}: expected shape [${shape}]; received ${received}`, { parameter: name, expected: shape, received: tensor.shape });
    }
    return tensor.data;
}
/**
 * Checks that elements are finite, also when encoded, unless the parameter allows others.
 * @throws NON_FINITE naming the first that is not; what {@link checkEncoding} throws.
 */
export function checkFiniteElements(parameter, data, encoding) {
    checkEncoding(parameter, encoding);
    if (parameter.config.allowNonFinite || allFinite(data, encoding))
        return;
    throw nonFinite(parameter.name, data, encoding);
}
/**
 * Checks a gradient as {@link checkFiniteElements} does and returns its L2 norm, as encoded, if the
 * parameter clips by it: every block update carries the norm of the whole gradient.
 * @throws as {@link checkFiniteElements}.
 */
export function checkedNorm(parameter, data, encoding) {
    if (parameter.config.clipNorm === undefined) {
        checkFiniteElements(parameter, data, encoding);
        return undefined;
    }
    checkEncoding(parameter, encoding);
    const norm = encoding !== undefined && data instanceof Float32Array
        ? normAsEncoded(encoding, data)
        : l2Norm(data);
    // A norm is finite exactly if all elements are, so one pass finds both.
    if (!Number.isFinite(norm))
        checkFiniteElements(parameter, data, encoding);
    return norm;
}
function allFinite(data, encoding) {
    if (data instanceof Float32Array)
        return staysFinite(data, encoding);
    if (!(data instanceof Float64Array))
        return true;
    for (let i = 0; i < data.length; i++)
        if (!Number.isFinite(data[i]))
            return false;
    return true;
}
function nonFinite(parameter, data, encoding) {
    const bound = infiniteFrom(encoding);
    const index = data.findIndex((value) => !(Math.abs(Number(value)) < bound));
    const received = data[index];
    const form = Number.isFinite(received) ? `, an infinity as ${encoding},` : "";
    return new PserverError("NON_FINITE", `${quoteName(parameter)}: expected finite values; received ${received}${form} as element ${index}. Declare it with allowNonFinite to take them`, { parameter, expected: "finite values", received: String(received), index });
}
/**
 * Checks that the elements of a parameter can be encoded; undefined stands for no encoding.
 * @throws BAD_VALUE for an unknown one, UNSUPPORTED for one of another type than float32.
 */
export function checkEncoding({ name, dtype }, encoding) {
    if (encoding !== undefined && !isEncoding(encoding)) {
        const expected = Object.keys(ENCODINGS);
        throw new PserverError("BAD_VALUE", `encoding: expected ${expected.join(" or ")}; received ${String(encoding)}`, { expected, received: String(encoding) });
    }
    named(name, () => encodedBytes(dtype, encoding, 1));
}
/** Runs a check and adds the parameter to its error. */
export function named(parameter, check) {
    try {
        return check();
    }
    catch (error) {
        if (!(error instanceof PserverError))
            throw error;
        throw new PserverError(error.code, `${quoteName(parameter)}: ${error.message}`, { ...error.details, parameter }, { cause: error });
    }
}
/** Returns a tensor without elements, which `toTensor` does not accept. */
function toEmpty(given) {
    if (ArrayBuffer.isView(given)) {
        return { dtype: dtypeOf(given), shape: [given.length], data: given };
    }
    return { dtype: dtypeOf(given?.data), shape: [...(given.shape ?? [])], data: given.data };
}
/** Makes updates that initialize every block of a parameter. */
export function initUpdates(sender, info, tensor) {
    const { epoch, dtype, shape, config } = info;
    const toRecord = (header, { place }) => {
        const { start, count } = place;
        return { verb: "init", ...header, epoch, dtype, shape, start, count, config };
    };
    return wholeBlocks({ sender, info, verb: "init", toRecord }, tensor.data);
}
/** Makes updates that overwrite every block of a parameter. */
export function setUpdates(sender, info, tensor) {
    const { epoch, dtype } = info;
    const toRecord = (header) => ({
        verb: "set",
        ...header,
        epoch,
        dtype,
    });
    return wholeBlocks({ sender, info, verb: "set", toRecord }, tensor.data);
}
/** Makes updates that change every block of a parameter. */
export function pushUpdates(sender, info, data, push) {
    return wholeBlocks(pushSource(sender, info, push), data);
}
/** Makes updates that change parts of blocks with the elements that `data` has for them. */
export function partUpdates(sender, info, slices, data, push) {
    const source = pushSource(sender, info, push);
    return slices.map((slice) => {
        const { index, elements, part } = slice;
        const values = () => gatherPart(slice, data);
        return new TensorUpdate(source, { place: part.place, index, elements, values });
    });
}
function pushSource(sender, info, push) {
    const { epoch, dtype } = info;
    const { norm, encoding, operation, namesVersion } = push;
    // Written field by field: spreading the header would take as long as everything else here.
    const toRecord = (header, { place, index }, isNamed) => ({
        verb: "push",
        session: header.session,
        n: header.n,
        done: header.done,
        reply: header.reply,
        epoch,
        dtype,
        norm,
        encoding,
        operation: operation(place.index, isNamed),
        part: index && partCounts(index),
    });
    return { sender, info, verb: "push", encoding, toRecord, ...(namesVersion && { namesVersion }) };
}
function wholeBlocks(source, data) {
    return blockPlaces(source.info.layout).map((place) => {
        const { start, count } = place;
        const values = () => data.subarray(start, start + count);
        return new TensorUpdate(source, { place, elements: count, values });
    });
}
/** Most bytes of a group in the header of a batch, besides the parameter's name. */
const GROUP_BYTES_MAX = 160;
class TensorUpdate {
    shard;
    parameter;
    index;
    blocks = 1;
    dataBytes;
    entryBytes;
    #source;
    #load;
    constructor(source, load) {
        const { info, encoding } = source;
        const { place, index, elements } = load;
        this.#source = source;
        this.#load = load;
        this.shard = place.shard;
        this.parameter = info.name;
        this.index = place.index;
        const elementBytes = encodedBytes(info.dtype, encoding, elements);
        const counts = index && partCounts(index);
        this.dataBytes = elementBytes + (counts ? partIndexBytes(counts) : 0);
        this.entryBytes = elementBytes + (counts ? packedIndexBytes(counts, this.#rows()) : 0);
    }
    get subject() {
        const { sender, verb } = this.#source;
        return sender.subjects.log(this.shard, sender.trainer, verb, this.parameter, this.index);
    }
    get topic() {
        return { kind: "blocks", blocks: [this] };
    }
    get entry() {
        return this;
    }
    get isFloat() {
        return DTYPES[this.#source.info.dtype].float;
    }
    get groupBytesMax() {
        const { verb, info } = this.#source;
        const { shape, config } = info;
        const declared = verb === "init" ? packValue({ shape, config }).length : 0;
        // A character takes up to three bytes.
        return GROUP_BYTES_MAX + declared + 3 * this.parameter.length;
    }
    /** Read when the update is sent, because the answer depends on its step, which is not known before. */
    get namesVersion() {
        return this.#source.namesVersion?.(this.index) ?? false;
    }
    record(header, namesVersion) {
        return this.#source.toRecord(header, this.#load, namesVersion);
    }
    draft(header, namesVersion, allocate) {
        const { index } = this.#load;
        const draft = draftRecord(this.record(header, namesVersion), this.dataBytes, allocate);
        const indexBytes = index === undefined ? 0 : writePartIndex(draft.data, index);
        this.#writeElements(draft.data.subarray(indexBytes));
        return sealMessage(draft);
    }
    writeEntry(target) {
        const { index } = this.#load;
        const indexBytes = index === undefined ? 0 : writePackedIndex(target, index, this.#rows());
        this.#writeElements(target.subarray(indexBytes));
    }
    #writeElements(target) {
        const { encoding } = this.#source;
        const values = this.#load.values();
        if (encoding === undefined)
            target.set(bytesOf(values));
        else if (values instanceof Float32Array)
            encodeElements(encoding, values, target);
    }
    /** Returns how its block is divided into rows. */
    #rows() {
        const { start, count } = this.#load.place;
        return blockRows({ shape: this.#source.info.shape, start, count });
    }
}
/**
 * Sorts rows, and adds up those that are named repeatedly, in the order given and in the element type
 * (integers wrap around). The data is not copied if there is nothing to do.
 * @param rows normalized; `values` has `rowElements` elements for each.
 */
export function sumRows(rows, values, rowElements) {
    if (isAscending(rows))
        return { rows, values };
    const sums = distinct(rows);
    const placed = { values, rowElements, places: sums.places, sums: sums.values.length };
    return { rows: sums.values, values: sumByPlace(placed) };
}
/**
 * Makes the updates of one gradient of a parameter; none if no row is named.
 * @throws UNSUPPORTED, NO_LEARNING_RATE, BAD_DTYPE, BAD_SHAPE, BAD_INDEX or NON_FINITE for what does
 * not fit.
 */
export function gradientUpdates(info, given, mode) {
    const { name, dtype, config } = info;
    checkTakesGradients(dtype, config, name);
    const hasRate = mode.learningRate !== undefined || config.learningRate !== undefined;
    if (!hasRate && config.optimizer.name !== "none")
        throw noRate(name);
    if (isRowGradient(given))
        return rowUpdates(info, given, mode);
    const tensor = fitTensor(info, given);
    const norm = checkedNorm(info, tensor.data, mode.encoding);
    return pushUpdates(mode, info, tensor.data, toPush(info, norm, mode));
}
function rowUpdates(info, given, mode) {
    const { name, shape, config, layout } = info;
    if (!config.sparse)
        throw notSparse(name);
    const [size, ...rowShape] = shape;
    if (size === undefined)
        throw noRows(name);
    const named = normalizeList(name, size, given.rows, 0);
    const rowElements = layout.elements / size;
    const elements = named.length * rowElements;
    const data = fitData(info, given.values, [named.length, ...rowShape], elements);
    if (elements === 0)
        return [];
    const { rows, values } = sumRows(named, data, rowElements);
    const norm = checkedNorm(info, values, mode.encoding);
    // The layout of a sparse parameter leaves room for the row numbers of a whole block.
    const slices = planRows(info, rows).flatMap((part) => slicePart(part, 0, Number.POSITIVE_INFINITY));
    return partUpdates(mode, info, slices, values, toPush(info, norm, mode));
}
function toPush(info, norm, mode) {
    const { learningRate: lr, encoding, step: currentStep } = mode;
    const seenBefore = versionsSeen(info, mode.seen);
    return {
        ...(norm === undefined ? {} : { norm }),
        ...(encoding === undefined ? {} : { encoding }),
        // All gradients of one step are made from the same version, so they name none.
        namesVersion: (block) => currentStep() === undefined && seenBefore.has(block),
        operation: (block, namesVersion) => {
            const step = currentStep();
            const version = namesVersion ? seenBefore.get(block) : undefined;
            return {
                op: "grad",
                ...(lr === undefined ? {} : { lr }),
                ...(step === undefined ? (version === undefined ? {} : { seen: version }) : { step }),
            };
        },
    };
}
/** Returns the versions of a parameter's blocks that were read last. */
function versionsSeen(info, seen) {
    const versions = new Map();
    for (let block = 0; block < info.layout.blocks; block++) {
        const version = seen.get(info, block);
        if (version !== undefined)
            versions.set(block, version);
    }
    return versions;
}
function isRowGradient(given) {
    return (!ArrayBuffer.isView(given) && typeof given === "object" && given !== null && "rows" in given);
}
function noRate(parameter) {
    return new PserverError("NO_LEARNING_RATE", `${quoteName(parameter)}: expected a learningRate in its config or in the call; received neither`, { parameter });
}
function noRows(parameter) {
    const expected = "a parameter with rows";
    return new PserverError("BAD_INDEX", `${quoteName(parameter)}: rows: expected ${expected}; received a scalar`, { parameter, expected, received: "a scalar" });
}
function notSparse(parameter) {
    return new PserverError("UNSUPPORTED", `${quoteName(parameter)}: gradients of some rows are for parameters with sparse: true in their config`, { parameter, expected: "sparse: true", received: "sparse: false" });
}
/** Lists what a call was given for each name. @throws EMPTY if it was given nothing. */
export function entriesOf(given, what) {
    const entries = given instanceof Map ? [...given] : Object.entries(given);
    if (entries.length > 0)
        return entries;
    throw new PserverError("EMPTY", `${what}: expected at least one tensor; received none`);
}
//# sourceMappingURL=block-updates.js.map