import { DTYPES, ENCODINGS } from "../../protocol/dtypes.js";
import { BATCH_ENTRIES_MAX } from "../../protocol/limits.js";
import { parseBatch } from "../../protocol/messages/batch-records.js";
import { blockRows, partCounts, readPackedIndex, readPartIndex, } from "../../protocol/messages/parts.js";
import { parseClock, parseNote, parseTrainerRecord, } from "../../protocol/messages/records.js";
import { readable } from "../fold/journal-record.js";
import { measure } from "../fold/statistics.js";
/**
 * Describes a record that was just folded: as one event, or as one for each entry of a batch. Must be called by the
 * shard's observer, because it measures elements that lie in the record. A rejected batch whose entries cannot be
 * read is one event of the verb `batch`.
 */
export function describeRecord(folded, shard, place) {
    const { seq, timeMs } = folded;
    const at = { timeMs, shard: place.shard, generation: place.generation, seq };
    if (folded.kind === "trainer")
        return describeTrainers(folded, shard, at);
    if (folded.kind === "host") {
        const { verb } = folded.record;
        return [{ ...at, ...WHOLE, verb, outcome: { kind: "applied" } }];
    }
    const { subject, payloadBytes: bytes } = folded;
    const trainer = subject === undefined || subject.by === "host" ? undefined : subject.trainer;
    return [{ ...at, ...WHOLE, verb: "unreadable", outcome: { kind: "unreadable" }, trainer, bytes }];
}
/** Limit of the characters of an error's text in an event. */
const ERROR_LENGTH_MAX = 200;
/**
 * Returns the event of a record whose description has failed with `error`: its place, sender and outcome. Must be
 * called by the shard's observer.
 */
export function undescribed(folded, place, error) {
    const { seq, timeMs } = folded;
    const event = {
        ...{ timeMs, shard: place.shard, generation: place.generation, seq, ...WHOLE },
        undescribed: `${error.code}: ${error.message}`.slice(0, ERROR_LENGTH_MAX).toWellFormed(),
    };
    if (folded.kind === "host") {
        return { ...event, verb: folded.record.verb, outcome: { kind: "applied" } };
    }
    const { subject } = folded;
    const trainer = subject === undefined || subject.by === "host" ? undefined : subject.trainer;
    if (folded.kind === "unreadable") {
        const outcome = { kind: "unreadable" };
        return { ...event, verb: "unreadable", outcome, trainer, bytes: folded.payloadBytes };
    }
    const { session, n } = folded.header;
    const verb = folded.subject.by === "trainer" ? folded.subject.verb : folded.subject.by;
    const bytes = folded.message.data.length;
    return { ...event, verb, outcome: outcomeOf(folded), trainer, session, n, bytes };
}
const WHOLE = { entry: 0, entries: 1 };
function describeTrainers(folded, shard, at) {
    const { subject, header, message, changes } = folded;
    const { session, n } = header;
    const { timeMs, shard: number, generation, seq } = at;
    const outcome = outcomeOf(folded);
    const { trainer } = subject;
    const sender = { timeMs, shard: number, generation, seq, outcome, trainer, session, n };
    if (changes.length > 0)
        return describeChanges(changes, sender, shard);
    if (subject.by === "clock") {
        const step = readable(() => parseClock(message.fields))?.step;
        return [{ ...sender, ...WHOLE, verb: "clock", step }];
    }
    if (subject.by === "note") {
        const note = readable(() => parseNote(message.fields))?.note;
        return [{ ...sender, ...WHOLE, verb: "note", note }];
    }
    const entries = readable(() => entriesOf(subject, header, message)) ?? [];
    if (entries.length === 0) {
        const verb = subject.by === "batch" ? "batch" : subject.verb;
        return [{ ...sender, ...WHOLE, verb, bytes: message.data.length }];
    }
    const readIndex = subject.by === "batch" ? readPackedIndex : readPartIndex;
    return entries.map((given, entry) => ({
        ...sender,
        entry,
        entries: entries.length,
        verb: given.record.verb,
        step: stepOf(given.record),
        block: unappliedChange(given, shard, readIndex),
    }));
}
function describeChanges(changes, { timeMs, shard: number, generation, seq, outcome, trainer, session, n }, { memory }) {
    const entries = changes.length;
    return changes.map((change, entry) => ({
        timeMs,
        shard: number,
        generation,
        seq,
        entry,
        entries,
        verb: verbOf(change),
        outcome,
        trainer,
        session,
        n,
        step: change.kind === "gradient" ? change.operation.step : undefined,
        block: blockChange(change, memory),
    }));
}
function outcomeOf({ outcome, isRepeat }) {
    const { code, message = "", seq } = outcome;
    if (isRepeat)
        return { kind: "repeated", seq: code === "SETTLED" ? 0 : seq };
    return code === undefined ? { kind: "applied" } : { kind: "rejected", code, message };
}
function verbOf({ kind }) {
    return kind === "init" || kind === "set" ? kind : "push";
}
function stepOf(record) {
    return record.verb === "push" && record.operation.op === "grad"
        ? record.operation.step
        : undefined;
}
/**
 * Returns what a change did to its block. Makes objects of one shape, without object spread, which is slow in V8:
 * this runs for every update that a host folds.
 */
