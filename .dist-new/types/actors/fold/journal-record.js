import { decodeSealed, isSealed, readCrc } from "../../protocol/codec.js";
import { PserverError } from "../../protocol/errors.js";
import { BATCH_ENTRIES_MAX, BATCH_HEAD_BYTES_MAX } from "../../protocol/limits.js";
import { parseBatch } from "../../protocol/messages/batch-records.js";
import { parseRecordHeader } from "../../protocol/messages/records.js";
import { subjectCrcOf } from "./journal-checksum.js";
/**
 * Limit of a record without its tensor bytes. It also limits how deeply a header is nested: a deeper one could be
 * read on a thread with a large stack and fail on another.
 */
const RECORD_HEADER_BYTES_MAX = 1536;
/** Reads the checksum in a record's envelope, which identifies the record; 0 if no shard can read the record. */
export function recordCrc(payload) {
    // The limit of a batch holds for every record here. One that its shard could not read is never compared by
    // checksum.
    return readRecordMessage(payload) === undefined ? 0 : readCrc(payload);
}
/**
 * Reads the message in a record; undefined if it is unreadable: damaged, malformed, or with more than
 * `headerBytesMax` bytes before its tensor bytes, by default the most that a record of any kind may have.
 */
export function readRecordMessage(payload, headerBytesMax = BATCH_HEAD_BYTES_MAX) {
    if (!isSealed(payload))
        return undefined;
    const message = readable(() => decodeSealed(payload, headerBytesMax));
    if (message === undefined)
        return undefined;
    const headerBytes = payload.length - message.data.length;
    return headerBytes <= headerBytesMax ? message : undefined;
}
/** Reads the header of a trainer's record; undefined if the record is unreadable or not a trainer's. */
export function readRecordHeader(payload) {
    const message = readRecordMessage(payload);
    return message && readable(() => parseRecordHeader(message.fields));
}
/** Reads a batch; undefined if the record is unreadable or no batch. */
export function readBatch(payload) {
    const message = readRecordMessage(payload);
    return message && readable(() => parseBatch(message, BATCH_ENTRIES_MAX));
}
/** Returns the result of `read`; undefined if it throws a `PserverError`. */
export function readable(read) {
    try {
        return read();
    }
    catch (error) {
        if (error instanceof PserverError)
            return undefined;
        throw error;
    }
}
/**
 * Reads the record's message; undefined if it is unreadable under the rules in force.
 * @throws BAD_CHECKSUM, only with `reread: false`, if the payload does not match its checksum.
 */
export function readMessage(record, subject, rules, shard) {
    const { seq, payload, reread } = record;
    const message = readRecordMessage(payload, headerBytesMaxOf(subject, rules));
    if (message !== undefined || reread !== false)
        return message;
    // The checksum matches, so the record is stored like this.
    if (isSealed(payload))
        return undefined;
    throw new PserverError("BAD_CHECKSUM", `record ${seq} of shard ${shard}: ${payload.length} bytes do not match their checksum`, { shard, seq });
}
/** Returns the most bytes that a record on this subject may have before its tensor bytes. */
function headerBytesMaxOf(subject, rules) {
    if (rules !== undefined && subject?.by === "batch")
        return rules.batchHeaderBytesMax;
    if (rules !== undefined && subject?.by === "note")
        return rules.noteBytesMax;
    return RECORD_HEADER_BYTES_MAX;
}
/** Limit of cached subjects: enough for each block of a shard and each trainer, except in large jobs. */
const KNOWN_MAX = 2_048;
/** Parses journal subjects, with a cache, because the same few subjects repeat. */
export class LogSubjects {
    #subjects;
    #known = new Map();
    constructor(subjects) {
        this.#subjects = subjects;
    }
    /** Parses a subject. */
    read(subject) {
        const cached = this.#known.get(subject);
        if (cached !== undefined)
            return cached;
        const parsed = readable(() => this.#subjects.parseLog(subject));
        const read = { parsed, crc: subjectCrcOf(subject) };
        if (parsed === undefined)
            return read;
        if (this.#known.size >= KNOWN_MAX)
            this.#known.clear();
        this.#known.set(subject, read);
        return read;
    }
}
//# sourceMappingURL=journal-record.js.map