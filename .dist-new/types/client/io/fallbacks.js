import { PserverError } from "../../protocol/errors.js";
import { encodeOutcomeRequest, parseAnswers } from "../../protocol/messages/outcomes.js";
import { lostSince } from "../../protocol/messages/position.js";
import { Deadline } from "../calls/calls.js";
/** How long a shard is asked about one replacement of its journal. */
const GIVE_UP_MS = 600_000;
/** Pause before a shard that could not answer is asked again. */
const RETRY_MS = 1_000;
/**
 * Finds out what was lost when the journal of a shard was replaced, and tells the application once of each
 * loss. Any position of the new journal shows that it was replaced; the shard's owner knows which records of
 * the old one were not kept.
 */
export class Fallbacks {
    #options;
    #told = new Set();
    #deadlines = new Set();
    #closed = false;
    constructor(options) {
        this.#options = options;
    }
    /** Begins to ask what was lost of the journal of position `seen`, which has been replaced. */
    replaced(shard, seen) {
        void this.#find(shard, seen);
    }
    /** Ends all requests. */
    close() {
        this.#closed = true;
        for (const deadline of this.#deadlines) {
            deadline.end(new PserverError("CLOSED", "the client is closed"));
        }
    }
    async #find(shard, seen) {
        if (this.#closed)
            return;
        const deadline = Deadline.start("fallback", { timeoutMs: GIVE_UP_MS });
        this.#deadlines.add(deadline);
        try {
            const fallbacks = await this.#ask(shard, seen, deadline);
            for (const lost of lostSince(fallbacks, seen))
                this.#tell(shard, lost);
        }
        catch (error) {
            if (deadline.ended === undefined)
                throw error;
        }
        finally {
            deadline.dispose();
            this.#deadlines.delete(deadline);
        }
    }
    /** Asks what a shard has lost until it can answer; @throws what ended the deadline. */
    async #ask(shard, seen, deadline) {
        const { requests, subjects, trainer, session } = this.#options;
        while (true) {
            try {
                const answers = await requests.ask({
                    subject: subjects.outcome(shard, trainer),
                    body: () => encodeOutcomeRequest({ session: session(), numbers: [], ...seen }),
                    read: parseAnswers,
                    deadline,
                    nobody: () => new PserverError("NO_OWNER", `no host serves shard ${shard}`, { shard }),
                });
                return answers.fallbacks ?? [];
            }
            catch {
                // A shard that has failed again can answer when it serves again.
                await deadline.sleep(RETRY_MS);
            }
        }
    }
    #tell(shard, { generation, from, to }) {
        const key = `${shard} ${generation} ${from}`;
        if (this.#told.has(key))
            return;
        this.#told.add(key);
        const { onLost, subjects, tell } = this.#options;
        onLost(shard);
        const fallback = { shard, generation, lost: { from, to } };
        // An exception of the application must not end the work of the client.
        if (tell !== undefined)
            queueMicrotask(() => tell(fallback));
        else
            warn(subjects.job, fallback);
    }
}
function warn(job, { shard, generation, lost }) {
    const { from, to } = lost;
    const records = from === to ? `record ${from}` : `records ${from} to ${to}`;
    process.emitWarning(`job ${job}, shard ${shard}: ${records} of generation ${generation} of its journal are lost, and with ` +
        "them updates that had been acknowledged; the shard goes on without them. The option onFallback of " +
        "connect hears of this instead.", { type: "PserverFallbackWarning", code: "PSERVER_FALLBACK" });
}
//# sourceMappingURL=fallbacks.js.map