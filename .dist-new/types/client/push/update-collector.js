import { sealMessage } from "../../protocol/codec.js";
import { DTYPES, encodedBytes, isGrouped, viewData, } from "../../protocol/dtypes.js";
import { encodeGroups } from "../../protocol/encoding/grouped.js";
import { blockPlace } from "../../protocol/layout.js";
import { BATCH_BYTES, BATCH_ENTRIES_MAX, BATCH_ENTRY_BYTES_MAX, BATCH_HEAD_BYTES_MAX, } from "../../protocol/limits.js";
import { draftBatch } from "../../protocol/messages/batch-records.js";
import { joinNumbers } from "../../protocol/messages/columns.js";
import { gatherPart } from "../part-plan.js";
import { slicePlace } from "./rounding-errors.js";
import { hasFloats, operationOf, TensorUpdate, writeElements, } from "./tensor-update.js";
/** The entries of one run of a batch, in columns. */
class RunColumns {
    dtype;
    form;
    infos = [];
    numbers = [];
    counts = [];
    data = [];
    /** Of whole blocks: their first element in `data`. */
    starts = [];
    /** What an entry has of `data`; absent for all elements of the block from its start on. */
    slices = [];
    norms = [];
    seen = [];
    elements = 0;
    hasNorms = false;
    hasSeen = false;
    constructor(dtype, form) {
        this.dtype = dtype;
        this.form = form;
    }
    /** Adds an entry; the caller adds where its elements are. */
    add(info, index, count, data, norm, seen) {
        this.infos.push(info);
        this.numbers.push(info.firstNumber + index);
        this.counts.push(count);
        this.data.push(data);
        this.norms.push(norm ?? 0);
        this.seen.push(seen);
        this.elements += count;
        this.hasNorms ||= norm !== undefined;
        this.hasSeen ||= seen > 0;
    }
    /** The parts of the entries, as a message has them. */
    parts() {
        if (this.form === "whole")
            return undefined;
        const rows = this.slices.map(({ index }) => index?.rows ?? NO_NUMBERS);
        const columns = { rows: lengthsOf(rows), rowList: joinNumbers(rows) };
        if (this.form === "rows")
            return { ...columns, inner: undefined, innerList: undefined };
        const inner = this.slices.map(({ index }) => index?.inner ?? NO_NUMBERS);
        return { ...columns, inner: lengthsOf(inner), innerList: joinNumbers(inner) };
    }
    /** Copies the elements of all entries, one after the other, into an array of their type. */
    gather(into) {
        let at = 0;
        for (let i = 0; i < this.numbers.length; i++) {
            const own = this.#elementsOf(i);
            // All are of the type of the run.
            into.set(own, at);
            at += own.length;
        }
    }
    /** Returns where the elements of all entries lie in their parameters. */
    places() {
        return this.infos.map((info, i) => {
            const elements = this.counts[i];
            const slice = this.slices[i];
            if (slice !== undefined)
                return slicePlace(info, slice);
            const start = this.starts[i];
            return { info, start, count: elements, rows: undefined, elements };
        });
    }
    #elementsOf(i) {
        const data = this.data[i];
        const slice = this.slices[i];
        if (slice !== undefined)
            return gatherPart(slice, data);
        const start = this.starts[i];
        const count = this.counts[i];
        return start === 0 && count === data.length ? data : data.subarray(start, start + count);
    }
}
const NO_NUMBERS = new Uint32Array(0);
function lengthsOf(lists) {
    return Uint32Array.from(lists, (list) => list.length);
}
/** Memory in which the elements of a run are put together before they are written; used within one call. */
let staging = new ArrayBuffer(BATCH_BYTES);
function stagingFor(dtype, elements) {
    const bytes = elements * DTYPES[dtype].bytes;
    if (bytes > staging.byteLength)
        staging = new ArrayBuffer(bytes);
    return viewData(dtype, staging, elements);
}
/** Updates of several blocks of one shard that go in one record. */
class BatchUpdate {
    subject;
    shard;
    blocks;
    dataBytes;
    #kind;
    #runs;
    /** What the runs had in the first message, if they were encoded with their errors: these count once. */
    #encoded = [];
    /** `subject` is that of the sender's batches in the shard. */
    constructor(subject, kind, batch) {
        this.subject = subject;
        this.shard = batch.shard;
        this.blocks = batch.entries;
        this.dataBytes = batch.valueBytes + batch.entries * COLUMN_BYTES;
        this.#kind = kind;
        this.#runs = batch.runs;
    }
    get topic() {
        const blocks = this.#runs.flatMap(({ infos, numbers }) => infos.map(({ name, firstNumber }, i) => {
            return { parameter: name, index: numbers[i] - firstNumber };
        }));
        return { kind: "blocks", blocks };
    }
    get namesVersion() {
        return this.#kind.step?.() === undefined && this.#runs.some(({ hasSeen }) => hasSeen);
    }
    draft(header, namesVersion, allocate) {
        const { verb, encoding } = this.#kind;
        const operation = operationOf(this.#kind, 0);
        const runs = this.#runs.map((run) => {
            const { dtype, numbers, counts, norms, seen, hasNorms, hasSeen } = run;
            return {
                ...{ verb, dtype, encoding, operation },
                numbers: Uint32Array.from(numbers),
                counts: Uint32Array.from(counts),
                parts: run.parts(),
                norms: hasNorms ? Float64Array.from(norms) : undefined,
                seen: namesVersion && hasSeen ? Float64Array.from(seen) : undefined,
            };
        });
        const { draft, values, scales } = draftBatch(header, runs, allocate);
        for (let i = 0; i < runs.length; i++) {
            this.#write(i, { scales: scales[i], codes: values[i] });
        }
        return sealMessage(draft);
    }
    /** Writes the values of a run, and the scales that a grouped encoding has. */
    #write(place, to) {
        const { encoding, errors } = this.#kind;
        const run = this.#runs[place];
        const before = this.#encoded[place];
        if (before !== undefined) {
            to.scales.set(before.scales);
            to.codes.set(before.codes);
            return;
        }
        const elements = stagingFor(run.dtype, run.elements);
        run.gather(elements);
        if (!isGrouped(encoding) || !(elements instanceof Float32Array)) {
            writeElements(encoding, elements, to.codes);
        }
        else if (errors === undefined) {
            encodeGroups(encoding, run.counts, elements, to);
        }
        else {
            errors.encode(encoding, run.places(), elements, to);
            this.#encoded[place] = { scales: to.scales.slice(), codes: to.codes.slice() };
        }
    }
}
/** Most bytes of an entry in the columns of a batch: its number and count, norm, version, and lengths of lists. */
const COLUMN_BYTES = 32;
/**
 * Collects the updates of one call. The small ones of each shard go into as few records as the limits of batches
 * admit; a large update has a record of its own, as does a small one without another. Within a shard the small ones of
 * one element type stay in order, and so do the large ones.
 */