function blockChange(change, memory) {
    if (change.kind === "init") {
        const { name, record, data } = change;
        const payload = { dtype: record.dtype, bytes: data };
        const statistics = change.statistics ?? measure(memory, payload);
        return describeBlock(name.parameter, name.index, { op: "init" }, payload, statistics, 1);
    }
    const { block, statistics: known } = change;
    const { parameter, index, dtype, version } = block;
    if (change.kind === "set") {
        const payload = { dtype, bytes: change.data };
        const statistics = known ?? measure(memory, payload);
        return describeBlock(parameter, index, { op: "set" }, payload, statistics, version);
    }
    const { payload, part, operation } = change;
    // A gradient that waits for its step to close has not raised the version.
    const waits = change.kind === "gradient" && block.plan.accumulator !== undefined;
    return describeBlock(parameter, index, operationOf(operation), payload, known ?? measure(memory, payload), version, part && partCounts(part), behindOf(operation, waits ? version : version - 1));
}
function describeBlock(parameter, index, operation, { dtype, encoding, bytes }, statistics, version, part, behind) {
    return {
        parameter,
        index,
        operation,
        dtype,
        encoding,
        part,
        elements: Math.floor(bytes.length / wireBytes(dtype, encoding)),
        bytes: bytes.length,
        statistics,
        version,
        behind,
    };
}
/**
 * Returns the bytes of an element in a record, even in one that is rejected because its type has no such encoding.
 */
function wireBytes(dtype, encoding) {
    return encoding === undefined ? DTYPES[dtype].bytes : ENCODINGS[encoding].bytes;
}
function operationOf(operation) {
    if (operation.op === "grad")
        return { op: "grad", lr: operation.lr };
    const { op, alpha, beta } = operation;
    return { op, alpha, beta };
}
function behindOf(operation, version) {
    if (operation.op === "mix" || operation.seen === undefined || version === undefined)
        return undefined;
    return Math.max(0, version - operation.seen);
}
/** Reads the entries that a record would have applied. @throws BAD_MESSAGE and the like if it is malformed. */
function entriesOf(subject, header, message) {
    if (subject.by === "batch")
        return parseBatch(header, message, BATCH_ENTRIES_MAX);
    const { parameter, index, verb } = subject;
    const record = parseTrainerRecord(verb, header, message);
    return [{ parameter, index, record, data: message.data }];
}
/** Describes an entry that changed nothing. */
function unappliedChange({ parameter, index, record, data }, shard, readIndex) {
    const block = shard.block(parameter, index);
    const version = block?.version;
    const { dtype } = record;
    if (record.verb !== "push") {
        const payload = { dtype, bytes: data };
        const statistics = measure(shard.memory, payload);
        return describeBlock(parameter, index, { op: record.verb }, payload, statistics, version);
    }
    const { encoding, part } = record;
    const operation = operationOf(record.operation);
    const behind = behindOf(record.operation, version);
    const elements = part === undefined ? data : readable(() => elementsOf(block, part, data, readIndex));
    const isMeasurable = elements !== undefined &&
        (encoding === undefined || dtype === "float32") &&
        elements.length % wireBytes(dtype, encoding) === 0;
    const payload = { dtype, encoding, bytes: elements ?? data };
    const statistics = isMeasurable ? measure(shard.memory, payload) : undefined;
    return describeBlock(parameter, index, operation, payload, statistics, version, part, behind);
}
/** Counts the elements of a part of a block; undefined if there is no such block. @throws BAD_LENGTH, BAD_INDEX */
function elementsOf(block, part, data, readIndex) {
    return block && readIndex(part, data, blockRows(block)).elements;
}
/**
 * Folds the next record and describes it, as far as it can be described. `place` is the shard and the generation of
 * its journal. Replaces the shard's observer during the call.
 * @throws as `Shard.apply`.
 */
export function foldDescribed(shard, record, place) {
    let events = [];
    const before = shard.observer;
    shard.observer = {
        observe: (folded) => {
            events = describeRecord(folded, shard, place);
        },
        failed: (folded, error) => {
            events = [undescribed(folded, place, error)];
        },
    };
    try {
        const settled = shard.apply(record);
        return { events, settled };
    }
    finally {
        shard.observer = before;
    }
}
//# sourceMappingURL=describe-record.js.map