import { decodeMessage, draftMessage, sealMessage, } from "../codec.js";
import { PserverError } from "../errors.js";
import { flagField, integerField } from "../fields.js";
import { BATCH_ENTRIES_MAX, BATCH_HEAD_BYTES_MAX } from "../limits.js";
import { checkVersions } from "./batch-records.js";
import { ColumnReader, ColumnWriter, checkTotal, float64ColumnBytes, partColumnsBytes, partTotals, readPartColumns, uint32ColumnBytes, writePartColumns, } from "./columns.js";
import { throwIfError } from "./outcomes.js";
import { parsePartEntry } from "./parts.js";
import { parsePosition } from "./position.js";
import { parseReadTerms } from "./reads.js";
// A batched read asks the owner of a shard for many of its blocks, or parts of them, at once. Each block asked for is
// an *entry*; what is asked of all entries stands in columns. `ReadChunk` is a message of the reply.
/** Bytes of values that a batched read of several entries may ask for: as many as a client lets be under way. */
export const READ_BYTES_MAX = 16 * 1024 * 1024;
/** Writes a batched read as a message. */
export function encodeBatchRead(header, { numbers, parts, have }) {
    const { generation, seq, waitMs, step, encoding, from = 0 } = header;
    const totals = partTotals(parts);
    const part = totals && [totals.rows, ...(totals.inner === undefined ? [] : [totals.inner])];
    const entries = numbers.length;
    const fields = {
        ...{ generation, seq, waitMs, step, encoding },
        from: from === 0 ? undefined : from,
        ...{ entries, part, have: have === undefined ? undefined : true },
    };
    const draft = draftMessage(fields, requestBytes(entries, totals, have !== undefined));
    const writer = new ColumnWriter(draft.data);
    writer.put(numbers);
    writePartColumns(writer, parts);
    writer.put(have);
    return sealMessage(draft);
}
/**
 * Reads a batched read. Whether it fits the blocks is not checked here.
 * @throws BAD_MESSAGE, BAD_LENGTH, or BAD_VALUE, naming the entry that is at fault; EMPTY if it has none; TOO_LARGE if
 * it has more than a limit allows; as `decodeMessage` does.
 */
export function decodeBatchRead(bytes) {
    const { fields, data } = decodeMessage(bytes, BATCH_HEAD_BYTES_MAX);
    const terms = parseReadTerms(fields);
    const entries = integerField(fields, "entries");
    if (entries === 0) {
        throw new PserverError("EMPTY", "a batched read: expected at least one block; received none");
    }
    if (entries > BATCH_ENTRIES_MAX) {
        const details = { expected: BATCH_ENTRIES_MAX, received: entries };
        const text = `a batched read: expected at most ${BATCH_ENTRIES_MAX} blocks; received ${entries}`;
        throw new PserverError("TOO_LARGE", text, details);
    }
    const from = fields["from"] === undefined ? 0 : integerField(fields, "from", 0, entries - 1);
    const part = parsePartEntry(fields);
    const totals = part && { rows: part.rows, inner: part.inner };
    const hasVersions = flagField(fields, "have");
    const expected = requestBytes(entries, totals, hasVersions);
    if (data.length !== expected) {
        const text = `a batched read: expected ${expected} bytes of columns; received ${data.length}`;
        throw new PserverError("BAD_LENGTH", text, { expected, received: data.length });
    }
    const reader = new ColumnReader(data);
    const numbers = reader.uint32(entries);
    const parts = readPartColumns(reader, entries, totals);
    const have = hasVersions ? reader.float64(entries) : undefined;
    if (parts !== undefined && totals !== undefined) {
        checkTotal(parts.rows, totals.rows, "rows", { least: 0 });
        if (parts.inner !== undefined) {
            checkTotal(parts.inner, totals.inner ?? 0, "offsets in a row", { least: 0 });
        }
    }
    if (have !== undefined)
        checkVersions(have, "have", 0);
    return { ...terms, from, numbers, parts, have };
}
function requestBytes(entries, totals, have) {
    const versions = have ? float64ColumnBytes(entries) : 0;
    return uint32ColumnBytes(entries) + partColumnsBytes(entries, totals) + versions;
}
/** Begins a chunk with room for the values, a multiple of 8 bytes; the caller writes these and seals the message. */
export function draftReadChunk({ from, more, generation, seq, versions }, valueBytes, allocate) {
    const entries = versions.length;
    const bytes = float64ColumnBytes(entries) + valueBytes;
    const draft = draftMessage({ from, more, generation, seq, entries }, bytes, allocate);
    const writer = new ColumnWriter(draft.data);
    writer.put(versions);
    return { draft, values: writer.place(valueBytes) };
}
/** @throws BAD_MESSAGE and the like if the message is not a valid chunk, or the error that the message carries. */
export function parseReadChunk({ fields, data }) {
    throwIfError(fields);
    const entries = integerField(fields, "entries", 1, BATCH_ENTRIES_MAX);
    const from = integerField(fields, "from", 0, BATCH_ENTRIES_MAX - 1);
    const more = flagField(fields, "more");
    const position = parsePosition(fields);
    const valueBytes = data.length - float64ColumnBytes(entries);
    if (valueBytes < 0) {
        const [expected, received] = [float64ColumnBytes(entries), data.length];
        const text = `a chunk: expected at least ${expected} bytes of versions; received ${received}`;
        throw new PserverError("BAD_LENGTH", text, { expected, received });
    }
    const reader = new ColumnReader(data);
    const versions = reader.float64(entries);
    checkVersions(versions, "versions", from);
    return { from, more, ...position, versions, values: data.subarray(data.length - valueBytes) };
}
//# sourceMappingURL=batch-reads.js.map