import { decodeMessage, draftMessage, encodeMessage, sealMessage, } from "../codec.js";
import { ensureError, PserverError } from "../errors.js";
import { asMap, dtypeField, encodingField, flagField, integerField, listField, textField, } from "../fields.js";
import { BATCH_ENTRIES_MAX, BATCH_HEAD_BYTES_MAX, PARAMETERS_PER_REQUEST_MAX, SHARDS_MAX, } from "../limits.js";
import { checkedName } from "./lifecycle-messages.js";
import { throwIfError } from "./outcomes.js";
import { packedIndexBytes, parsePartEntry, partCounts, partEntry, partIndexBytes, writePackedIndex, writePartIndex, } from "./parts.js";
import { parsePosition } from "./position.js";
/** Longest time that a request may wait at the host; clients repeat it until their own deadline. */
export const PULL_WAIT_MS_MAX = 10_000;
/** Writes a pull as a message; `index` belongs to `request.part`. */
export function encodePullRequest(request, index) {
    const { epoch, generation, seq, waitMs, step, encoding, part } = request;
    const entries = { epoch, generation, seq, waitMs, step, encoding };
    if (part === undefined || index === undefined)
        return encodeMessage(entries);
    const draft = draftMessage({ ...entries, part: partEntry(part) }, partIndexBytes(part));
    writePartIndex(draft.data, index);
    return sealMessage(draft);
}
/** @throws BAD_MESSAGE if the fields are not a valid pull. */
export function parsePullRequest(fields) {
    const part = parsePartEntry(fields);
    return {
        epoch: integerField(fields, "epoch", 1),
        ...parseReadTerms(fields),
        ...(part === undefined ? {} : { part }),
    };
}
/** Reads the terms of a request for values; @throws BAD_MESSAGE if the fields are not valid. */
export function parseReadTerms(fields) {
    const encoding = encodingField(fields);
    return {
        ...parsePosition(fields),
        waitMs: integerField(fields, "waitMs", 0, PULL_WAIT_MS_MAX),
        ...(fields["step"] === undefined ? {} : { step: integerField(fields, "step") }),
        ...(encoding === undefined ? {} : { encoding }),
    };
}
/** Begins a reply with room for the values; fill and seal it as {@link DraftMessage} says. */
export function draftPullReply(reply, dataBytes, allocate) {
    const { epoch, dtype, encoding, generation, seq, version } = reply;
    return draftMessage({ epoch, dtype, encoding, generation, seq, version }, dataBytes, allocate);
}
/** @throws BAD_MESSAGE if the message is not a valid pull reply, or the error that the message carries. */
export function parsePullReply(message) {
    throwIfError(message.fields);
    const { fields, data } = message;
    const encoding = encodingField(fields);
    return {
        epoch: integerField(fields, "epoch", 1),
        dtype: dtypeField(fields),
        ...(encoding === undefined ? {} : { encoding }),
        ...parsePosition(fields),
        version: integerField(fields, "version"),
        data,
    };
}
// A batched read asks the owner of a shard for many of its blocks, or parts of them, at once. Each block
// asked for is an *entry*; entries of one parameter stand together in a group. `ReadChunk` is a message of the reply.
/**
 * Bytes of values that a batched read of several entries may ask for: as many as a client lets be under way.
 */
export const READ_BYTES_MAX = 16 * 1024 * 1024;
/** Writes a batched read as a message. Entries of one parameter should follow each other. */
export function encodeBatchRead(header, entries) {
    const dataBytes = entries.reduce((sum, { index, rows }) => sum + indexBytes(index, rows), 0);
    const { generation, seq, waitMs, step, encoding, from = 0 } = header;
    const fields = {
        ...{ generation, seq, waitMs, step, encoding },
        from: from === 0 ? undefined : from,
        groups: groupsOf(entries),
    };
    const draft = draftMessage(fields, dataBytes === 0 ? undefined : dataBytes);
    let at = 0;
    for (const { index, rows } of entries) {
        if (index !== undefined)
            at += writePackedIndex(draft.data.subarray(at), index, rows);
    }
    return sealMessage(draft);
}
/**
 * Reads a batched read. Its `data` is not read here, because that takes the rows of the blocks.
 * @throws BAD_MESSAGE, naming the entry that is malformed; EMPTY if it has none; TOO_LARGE if it has more
 * entries or bytes before `data` than a limit allows; as {@link decodeMessage} does.
 */
