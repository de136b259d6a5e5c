import { busy, checksum, decodeBatchRead, draftPullReply, PserverError, parsePullRequest, readPartRequest, sealMessage, } from "../../protocol/index.js";
import { blockRows } from "../../protocol/messages/parts.js";
import { ElementReader } from "./element-reader.js";
import { FairShares, QUEUED_BYTES } from "./fair-server.js";
import { keptRead, ServedRead } from "./served-read.js";
/**
 * Checksums of the values of blocks, computed once for each version: many trainers pull the same
 * version, and the checksum is a third of a pull's cost at the host.
 */
export class KnownChecksums {
    #known = new WeakMap();
    /** Returns the checksum of all current values of a block; `values` is a copy of them. */
    of(block, values) {
        const known = this.#known.get(block);
        if (known?.version === block.version)
            return known.crc;
        const crc = checksum(values);
        this.#known.set(block, { version: block.version, crc });
        return crc;
    }
}
/** Bounds the memory of pending reads: their indices and columns are copied, because buffers of requests are reused. */
class HeldBytes {
    #shard;
    /** Bytes held by trainer. */
    #shares = new FairShares(QUEUED_BYTES);
    constructor(shard) {
        this.#shard = shard;
    }
    /**
     * Takes so many bytes for a trainer's read; returns what releases them, to be called once.
     * @throws BUSY if the pending reads hold too many bytes.
     */
    take(trainer, received) {
        if (!this.#shares.take(trainer, received)) {
            const { each: expected, all } = QUEUED_BYTES;
            throw busy(`shard ${this.#shard}: expected at most ${expected} bytes of blocks and indices in one trainer's pending reads and ${all} in all`, { shard: this.#shard, expected, received });
        }
        return () => this.#shares.giveBack(trainer, received);
    }
}
/** Answers requests for the values of blocks, once the fold has reached the position or step that they name. */
export class ServedValues {
    #served;
    #conditions;
    #responder;
    #held;
    #checksums = new KnownChecksums();
    constructor(served, conditions, responder) {
        this.#served = served;
        this.#conditions = conditions;
        this.#responder = responder;
        this.#held = new HeldBytes(served.number);
    }
    /** Answers a pull of one block, whose message has these fields and, for a part, its index as `data`. */
    pull(asker, block, fields, data) {
        const responder = this.#responder;
        const request = parsePullRequest(fields);
        const release = this.#held.take(asker.from, data.length);
        const part = Uint8Array.from(data);
        const answer = () => {
            const willAnswer = responder.respond(asker, (allocate) => {
                release();
                return this.#values({ ...block, request, part }, allocate);
            });
            if (!willAnswer)
                release();
        };
        this.#conditions.afterBoth(asker, request, answer, (error) => {
            release();
            responder.refuse(asker, error);
        });
    }
    /** Answers a batched read, in chunks. */
    read(asker, bytes) {
        const responder = this.#responder;
        const request = decodeBatchRead(bytes);
        const release = this.#held.take(asker.from, bytes.length);
        const read = new ServedRead(this.#served, responder, keptRead(request));
        const answer = () => {
            responder.respondInChunks(asker, (allocate) => read.next(allocate), release);
        };
        this.#conditions.afterBoth(asker, request, answer, (error) => {
            release();
            responder.refuse(asker, error);
        });
    }
    #values({ parameter, index, request, part }, allocate) {
        const { shard, position } = this.#served;
        const { epoch, encoding } = request;
        const block = shard.block(parameter, index);
        if (block?.epoch !== epoch) {
            throw new PserverError("STALE_EPOCH", `${parameter} block ${index}: expected epoch ${block?.epoch ?? "none"}; received ${epoch}`, { parameter, block: index, expected: block?.epoch, received: epoch });
        }
        const { dtype, version } = block;
        const reader = new ElementReader(shard.memory, block, {
            part: request.part && readPartRequest(request.part, part, blockRows(block)),
            encoding,
        });
        const head = { epoch, dtype, version, ...position };
        const reply = encoding === undefined ? head : { ...head, encoding };
        const draft = draftPullReply(reply, reader.bytes, allocate);
        // A copy: the block may change before the broker has taken the message.
        reader.read(draft.data);
        const isWhole = request.part === undefined && encoding === undefined;
        return sealMessage(draft, isWhole ? this.#checksums.of(block, draft.data) : undefined);
    }
}
//# sourceMappingURL=reads.js.map