import { checkFinite, checkLearningRate } from "../../protocol/config/index.js";
import { encodedBytes, isGrouped } from "../../protocol/dtypes.js";
import { ensureError, PserverError, reactionTo } from "../../protocol/errors.js";
import { HEADER_BYTES_MAX } from "../../protocol/limits.js";
import { checkNote, encodeNote, NOTE_BYTES_MAX, NOTE_SHARD, } from "../../protocol/messages/records.js";
import { quoteName } from "../../protocol/names.js";
import { planPart, slicePart } from "../part-plan.js";
import { addGradient, addTensor, checkFiniteElements, entriesOf, fitData, fitTensor, } from "./block-updates.js";
import { UpdateCollector } from "./update-collector.js";
/** Returns a collector for the updates of one call; `isSingle`: each has a record of its own. */
export function collectorFor({ session, subjects, trainer, payloadBytesMax }, kind, isSingle = false) {
    return new UpdateCollector(kind, {
        sender: { subjects, trainer },
        payloadBytesMax: payloadBytesMax(),
        separatesIntegers: session.synchronization.mode === "sync",
        isSingle,
    });
}
/** Changes of initialized parameters. All tensors of a call are checked before any is sent. */
export class Updates {
    #options;
    constructor(options) {
        this.#options = options;
    }
    /** Applies a gradient to each parameter; see `Client.sendGrads`. */
    async sendGrads(grads, deadline, options) {
        const { learningRate, encoding, errorFeedback = true, endStep = true } = options;
        if (learningRate !== undefined)
            checkLearningRate(learningRate);
        const { seen, steps, sender } = this.#options;
        let step;
        const operation = { op: "grad", lr: learningRate };
        const errors = errorFeedback && isGrouped(encoding) ? this.#options.errors : undefined;
        const kind = { verb: "push", encoding, errors, operation, step: () => step };
        const mode = { learningRate, encoding, errors, seen };
        return this.#update({ entries: entriesOf(grads, deadline.what), deadline, kind }, (collector, info, given) => addGradient(collector, info, given, mode), (sources) => {
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
        const kind = mixKind(mix, mode.encoding);
        const call = { entries: { names: [name], values: [given] }, deadline, kind };
        await this.#send(call, mode, (collector, info, value) => {
            const { data } = fitTensor(info, value);
            checkFiniteElements(info, data, mode.encoding);
            addTensor(collector, info, data);
        });
    }
    /** Does the same as {@link pushFull} for some elements; see `Client.pushAsPart`. */
    async pushAsPart(part, mix, deadline, mode) {
        const { encoding } = mode;
        const { name, tensor, indices } = part;
        const entries = { names: [name], values: [tensor] };
        const call = { entries, deadline, kind: mixKind(mix, encoding) };
        await this.#send(call, mode, (collector, info, given) => {
            const { shape, elements, blocks } = planPart(info, indices);
            const data = fitData(info, given, shape, elements);
            checkFiniteElements(info, data, encoding);
            const bytesMax = this.#options.payloadBytesMax() - HEADER_BYTES_MAX;
            const elementBytes = encodedBytes(info.dtype, encoding, 1);
            for (const block of blocks) {
                for (const slice of slicePart(block, elementBytes, bytesMax)) {
                    collector.addSlice(info, slice, data);
                }
            }
        });
    }
    /** Overwrites parameters; see `Client.setParams`. */
    async setParams(tensors, deadline, mode) {
        const call = { entries: entriesOf(tensors, deadline.what), deadline, kind: SET };
        await this.#send(call, mode, (collector, info, given) => {
            const { data } = fitTensor(info, given);
            checkFiniteElements(info, data);
            addTensor(collector, info, data);
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
    #send(call, { ack }, add) {
        const options = { deadline: call.deadline, stored: ack === "stored" };
        return this.#update(call, add, (sources) => this.#options.sender.send(sources, options));
    }
    async #update({ entries, deadline, kind }, add, send) {
        const { parameters } = this.#options;
        const { names, values } = entries;
        const infos = await parameters.require(names, deadline);
        try {
            const collector = collectorFor(this.#options, kind);
            infos.forEach((info, i) => {
                if (info.config.static)
                    throw isStatic(info.name);
                add(collector, info, values[i]);
            });
            return await send(collector.finish());
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
const SET = { verb: "set" };
function mixKind(mix, encoding) {
    const alpha = checkFinite(mix.alpha, "alpha");
    const beta = checkFinite(mix.beta, "beta");
    return { verb: "push", encoding, operation: { op: "mix", alpha, beta } };
}
function isStatic(parameter) {
    return new PserverError("STATIC", `${quoteName(parameter)} keeps its first values: its config says static`, { parameter });
}
//# sourceMappingURL=updates.js.map