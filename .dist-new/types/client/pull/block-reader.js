import { reactionTo } from "../../protocol/errors.js";
import { allOrFirstError, Backoff, orObstacle } from "../calls/calls.js";
import { noteReplaced } from "../core/shard-window.js";
import { blockOfEntry, PendingReads, planRequests, } from "./read-plan.js";
import { readBatch, readSingle } from "./read-requests.js";
import { ReadWindow } from "./read-window.js";
/** Pause before blocks are asked for again after their journal was replaced. */
const AGAIN_MS = 10;
/** Least bytes that a request counts in the window; bounds the number of requests under way. */
const REQUEST_BYTES_MIN = 16 * 1024;
/**
 * Reads blocks and parts of blocks. One window bounds the reads of all calls: as much as the link has lately brought in
 * 1.5 s, at most 16 MiB.
 */
export class BlockReader {
    #options;
    #window;
    constructor(options) {
        this.#options = options;
        this.#window = new ReadWindow(() => options.link.bytes);
    }
    /**
     * Reads blocks, not all at one moment. Returns undefined for each parameter that was read, and its new
     * description if it was initialized again during the read: its blocks must then be read again in the new
     * layout.
     */
    async readAll(reads, { encoding, step }, deadline) {
        const pending = new PendingReads(reads, encoding);
        const requests = planRequests(pending, this.#options.payloadBytesMax());
        await allOrFirstError(requests.map((request) => this.#read(pending, request, step, deadline)));
        return pending.replacedBy;
    }
    async #read(pending, request, step, deadline) {
        const isSingle = request.kind === "single";
        const { shard } = isSingle ? blockOfEntry(pending, request) : request;
        const windowBytes = Math.max(REQUEST_BYTES_MIN, request.bytes);
        const place = await this.#window.enter(shard, windowBytes, deadline);
        const askedAtMs = performance.now();
        const receivedBefore = this.#options.receivedBytes();
        try {
            if (isSingle)
                await this.#readSingle(pending, request, step, deadline, place);
            else
                await this.#readBatch(pending, request, step, deadline, place);
            // Whatever the link has brought meanwhile shows how fast it is; the count begins anew with a connection.
            const received = this.#options.receivedBytes() - receivedBefore;
            const nowMs = performance.now();
            if (received > 0)
                this.#options.link.note(received, nowMs - askedAtMs, nowMs);
        }
        finally {
            place.leave();
        }
    }
    async #readSingle(pending, request, step, deadline, place) {
        const { shard } = blockOfEntry(pending, request);
        const refused = () => place.refused();
        const backoff = new Backoff();
        while (!request.isDone && pending.replacedBy[request.place] === undefined) {
            const problem = await readSingle(this.#options, pending, request, step, deadline, refused);
            if (problem !== undefined) {
                const again = { shard, places: [request.place], backoff };
                await this.#prepareAgain(pending, again, deadline, problem);
            }
        }
    }
    /** Reads entries of a shard together. */
    async #readBatch(pending, request, step, deadline, place) {
        const refused = () => place.refused();
        const backoff = new Backoff();
        for (let left = request; left !== undefined;) {
            const problem = await readBatch(this.#options, pending, left, step, deadline, refused);
            if (problem !== undefined) {
                const places = [...new Set(left.rest(pending)?.places)];
                const again = { shard: left.shard, places, backoff };
                await this.#prepareAgain(pending, again, deadline, problem);
            }
            left = left.rest(pending);
        }
    }
    /** Does what an error requires before reads ask again. */
    async #prepareAgain(pending, again, deadline, problem) {
        if (reactionTo(problem.code) === "replaced") {
            noteReplaced(this.#options.positions, again.shard, problem);
            // If the error names no newer journal, the next request would get it again at once.
            await deadline.sleep(AGAIN_MS);
        }
        else {
            await this.#lookUp(pending, again, deadline, problem);
        }
    }
    /**
     * Looks the parameters of reads up again, and notes those that were initialized again. If there are none, it waits,
     * longer each time: a shard that has lost blocks says so at once until hosts have noticed it, too.
     * @throws at the deadline, the reason for looking them up.
     */
    async #lookUp(pending, { places, backoff }, deadline, reason) {
        const before = places.map((place) => pending.reads[place].info);
        const names = before.map(({ name }) => name);
        const infos = await this.#refresh(names, deadline, reason);
        let isNew = false;
        infos.forEach((fresh, i) => {
            if (fresh.epoch === before[i]?.epoch)
                return;
            pending.replacedBy[places[i]] = fresh;
            isNew = true;
        });
        if (isNew)
            return;
        await deadline.sleep(backoff.nextMs()).catch((end) => {
            throw orObstacle(end, reason);
        });
    }
    async #refresh(names, deadline, reason) {
        try {
            return await this.#options.parameters.refreshAll(names, deadline);
        }
        catch (error) {
            const { ended } = deadline;
            throw ended !== undefined && error === ended ? orObstacle(ended, reason) : error;
        }
    }
}
//# sourceMappingURL=block-reader.js.map