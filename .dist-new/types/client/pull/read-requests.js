import { ensureError, PserverError, reactionTo } from "../../protocol/errors.js";
import { encodeBatchRead, parseReadChunk, } from "../../protocol/messages/batch-reads.js";
import { paddedBytes } from "../../protocol/messages/columns.js";
import { partCounts } from "../../protocol/messages/parts.js";
import { encodePullRequest, parsePullReply, } from "../../protocol/messages/reads.js";
import { quoteName } from "../../protocol/names.js";
import { ASK_AGAIN, MORE } from "../wire/wire.js";
import { blockOfEntry, } from "./read-plan.js";
import { ReceivedValues } from "./received-values.js";
/** Takes the chunks of the replies to one batched read, no matter which of its repeats they answer. */
class BatchReply {
    #pending;
    #request;
    #seen;
    #next = 0;
    /** Begins without chunks. */
    constructor(pending, request, seen) {
        this.#pending = pending;
        this.#request = request;
        this.#seen = seen;
    }
    /** Number of the first entry that has not come. */
    get next() {
        return this.#next;
    }
    /**
     * Gives the values of a chunk to their reads, except those that have come already.
     * @throws BAD_MESSAGE, before any is given, if the chunk does not fit the request.
     */
    take({ from, more, generation, versions, values }) {
        this.#check(from, versions, values.length);
        const request = this.#request;
        const received = new ReceivedValues(values);
        let takenCount = 0;
        let at = 0;
        for (let i = 0; i < versions.length; i++) {
            const place = from + i;
            const isSent = versions[i] !== 0;
            if (!request.isDone(place)) {
                request.done(place);
                takenCount++;
                const read = this.#readOf(place);
                const entry = request.entries[place];
                const version = isSent ? versions[i] : (read.knownOf(entry)?.version ?? 0);
                read.take(entry, isSent ? received : undefined, at, { version, generation });
                this.#seen.note(request.numbers[place], version);
            }
            if (isSent)
                at += paddedBytes(request.sizes[place]);
        }
        while (request.isDone(this.#next))
            this.#next++;
        if (this.#next === request.length)
            return "complete";
        // Without progress the request is repeated after its pause, not at once.
        return more || takenCount === 0 ? "more" : "missing";
    }
    #readOf(place) {
        return this.#pending.reads[this.#request.places[place]];
    }
    #check(from, versions, received) {
        const { shard, sizes, length, entries } = this.#request;
        let expected = 0;
        for (let i = 0; i < versions.length; i++) {
            const place = from + i;
            if (place >= length)
                throw this.#unexpected(place);
            if (versions[i] !== 0)
                expected += paddedBytes(sizes[place]);
            else if (this.#readOf(place).knownOf(entries[place]) === undefined) {
                throw this.#unexpected(place);
            }
        }
        if (received === expected)
            return;
        throw new PserverError("BAD_MESSAGE", `shard ${shard}: piece from entry ${from} on: expected ${expected} bytes of values; received ${received}`, { shard, expected, received });
    }
    #unexpected(entry) {
        const { shard, length } = this.#request;
        return new PserverError("BAD_MESSAGE", `shard ${shard}: received entry ${entry} without values, or of a request of ${length} entries`, { shard, entry });
    }
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
 * asked for again. `refused` is called when an error is retried.
 */
export function readSingle(deps, pending, request, step, deadline, refused) {
    const { read, index, shard } = blockOfEntry(pending, request);
    const { encoding } = pending;
    const { name, epoch, firstNumber } = read.info;
    const part = read.partOf(request.entry);
    const entries = {
        epoch,
        ...(encoding === undefined ? {} : { encoding }),
        ...(part === undefined ? {} : { part: partCounts(part) }),
    };
    const answered = deps.requests.ask({
        subject: deps.subjects.pull(name, index, deps.trainer),
        body: () => {
            const condition = conditionOf(deps, shard, step, deadline);
            return encodePullRequest({ ...entries, ...condition }, part);
        },
        read: (message) => {
            const reply = parsePullReply(message);
            checkReply(reply, read, index, request.bytes, encoding);
            const { version, generation } = reply;
            read.take(request.entry, new ReceivedValues(reply.data), 0, { version, generation });
            request.isDone = true;
            noteAnswer(deps, shard, reply, step);
            deps.seen.note(firstNumber + index, version);
        },
        deadline,
        refused,
        nobody: () => noOwner(name, index, shard),
        retryMs: RETRY_MS,
    });
    return problemOf(deps, answered, deadline);
}
/**
 * Reads entries of one shard by one request. Returns undefined when all have come, or an error after which the
 * missing ones can be asked for again. `refused` is called when an error is retried.
 */
export async function readBatch(deps, pending, request, step, deadline, refused) {
    const { shard } = request;
    const { encoding } = pending;
    const reply = new BatchReply(pending, request, deps.seen);
    const answered = deps.requests.ask({
        subject: deps.subjects.read(shard, deps.trainer),
        body: () => {
            const condition = conditionOf(deps, shard, step, deadline);
            const header = encoding === undefined ? condition : { ...condition, encoding };
            const wanted = request.wanted(pending, condition.generation);
            return encodeBatchRead({ ...header, from: reply.next }, wanted);
        },
        read: (message) => {
            const chunk = parseReadChunk(message);
            const progress = reply.take(chunk);
            noteAnswer(deps, shard, chunk, step);
            if (progress === "complete")
                return undefined;
            return progress === "more" ? MORE : ASK_AGAIN;
        },
        deadline,
        refused,
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
function noOwner(name, index, shard) {
    return new PserverError("NO_OWNER", `${quoteName(name)} block ${index}: no host serves shard ${shard}`, { parameter: name, block: index, shard });
}
function checkReply(reply, { info }, block, expected, encoding) {
    const { dtype, epoch, data } = reply;
    const fits = dtype === info.dtype && data.length === expected && epoch === info.epoch;
    if (fits && reply.encoding === encoding)
        return;
    throw new PserverError("BAD_MESSAGE", `${quoteName(info.name)} block ${block}: expected ${expected} bytes of ${encoding ?? info.dtype} at epoch ${info.epoch}; received ${data.length} of ${reply.encoding ?? dtype} at epoch ${epoch}`, { parameter: info.name, block, expected, received: data.length });
}
//# sourceMappingURL=read-requests.js.map