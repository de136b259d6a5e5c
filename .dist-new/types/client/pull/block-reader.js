import { PserverError, reactionTo } from "../../protocol/errors.js";
import { BATCH_BYTES, BATCH_ENTRIES_MAX, BATCH_ENTRY_BYTES_MAX, BATCH_HEAD_BYTES_MAX, IN_FLIGHT_BYTES_MAX, } from "../../protocol/limits.js";
import { packedIndexBytes, partCounts } from "../../protocol/messages/parts.js";
import { allOrFirstError } from "../calls/calls.js";
import { noteReplaced } from "../core/shard-window.js";
import { isWanted, pendingBlocks, readBatch, readSingle, } from "./read-requests.js";
/**
 * Share of the window that must be free before waiting requests are admitted: then many are, and go to the
 * broker in one write.
 */
const FREE_SHARE = 0.25;
/** Bounds the bytes under way: requests that do not fit wait in order. */
export class ByteWindow {
    #bytesMax;
    #waiters = new Set();
    #bytes = 0;
    constructor(bytesMax) {
        this.#bytesMax = bytesMax;
    }
    /** Bytes under way. */
    get bytes() {
        return this.#bytes;
    }
    /**
     * Waits until the bytes fit; more bytes than the window has are admitted alone. @throws what ends the call.
     */
    async acquire(bytes, deadline) {
        if (deadline.ended === undefined && this.#waiters.size === 0 && this.#fits(bytes)) {
            this.#bytes += bytes;
            return;
        }
        await new Promise((resolve, reject) => {
            const waiter = {
                bytes,
                admit: () => {
                    stopListening();
                    resolve();
                },
            };
            this.#waiters.add(waiter);
            const stopListening = deadline.onEnd((error) => {
                this.#waiters.delete(waiter);
                reject(error);
                this.#admit();
            });
            this.#admit();
        });
    }
    /** Releases bytes that {@link acquire} has admitted. */
    release(bytes) {
        this.#bytes -= bytes;
        if (this.#bytes <= this.#bytesMax * (1 - FREE_SHARE))
            this.#admit();
    }
    #fits(bytes) {
        return this.#bytes === 0 || this.#bytes + bytes <= this.#bytesMax;
    }
    #admit() {
        for (const waiter of this.#waiters) {
            if (!this.#fits(waiter.bytes))
                return;
            this.#waiters.delete(waiter);
            this.#bytes += waiter.bytes;
            waiter.admit();
        }
    }
}
/** Most bytes that an entry takes in the header of a request: three numbers in a list, and a version. */
const ENTRY_BYTES = 32;
/** Most bytes that a group takes besides its name and entries. */
const GROUP_BYTES = 96;
/** Most bytes of UTF-8 for one UTF-16 code unit. */
const UTF8_BYTES = 3;
/**
 * Share of its bytes that a block counts if the reader has a version of it, because most such blocks have not
 * changed.
 */
const KNOWN_SHARE = 0.25;
/** Bytes of a request besides its entries. */
const REST_BYTES = 1024;
/**
 * Divides blocks among requests, in the order of the blocks. One request asks for as many small blocks of a
 * shard as one chunk of a reply takes. A large block has a request of its own, so that large and small ones
 * do not wait for each other.
 * @param payloadBytesMax the largest message that the broker takes.
 */
export function planRequests(blocks, payloadBytesMax) {
    const requests = [];
    const open = new Map();
    for (const block of blocks) {
        const { read, bytes } = block;
        if (bytes >= BATCH_ENTRY_BYTES_MAX && read.known === undefined) {
            requests.push({ kind: "single", block });
            continue;
        }
        const { shard } = read.place;
        let batch = open.get(shard);
        if (batch === undefined || !add(batch, block, payloadBytesMax)) {
            batch = { ...{ kind: "batch", shard, blocks: [] }, ...NO_BYTES };
            add(batch, block, payloadBytesMax);
            open.set(shard, batch);
            requests.push(batch);
        }
    }
    return requests.map((request) => {
        if (request.kind === "single")
            return request;
        const [first] = request.blocks;
        const isAlone = request.blocks.length === 1 && first?.read.known === undefined;
        return isAlone && first !== undefined ? { kind: "single", block: first } : request;
    });
}
const NO_BYTES = { bytes: 0, expectedBytes: 0, headerBytes: 0, dataBytes: 0 };
/**
 * Adds a block to a batch; returns false if it does not fit. A batch takes its first block whatever its size.
 */
