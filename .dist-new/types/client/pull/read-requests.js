import { encodedBytes } from "../../protocol/dtypes.js";
import { ensureError, PserverError, reactionTo } from "../../protocol/errors.js";
import { paddedBytes } from "../../protocol/messages/batch-records.js";
import { blockRows, partCounts, } from "../../protocol/messages/parts.js";
import { encodeBatchRead, encodePullRequest, parsePullReply, parseReadChunk, } from "../../protocol/messages/reads.js";
import { quoteName } from "../../protocol/names.js";
import { ASK_AGAIN, MORE } from "../wire/wire.js";
/** Takes the chunks of the replies to one batched read, no matter which of its repeats they answer. */
class BatchReply {
    #shard;
    #blocks;
    #next = 0;
    /** Begins without chunks; `blocks` are the entries of the request, in their order. */
    constructor(shard, blocks) {
        this.#shard = shard;
        this.#blocks = blocks;
    }
    /** Number of the first entry that has not come. */
    get next() {
        return this.#next;
    }
    /**
     * Gives the values of a chunk to their blocks, except those that have come already.
     * @throws BAD_MESSAGE, before any is given, if the chunk does not fit the request.
     */
    take({ from, more, generation, versions, data }) {
        this.#check(from, versions, data);
        let takenCount = 0;
        let at = 0;
        versions.forEach((version, i) => {
            const block = this.#blocks[from + i];
            const { read, bytes } = block;
            const values = version === 0 ? undefined : data.subarray(at, at + bytes);
            at += version === 0 ? 0 : paddedBytes(bytes);
            if (block.isDone)
                return;
            block.isDone = true;
            takenCount++;
            read.take(values, stateOf(block, version, generation));
        });
        while (this.#blocks[this.#next]?.isDone === true)
            this.#next++;
        if (this.#next === this.#blocks.length)
            return "complete";
        // Without progress the request is repeated after its pause, not at once.
        return more || takenCount === 0 ? "more" : "missing";
    }
    #check(from, versions, data) {
        let expected = 0;
        versions.forEach((version, i) => {
            const block = this.#blocks[from + i];
            const isAllowed = block !== undefined && (version > 0 || block.read.known !== undefined);
            if (!isAllowed)
                throw this.#unexpected(from + i);
            if (version > 0)
                expected += paddedBytes(block.bytes);
        });
        if (data.length === expected)
            return;
        throw new PserverError("BAD_MESSAGE", `shard ${this.#shard}: piece from entry ${from} on: expected ${expected} bytes of values; received ${data.length}`, { shard: this.#shard, expected, received: data.length });
    }
    #unexpected(entry) {
        return new PserverError("BAD_MESSAGE", `shard ${this.#shard}: received entry ${entry} without values, or of a request of ${this.#blocks.length} entries`, { shard: this.#shard, entry });
    }
}
/** Returns the state of a block whose entry in a chunk has this version; 0 stands for the known state. */
function stateOf({ read: { known } }, version, generation) {
    return { version: version === 0 ? (known?.version ?? 0) : version, generation };
}
/** How long a pull is retried while nobody listens to it, before its parameter is looked up again. */
const RETRY_MS = 1_000;
/**
 * Longest wait at the host: just shorter than the pause between repeats, so that the host never holds two
 * copies of one request.
 */
const WAIT_MS = 900;
/** Reactions to errors after which a block is asked for again. */
const ASKED_AGAIN = ["replaced", "look-up", "retry", "enter-anew"];
/**
 * Reads one block by its own subject. Returns undefined when it has come, or an error after which it can be
 * asked for again.
 */
export function readSingle(deps, block, { encoding, step }, deadline) {
    const { place, index } = block.read;
    const { name, epoch } = block.parameter.info;
    const entries = {
        epoch,
        ...(encoding === undefined ? {} : { encoding }),
        ...(index === undefined ? {} : { part: partCounts(index) }),
    };
    const answered = deps.requests.ask({
        subject: deps.subjects.pull(name, place.index, deps.trainer),
        body: () => {
            const condition = conditionOf(deps, place.shard, step, deadline);
            return encodePullRequest({ ...entries, ...condition }, index);
        },
        read: (message) => {
            const reply = parsePullReply(message);
            checkReply(reply, block, encoding);
            const { version, generation } = reply;
            block.read.take(reply.data, { version, generation });
            block.isDone = true;
            noteAnswer(deps, place.shard, reply, step);
            deps.seen.note(block.parameter.info, place.index, version);
        },
        deadline,
        nobody: () => noOwner(block),
        retryMs: RETRY_MS,
    });
    return problemOf(deps, answered, deadline);
}
/**
 * Reads blocks of one shard by one request. Returns undefined when all have come, or an error after which the
 * missing ones can be asked for again.
 */
export async function readBatch(deps, shard, blocks, { encoding, step }, deadline) {
    const reply = new BatchReply(shard, blocks);
    const answered = deps.requests.ask({
        subject: deps.subjects.read(shard, deps.trainer),
        body: () => {
            const condition = conditionOf(deps, shard, step, deadline);
            const entries = blocks.map((block) => wantedEntry(block, condition.generation));
            const header = encoding === undefined ? condition : { ...condition, encoding };
            return encodeBatchRead({ ...header, from: reply.next }, entries);
        },
        read: (message) => {
            const chunk = parseReadChunk(message);
            const progress = reply.take(chunk);
            noteAnswer(deps, shard, chunk, step);
            noteVersions(deps.seen, blocks, chunk);
            if (progress === "complete")
                return undefined;
            return progress === "more" ? MORE : ASK_AGAIN;
        },
        deadline,
        nobody: () => {
            return new PserverError("NO_OWNER", `no host serves shard ${shard}`, { shard });
        },
    });
    return await problemOf(deps, answered, deadline);
}
/** Returns what a shard must have reached before it answers a read. */
function conditionOf({ positions, steps }, shard, step, deadline) {
    const wanted = step !== undefined && steps.readStep !== undefined ? { step } : {};
    const waitMs = Math.floor(Math.min(WAIT_MS, deadline.remainingMs));
    return { ...wanted, ...positions.get(shard), waitMs };
}
function noteAnswer({ positions, steps }, shard, position, step) {
    positions.note(shard, position);
    if (step !== undefined && steps.readStep !== undefined)
        steps.noteClosed(shard, step);
}
function noteVersions(seen, blocks, { from, versions }) {
    versions.forEach((version, i) => {
        const { parameter, read } = blocks[from + i];
        const { known, place } = read;
        seen.note(parameter.info, place.index, version === 0 ? (known?.version ?? 0) : version);
    });
}
/** Returns the entry of a block in a request whose position is of this generation. */
function wantedEntry({ read, rows, parameter }, generation) {
    const { place, index, known } = read;
    const { name, epoch } = parameter.info;
    const have = known?.generation === generation ? known.version : 0;
    return { parameter: name, epoch, block: place.index, index, rows, have };
}
/** Returns the error that ended a request, if asking again can help. @throws any other error. */
async function problemOf({ steps }, answered, deadline) {
    try {
        await answered;
        return undefined;
    }
    catch (caught) {
        const error = ensureError(caught);
        if (reactionTo(error.code) === "enter-anew")
            steps.lostPlace();
        if (deadline.ended === undefined && ASKED_AGAIN.includes(reactionTo(error.code)))
            return error;
        throw error;
    }
}
function noOwner({ parameter, read }) {
    const { name } = parameter.info;
    const { index, shard } = read.place;
    return new PserverError("NO_OWNER", `${quoteName(name)} block ${index}: no host serves shard ${shard}`, { parameter: name, block: index, shard });
}
function checkReply(reply, { parameter, read, bytes: expected }, encoding) {
    const { dtype, epoch, data } = reply;
    const { info } = parameter;
    const fits = dtype === info.dtype && data.length === expected && epoch === info.epoch;
    if (fits && reply.encoding === encoding)
        return;
    throw new PserverError("BAD_MESSAGE", `${quoteName(info.name)} block ${read.place.index}: expected ${expected} bytes of ${encoding ?? info.dtype} at epoch ${info.epoch}; received ${data.length} of ${reply.encoding ?? dtype} at epoch ${epoch}`, { parameter: info.name, block: read.place.index, expected, received: data.length });
}
const ANY_ROWS = { rows: 1, rowElements: 1 };
/** Lists the blocks of one parameter, to be read. */
export function pendingBlocks(parameter, blocks, encoding) {
    const { dtype, shape } = parameter.info;
    return blocks.map((read) => {
        const { start, count } = read.place;
        const bytes = encodedBytes(dtype, encoding, read.elements);
        const rows = read.index === undefined ? ANY_ROWS : blockRows({ shape, start, count });
        return { parameter, read, bytes, rows, isDone: false };
    });
}
/** Returns whether a block is still to be read. */
export function isWanted({ isDone, parameter }) {
    return !isDone && parameter.replacedBy === undefined;
}
//# sourceMappingURL=read-requests.js.map