export function decodeBatchRead(bytes) {
    const { fields, data } = decodeMessage(bytes, BATCH_HEAD_BYTES_MAX);
    const headerBytes = bytes.length - data.length;
    if (headerBytes > BATCH_HEAD_BYTES_MAX) {
        const text = `a batched read: expected at most ${BATCH_HEAD_BYTES_MAX} bytes before its data; received ${headerBytes}`;
        const details = { expected: BATCH_HEAD_BYTES_MAX, received: headerBytes };
        throw new PserverError("TOO_LARGE", text, details);
    }
    const terms = parseReadTerms(fields);
    const entries = parseGroups(fields);
    return {
        ...terms,
        from: fields["from"] === undefined ? 0 : integerField(fields, "from", 0, entries.length - 1),
        entries,
        data,
    };
}
/** Names the place of an entry in its request, for messages. */
export function entryLabel({ group, place }) {
    return `groups[${group}].blocks[${place}]`;
}
function indexBytes(index, rows) {
    return index === undefined ? 0 : packedIndexBytes(partCounts(index), rows);
}
/** Returns the entries as a message carries them. */
function groupsOf(entries) {
    const groups = [];
    for (let first = 0; first < entries.length;) {
        const { parameter, epoch } = entries[first];
        let next = first + 1;
        for (; next < entries.length; next++) {
            const entry = entries[next];
            if (entry.parameter !== parameter || entry.epoch !== epoch)
                break;
        }
        const members = entries.slice(first, next);
        const blocks = members.map(blockRow);
        const have = members.map((entry) => entry.have);
        const group = { parameter, epoch, blocks };
        groups.push(have.some((version) => version > 0) ? { ...group, have } : group);
        first = next;
    }
    return groups;
}
function blockRow({ block, index }) {
    if (index === undefined)
        return [block];
    const { rows, inner } = index;
    return inner === undefined ? [block, rows.length] : [block, rows.length, inner.length];
}
function parseGroups(fields) {
    const entries = [];
    const groups = fields["groups"];
    // A group without entries is refused, so there are at most as many groups as entries.
    if (Array.isArray(groups) && groups.length > BATCH_ENTRIES_MAX)
        throw tooMany(groups.length);
    listField(fields, "groups", BATCH_ENTRIES_MAX).forEach((value, group) => {
        try {
            parseGroup(asMap(value, "group"), group, entries);
        }
        catch (error) {
            const { code, message, details } = ensureError(error);
            const text = message.startsWith("groups[") ? message : `groups[${group}]: ${message}`;
            throw new PserverError(code, text, { ...details, group });
        }
    });
    if (entries.length > 0)
        return entries;
    throw new PserverError("EMPTY", "a batched read: expected at least one block; received none");
}
/** Appends the entries of a group. */
function parseGroup(fields, group, entries) {
    const parameter = textField(fields, "parameter");
    const epoch = integerField(fields, "epoch", 1);
    const blocks = listField(fields, "blocks", Number.POSITIVE_INFINITY);
    if (blocks.length === 0) {
        throw new PserverError("EMPTY", "blocks: expected at least one; received none");
    }
    const count = entries.length + blocks.length;
    if (count > BATCH_ENTRIES_MAX)
        throw tooMany(count);
    const have = parseHave(fields, blocks.length);
    for (let place = 0; place < blocks.length; place++) {
        const row = blocks[place];
        if (!isBlockRow(row))
            throw badBlock(group, place);
        const [block, rows, inner] = row;
        const part = rows === undefined ? undefined : toCounts(rows, inner);
        const version = have?.[place] ?? 0;
        entries.push({ parameter, epoch, block, part, have: version, group, place });
    }
}
function parseHave(fields, count) {
    if (fields["have"] === undefined)
        return undefined;
    const have = listField(fields, "have", count);
    if (have.length === count && have.every(isCount))
        return have;
    throw new PserverError("BAD_MESSAGE", `have: expected ${count} versions, one for each block, 0 for none; received ${have.length} values`, { expected: count, received: have.length });
}
/**
 * Returns whether a value is `[block]`, `[block, rows]` or `[block, rows, inner]`; rows and inner are not 0.
 */