function add(batch, block, payloadBytesMax) {
    const { read, bytes, parameter } = block;
    const last = batch.blocks.at(-1);
    const { name } = parameter.info;
    const groupBytes = last?.parameter === parameter ? 0 : GROUP_BYTES + name.length * UTF8_BYTES;
    const expectedBytes = batch.expectedBytes + (read.known === undefined ? bytes : bytes * KNOWN_SHARE);
    const headerBytes = batch.headerBytes + ENTRY_BYTES + groupBytes;
    const dataBytes = batch.dataBytes + indexBytes(block);
    if (last !== undefined) {
        if (batch.blocks.length >= BATCH_ENTRIES_MAX || expectedBytes > BATCH_BYTES)
            return false;
        if (headerBytes + REST_BYTES > BATCH_HEAD_BYTES_MAX)
            return false;
        if (headerBytes + REST_BYTES + dataBytes > payloadBytesMax)
            return false;
    }
    batch.blocks.push(block);
    batch.bytes += bytes;
    Object.assign(batch, { expectedBytes, headerBytes, dataBytes });
    return true;
}
function indexBytes({ read: { index }, rows }) {
    return index === undefined ? 0 : packedIndexBytes(partCounts(index), rows);
}
/** Pause before blocks are asked for again after their journal was replaced. */
const AGAIN_MS = 10;
/** Least bytes that a request counts in the window; bounds the number of requests under way. */
const REQUEST_BYTES_MIN = 16 * 1024;
/** Reads blocks and parts of blocks. One window of 16 MiB bounds the reads of all calls. */
export class BlockReader {
    #options;
    #window = new ByteWindow(IN_FLIGHT_BYTES_MAX);
    constructor(options) {
        this.#options = options;
    }
    /**
     * Reads blocks, not all at one moment. Returns undefined for each parameter that was read, and its new
     * description if it was initialized again during the read: its blocks must then be read again in the new
     * layout.
     */
    async readAll(parameters, mode, deadline) {
        const pending = parameters.map(({ info }) => {
            return { info, replacedBy: undefined };
        });
        const blocks = parameters.flatMap((parameter, i) => pendingBlocks(pending[i], parameter.blocks, mode.encoding));
        const requests = planRequests(blocks, this.#options.payloadBytesMax());
        await allOrFirstError(requests.map((request) => this.#read(request, mode, deadline)));
        return pending.map(({ replacedBy }) => replacedBy);
    }
    async #read(request, mode, deadline) {
        const bytes = request.kind === "single" ? request.block.bytes : request.bytes;
        const windowBytes = Math.max(REQUEST_BYTES_MIN, bytes);
        await this.#window.acquire(windowBytes, deadline);
        try {
            if (request.kind === "single")
                await this.#readSingle(request.block, mode, deadline);
            else
                await this.#readBatch(request.shard, request.blocks, mode, deadline);
        }
        finally {
            this.#window.release(windowBytes);
        }
    }
    async #readSingle(block, mode, deadline) {
        while (isWanted(block)) {
            const problem = await readSingle(this.#options, block, mode, deadline);
            if (problem !== undefined)
                await this.#prepareAgain([block], deadline, problem);
        }
    }
    /** Reads blocks of a shard together. */
    async #readBatch(shard, blocks, mode, deadline) {
        for (let left = blocks; left.length > 0; left = blocks.filter(isWanted)) {
            const problem = await readBatch(this.#options, shard, left, mode, deadline);
            if (problem !== undefined) {
                await this.#prepareAgain(left.filter(isWanted), deadline, problem);
            }
        }
    }
    /** Does what an error requires before blocks of one shard are asked for again. */
    async #prepareAgain(blocks, deadline, problem) {
        const [first] = blocks;
        if (first !== undefined && reactionTo(problem.code) === "replaced") {
            noteReplaced(this.#options.positions, first.read.place.shard, problem);
            // If the error names no newer journal, the next request would get it again at once.
            await deadline.sleep(AGAIN_MS);
        }
        else {
            await this.#lookUp(blocks, deadline, problem);
        }
    }
    /**
     * Looks the parameters of blocks up again, and notes those that were initialized again.
     * @throws at the deadline, the reason for looking them up.
     */
    async #lookUp(blocks, deadline, reason) {
        const names = new Set(blocks.map(({ parameter }) => parameter.info.name));
        const infos = await this.#refresh([...names], deadline, reason);
        const byName = new Map(infos.map((info) => [info.name, info]));
        for (const { parameter } of blocks) {
            const fresh = byName.get(parameter.info.name);
            if (fresh !== undefined && fresh.epoch !== parameter.info.epoch)
                parameter.replacedBy = fresh;
        }
    }
    async #refresh(names, deadline, reason) {
        try {
            return await this.#options.parameters.refreshAll(names, deadline);
        }
        catch (error) {
            if (error !== deadline.ended || deadline.ended?.code !== "TIMEOUT")
                throw error;
            const { code, message, details } = reason;
            throw new PserverError(code, `${deadline.ended.message}; last: ${message}`, details, {
                cause: error,
            });
        }
    }
}
//# sourceMappingURL=block-reader.js.map