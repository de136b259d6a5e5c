import { sealMessage } from "../../protocol/codec.js";
import { checkFinite, checkLearningRate } from "../../protocol/config/index.js";
import { encodedBytes } from "../../protocol/dtypes.js";
import { ensureError, PserverError, reactionTo } from "../../protocol/errors.js";
import { BATCH_BYTES, BATCH_ENTRIES_MAX, BATCH_ENTRY_BYTES_MAX, BATCH_HEAD_BYTES_MAX, HEADER_BYTES_MAX, } from "../../protocol/limits.js";
import { draftBatch, paddedBytes } from "../../protocol/messages/batch-records.js";
import { checkNote, encodeNote, NOTE_BYTES_MAX, NOTE_SHARD, } from "../../protocol/messages/records.js";
import { quoteName } from "../../protocol/names.js";
import { planPart, slicePart } from "../part-plan.js";
import { checkFiniteElements, entriesOf, fitData, fitTensor, gradientUpdates, partUpdates, pushUpdates, setUpdates, } from "./block-updates.js";
/** Updates of several blocks of one shard that go in one record. */
class BatchUpdate {
    subject;
    shard;
    topic;
    blocks;
    dataBytes;
    #entries;
    /** Joins entries; `subject` is that of the sender's batches in the shard. */
    constructor(subject, shard, entries) {
        this.subject = subject;
        this.shard = shard;
        this.#entries = entries;
        this.topic = { kind: "blocks", blocks: entries };
        this.blocks = entries.length;
        this.dataBytes = entries.reduce((sum, { entryBytes }) => sum + paddedBytes(entryBytes), 0);
    }
    get namesVersion() {
        return this.#entries.some(({ namesVersion }) => namesVersion);
    }
    draft(header, namesVersion, allocate) {
        const items = this.#entries.map((entry) => {
            const { parameter, index, entryBytes: dataBytes } = entry;
            const record = entry.record(header, namesVersion && entry.namesVersion);
            return { parameter, index, record, dataBytes };
        });
        const draft = draftBatch(header, items, allocate);
        let at = 0;
        for (const entry of this.#entries) {
            const { entryBytes } = entry;
            entry.writeEntry(draft.data.subarray(at, at + entryBytes));
            at += paddedBytes(entryBytes);
        }
        return sealMessage(draft);
    }
}
/** Most bytes of those entries of a header that all records have. */
const RECORD_HEADER_BYTES_MAX = 1024;
/**
 * Most bytes of a block in the header of a batch: its row, and the version that its gradient was made from.
 */
const ROW_BYTES_MAX = 34;
/** Joins the updates of one call as {@link fillBatches} does. */
export function inBatches(updates, deps) {
    const { session, subjects, trainer, payloadBytesMax } = deps;
    return fillBatches(updates, {
        subject: (shard) => subjects.batch(shard, trainer),
        payloadBytesMax: payloadBytesMax(),
        separatesIntegers: session.synchronization.mode === "sync",
    });
}
/**
 * Joins the small updates of one call, those of each shard into as few records as the limits of batches
 * admit. A large update keeps its own record, as does a small one without another. Within a shard the small
 * ones stay in order, and so do the large ones.
 */
export function fillBatches(updates, options) {
    const records = [];
    const open = new Map();
    for (const update of updates) {
        const { entry } = update;
        if (entry === undefined || entry.entryBytes >= BATCH_ENTRY_BYTES_MAX) {
            records.push(update);
            continue;
        }
        const key = 2 * update.shard + (options.separatesIntegers && !entry.isFloat ? 1 : 0);
        const batch = open.get(key);
        if (batch === undefined || !add(batch, entry, options)) {
            if (batch !== undefined)
                close(batch, records, options);
            open.set(key, begin(update, entry, records.length));
            records.push(update);
        }
    }
    for (const batch of open.values())
        close(batch, records, options);
    return records;
}
function begin(first, entry, place) {
    const headerBytes = RECORD_HEADER_BYTES_MAX + entry.groupBytesMax + ROW_BYTES_MAX;
    return { place, first, entries: [entry], dataBytes: paddedBytes(entry.entryBytes), headerBytes };
}
/**
 * Adds an entry if the limits admit it and its block comes after the earlier ones of its parameter; returns
 * whether it did.
 */