function isBlockRow(row) {
    if (!Array.isArray(row) || row.length < 1 || row.length > 3)
        return false;
    return row.every((value, i) => isCount(value) && (i === 0 || value > 0));
}
function toCounts(rows, inner) {
    return inner === undefined ? { rows } : { rows, inner };
}
function isCount(value) {
    return Number.isSafeInteger(value) && value >= 0;
}
function badBlock(group, place) {
    return new PserverError("BAD_MESSAGE", `${entryLabel({ group, place })}: expected [index], [index, rows] or [index, rows, inner]; received other values`, { group, place });
}
function tooMany(received) {
    const expected = BATCH_ENTRIES_MAX;
    return new PserverError("TOO_LARGE", `a batched read: expected at most ${expected} blocks; received ${received}`, { expected, received });
}
/** Begins a chunk with room for the values; fill and seal it as {@link DraftMessage} says. */
export function draftReadChunk({ from, more, generation, seq, versions }, dataBytes, allocate) {
    return draftMessage({ from, more, generation, seq, versions }, dataBytes, allocate);
}
/** @throws BAD_MESSAGE if the message is not a valid chunk, or the error that the message carries. */
export function parseReadChunk({ fields, data }) {
    throwIfError(fields);
    const versions = listField(fields, "versions", BATCH_ENTRIES_MAX);
    if (versions.length === 0 || !versions.every(isVersion)) {
        const received = versions.find((version) => !isVersion(version));
        throw new PserverError("BAD_MESSAGE", `versions: expected at least one whole number and no other value; received ${String(received)}`, { field: "versions" });
    }
    return {
        from: integerField(fields, "from", 0, BATCH_ENTRIES_MAX - 1),
        more: flagField(fields, "more"),
        ...parsePosition(fields),
        versions,
        data,
    };
}
function isVersion(value) {
    return Number.isSafeInteger(value) && value >= 0;
}
/** Most members that a reply names. */
export const WAITING_FOR_MAX = 16;
/** Writes a step request as a message. */
export function encodeStepRequest(request) {
    return encodeMessage({ ...request });
}
/** @throws BAD_MESSAGE if the fields are not a valid step request. */
export function parseStepRequest(fields) {
    return {
        ...parsePosition(fields),
        revision: integerField(fields, "revision"),
        step: integerField(fields, "step"),
        waitMs: integerField(fields, "waitMs", 0, PULL_WAIT_MS_MAX),
    };
}
/** Writes a step reply as a message. */
export function encodeStepReply(reply) {
    return encodeMessage({ ...reply });
}
/** @throws BAD_MESSAGE if the message is not a valid step reply, or the error that the message carries. */
export function parseStepReply({ fields }) {
    throwIfError(fields);
    const waitingFor = listField(fields, "waitingFor", WAITING_FOR_MAX);
    return {
        ...parsePosition(fields),
        revision: integerField(fields, "revision"),
        step: integerField(fields, "step"),
        waitingFor: waitingFor.map((trainer) => textField({ trainer }, "trainer")),
    };
}
/**
 * Reads the names that a `versions` request asks for, at most 256.
 * @throws BAD_MESSAGE or BAD_NAME.
 */
export function parseVersionsRequest(fields) {
    return listField(fields, "names", PARAMETERS_PER_REQUEST_MAX).map((name) => checkedName({ name }, "name"));
}
/** Returns the entries of a reply to `versions`. */
export function versionsReply({ versions, silent }) {
    const rows = versions.map((row) => (row === null ? null : [row.least, row.most, row.updates]));
    return { versions: rows, silent };
}
/**
 * Reads the reply to a request for `count` names.
 * @throws BAD_MESSAGE if it is not valid.
 */
export function parseVersionsReply(fields, count) {
    const rows = listOf(fields, "versions", count);
    const silent = listField(fields, "silent", SHARDS_MAX).map((shard) => integerField({ shard }, "shard", 0, SHARDS_MAX - 1));
    return { versions: rows.map((row) => (row === null ? null : parseBlockVersions(row))), silent };
}
/** Returns the entries of a host's request to an owner. */
export function shardVersionsRequest(wanted) {
    return { parameters: wanted.map(({ parameter, epoch }) => [parameter, epoch]) };
}
/**
 * Reads the parameters that a host asks an owner for, at most 256.
 * @throws BAD_MESSAGE or BAD_NAME.
 */
export function parseShardVersionsRequest(fields) {
    return listField(fields, "parameters", PARAMETERS_PER_REQUEST_MAX).map((row) => {
        const [name, epoch] = rowOf(row, 2);
        return { parameter: checkedName({ name }, "name"), epoch: integerField({ epoch }, "epoch", 1) };
    });
}
/** Returns the entries of an owner's reply. */
export function shardVersionsReply(versions) {
    return {
        versions: versions.map(({ least, most, updates, blocks }) => [least, most, updates, blocks]),
    };
}
/**
 * Reads an owner's reply to a request for `count` parameters.
 * @throws BAD_MESSAGE if it is not valid.
 */
export function parseShardVersionsReply(fields, count) {
    return listOf(fields, "versions", count).map((row) => {
        const [, , , blocks] = rowOf(row, 4);
        return { ...parseBlockVersions(row), blocks: integerField({ blocks }, "blocks") };
    });
}
function parseBlockVersions(row) {
    const [lowest, most, updates] = rowOf(row, 4);
    const least = integerField({ lowest }, "lowest");
    return {
        least,
        most: integerField({ most }, "most", least),
        updates: integerField({ updates }, "updates"),
    };
}
/** Reads the list under a key; @throws BAD_MESSAGE unless it has exactly `count` entries. */
function listOf(fields, key, count) {
    const list = listField(fields, key, count);
    if (list.length === count)
        return list;
    throw new PserverError("BAD_MESSAGE", `${key}: expected a list of ${count}; received one of ${list.length}`, { field: key, expected: count, received: list.length });
}
function rowOf(row, lengthMax) {
    return listField({ row }, "row", lengthMax);
}
//# sourceMappingURL=reads.js.map