export class UpdateCollector {
    #kind;
    #options;
    #records = [];
    #open = new Map();
    constructor(kind, options) {
        this.#kind = kind;
        this.#options = options;
    }
    /** Adds an update of a whole block with the elements of the parameter, of which `data` has all. */
    addBlock(info, index, data, norm, seen = 0) {
        const { layout } = info;
        const start = index * layout.blockElements;
        const count = Math.min(layout.blockElements, layout.elements - start);
        const bytes = encodedBytes(info.dtype, this.#kind.encoding, count);
        const shard = (layout.firstShard + index) % layout.shards;
        const run = this.#runFor(info, shard, "whole", index, bytes);
        if (run === undefined) {
            const place = blockPlace(layout, index);
            this.#addSingle({ info, place, data, norm, seen });
        }
        else {
            run.starts[run.numbers.length] = start;
            run.add(info, index, count, data, norm, seen);
        }
    }
    /** Adds an update of a part of a block, or of all of it, with the elements that `data` has for it. */
    addSlice(info, slice, data, norm, seen = 0) {
        const { place } = slice.part;
        const { index, elements } = slice;
        const lists = (index?.rows.length ?? 0) + (index?.inner?.length ?? 0);
        const bytes = encodedBytes(info.dtype, this.#kind.encoding, elements) + lists * UINT32_BYTES;
        const form = formOf(slice);
        const run = this.#runFor(info, place.shard, form, place.index, bytes);
        if (run === undefined) {
            this.#addSingle({ info, place, data, slice, norm, seen });
        }
        else {
            run.slices[run.numbers.length] = slice;
            run.add(info, place.index, elements, data, norm, seen);
        }
    }
    /** Returns the records, in the order of their first updates. */
    finish() {
        return this.#records.map((record) => {
            if (!("runs" in record))
                return record;
            if (record.entries === 1)
                return this.#single(record.runs[0]);
            const { subjects, trainer } = this.#options.sender;
            return new BatchUpdate(subjects.batch(record.shard, trainer), this.#kind, record);
        });
    }
    #addSingle(elements) {
        this.#records.push(new TensorUpdate(this.#options.sender, this.#kind, elements));
    }
    /** Makes the record of the only entry of a run. */
    #single({ infos, numbers, data, slices, norms, hasNorms, seen }) {
        const info = infos[0];
        return new TensorUpdate(this.#options.sender, this.#kind, {
            info,
            place: blockPlace(info.layout, numbers[0] - info.firstNumber),
            data: data[0],
            slice: slices[0],
            norm: hasNorms ? norms[0] : undefined,
            seen: seen[0],
        });
    }
    /** Returns the run that takes an update of so many bytes; undefined if it has a record of its own. */
    #runFor(info, shard, form, index, bytes) {
        const { isSingle = false, separatesIntegers } = this.#options;
        if (isSingle || bytes >= BATCH_ENTRY_BYTES_MAX)
            return undefined;
        const key = 2 * shard + (separatesIntegers && !hasFloats(info) ? 1 : 0);
        let batch = this.#open.get(key);
        if (batch === undefined || !this.#admits(batch, info.firstNumber + index, bytes)) {
            batch = { shard, place: this.#records.length, runs: [], entries: 0, valueBytes: 0 };
            this.#open.set(key, batch);
            this.#records.push(batch);
        }
        batch.entries += 1;
        batch.valueBytes += bytes;
        const { dtype } = info;
        const last = batch.runs.find((run) => run.dtype === dtype && run.form === form);
        if (last !== undefined)
            return last;
        const run = new RunColumns(dtype, form);
        batch.runs.push(run);
        return run;
    }
    #admits({ entries, valueBytes, runs }, number, bytes) {
        const all = valueBytes + bytes;
        if (entries === BATCH_ENTRIES_MAX || all > BATCH_BYTES)
            return false;
        const messageBytes = BATCH_HEAD_BYTES_MAX + (entries + 1) * COLUMN_BYTES + all;
        if (messageBytes > this.#options.payloadBytesMax)
            return false;
        // Several slices of one block follow each other.
        return !runs.some((run) => run.numbers.at(-1) === number);
    }
}
const UINT32_BYTES = 4;
function formOf({ index }) {
    if (index === undefined)
        return "whole";
    return index.inner === undefined ? "rows" : "elements";
}
//# sourceMappingURL=update-collector.js.map