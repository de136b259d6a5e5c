import { ensureError } from "../../protocol/index.js";
// A run of a command that makes a job writes thousands of entries of which no host knows yet. Whoever else writes into
// the bucket meanwhile has gone on without the run. So each write has a name, and names the one before it as the last
// write of the whole bucket: after any other write, the broker refuses all later ones of the run. A number of the
// last write would not do, because a write of somebody else takes the number that the next one of the run expects.
/** How many entries are sent before the first of them is acknowledged. */
const AT_ONCE = 256;
/** How often a write whose answer is lost is made. */
const TRIES_MAX = 3;
/** The writes of one run into a bucket, each directly after the one before. */
export class BucketChain {
    #bucket;
    #token;
    #overtaken;
    /** Number of writes that are stored. */
    #stored = 0;
    /**
     * `token`: that of the run, whose last write has the id {@link firstId}. `overtaken` makes the error for a write of
     * somebody else that has ended the chain.
     */
    constructor(bucket, token, overtaken) {
        this.#bucket = bucket;
        this.#token = token;
        this.#overtaken = overtaken;
    }
    /** Returns the id of the write with which the chain of a run begins. */
    static firstId(token) {
        return idOf(token, 0);
    }
    /**
     * Writes entries in this order, many of them at a time.
     * @throws the error of `overtaken` if somebody else has written to the bucket since the chain began: the entries up
     * to that write are stored, and none after it; the errors of {@link KvBucket}.
     */
    async write(entries) {
        for (let at = 0; at < entries.length; at += AT_ONCE) {
            await this.#writeTogether(entries.slice(at, at + AT_ONCE));
        }
    }
    async #writeTogether(entries) {
        const sent = entries.map((entry, i) => this.#send(entry, this.#stored + i));
        const ends = await Promise.allSettled(sent);
        let isAfterLost = false;
        for (const [i, entry] of entries.entries()) {
            const end = ends[i];
            const revision = end?.status === "fulfilled" ? end.value : undefined;
            if (revision === undefined) {
                if (end?.status === "fulfilled" && !isAfterLost)
                    throw this.#overtaken();
                // After one that was lost, all others are refused: they are sent again, too.
                isAfterLost = true;
                await this.#sendAgain(entry);
            }
            this.#stored += 1;
        }
    }
    async #sendAgain(entry) {
        for (let tries = 2;; tries++) {
            try {
                const revision = await this.#send(entry, this.#stored);
                if (revision === undefined)
                    throw this.#overtaken();
                return;
            }
            catch (error) {
                if (ensureError(error).code !== "TIMEOUT" || tries === TRIES_MAX)
                    throw error;
            }
        }
    }
    #send([key, value], before) {
        const [id, lastId] = [idOf(this.#token, before + 1), idOf(this.#token, before)];
        return this.#bucket.writeAfter(key, value, id, lastId);
    }
}
function idOf(token, number) {
    return `${token}-${number}`;
}
//# sourceMappingURL=bucket-chain.js.map