function add(batch, entry, { payloadBytesMax }) {
    const last = batch.entries.at(-1);
    const isSameGroup = last?.parameter === entry.parameter;
    if (isSameGroup && entry.index <= last.index)
        return false;
    const headerBytes = batch.headerBytes + ROW_BYTES_MAX + (isSameGroup ? 0 : entry.groupBytesMax);
    const dataBytes = batch.dataBytes + paddedBytes(entry.entryBytes);
    const fits = batch.entries.length < BATCH_ENTRIES_MAX &&
        dataBytes <= BATCH_BYTES &&
        headerBytes <= BATCH_HEAD_BYTES_MAX &&
        headerBytes + dataBytes <= payloadBytesMax;
    if (!fits)
        return false;
    batch.entries.push(entry);
    batch.dataBytes = dataBytes;
    batch.headerBytes = headerBytes;
    return true;
}
/** Puts the batch in the place of its first update. */
function close(batch, records, { subject }) {
    const { place, first, entries } = batch;
    if (entries.length === 1)
        return;
    records[place] = new BatchUpdate(subject(first.shard), first.shard, entries);
}
/** Changes of initialized parameters. All tensors of a call are checked before any is sent. */
export class Updates {
    #options;
    constructor(options) {
        this.#options = options;
    }
    /** Applies a gradient to each parameter; see `Client.sendGrads`. */
    async sendGrads(grads, deadline, options) {
        const { learningRate, encoding, endStep = true } = options;
        if (learningRate !== undefined)
            checkLearningRate(learningRate);
        const { subjects, trainer, seen, steps, sender } = this.#options;
        let step;
        const mode = { subjects, trainer, learningRate, encoding, seen, step: () => step };
        return this.#update(entriesOf(grads, deadline.what), deadline, (info, given) => gradientUpdates(info, given, mode), (sources) => {
            const shards = sources.map(({ shard }) => shard);
            return steps.gradients({ shards, endStep }, deadline, (place) => {
                step = place.step;
                const { countsLate } = place;
                return sender.send(sources, { deadline, stored: options.ack === "stored", countsLate });
            });
        });
    }
    /** Computes value = alpha · value + beta · tensor; see `Client.pushFull`. */
    async pushFull(name, given, mix, deadline, mode) {
        const push = mixPush(mix, mode.encoding);
        await this.#send([[name, given]], deadline, mode, (info, value) => {
            const { data } = fitTensor(info, value);
            checkFiniteElements(info, data, mode.encoding);
            return pushUpdates(this.#options, info, data, push);
        });
    }
    /** Does the same as {@link pushFull} for some elements; see `Client.pushAsPart`. */
    async pushAsPart(part, mix, deadline, mode) {
        const { encoding } = mode;
        const push = mixPush(mix, encoding);
        const { name, tensor, indices } = part;
        await this.#send([[name, tensor]], deadline, mode, (info, given) => {
            const { shape, elements, blocks } = planPart(info, indices);
            const data = fitData(info, given, shape, elements);
            checkFiniteElements(info, data, encoding);
            const bytesMax = this.#options.payloadBytesMax() - HEADER_BYTES_MAX;
            const elementBytes = encodedBytes(info.dtype, encoding, 1);
            const slices = blocks.flatMap((block) => slicePart(block, elementBytes, bytesMax));
            return partUpdates(this.#options, info, slices, data, push);
        });
    }
    /** Overwrites parameters; see `Client.setParams`. */
    async setParams(tensors, deadline, mode) {
        await this.#send(entriesOf(tensors, deadline.what), deadline, mode, (info, given) => {
            const tensor = fitTensor(info, given);
            checkFiniteElements(info, tensor.data);
            return setUpdates(this.#options, info, tensor);
        });
    }
    /** Writes a remark into the journal; see `Client.note`. The entries are copied. */
    async note(entries, deadline, ack) {
        const { sender, subjects, trainer } = this.#options;
        const note = checkNote({ ...entries });
        const source = {
            subject: subjects.note(NOTE_SHARD, trainer),
            shard: NOTE_SHARD,
            topic: { kind: "note" },
            blocks: 1,
            dataBytes: NOTE_BYTES_MAX,
            namesVersion: false,
            draft: (header) => encodeNote({ verb: "note", ...header, note }),
        };
        await sender.send([source], { deadline, stored: ack === "stored" });
    }
    #send(entries, deadline, { ack }, toUpdates) {
        const options = { deadline, stored: ack === "stored" };
        return this.#update(entries, deadline, toUpdates, (sources) => this.#options.sender.send(sources, options));
    }
    async #update(entries, deadline, toUpdates, send) {
        const { parameters } = this.#options;
        const names = entries.map(([name]) => name);
        const infos = await parameters.require(names, deadline);
        try {
            const sources = [];
            infos.forEach((info, i) => {
                const [, given] = entries[i];
                if (info.config.static)
                    throw isStatic(info.name);
                for (const source of toUpdates(info, given))
                    sources.push(source);
            });
            return await send(inBatches(sources, this.#options));
        }
        catch (caught) {
            const error = ensureError(caught);
            // The parameter was initialized again after it was looked up: the next call looks it up again.
            if (reactionTo(error.code) === "look-up")
                for (const name of names)
                    parameters.forget(name);
            throw error;
        }
    }
}
function mixPush(mix, encoding) {
    const alpha = checkFinite(mix.alpha, "alpha");
    const beta = checkFinite(mix.beta, "beta");
    return {
        ...(encoding === undefined ? {} : { encoding }),
        operation: () => ({ op: "mix", alpha, beta }),
    };
}
function isStatic(parameter) {
    return new PserverError("STATIC", `${quoteName(parameter)} keeps its first values: its config says static`, { parameter });
}
//# sourceMappingURL=updates.js.map