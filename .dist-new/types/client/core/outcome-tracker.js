import { endsSession, healsWithTime, reactionTo, reactionToRejection, } from "../../protocol/errors.js";
import { laterPosition } from "../../protocol/messages/position.js";
import { noteReplaced } from "./shard-window.js";
import { expectedPosition } from "./update-call.js";
/** How long an answer may take before it is asked for, and the time between two requests for it. */
export const ASK_AFTER_MS = 1_000;
const ASK_AGAIN_MS = 1_000;
const ASK_SOON_MS = 200;
/**
 * Takes the answers of shard owners, and asks for answers that do not come: an owner that has just taken a
 * shard over folds records without answering, and answers that are sent while the client is disconnected are
 * lost.
 */
export class OutcomeTracker {
    #deps;
    constructor(deps) {
        this.#deps = deps;
    }
    /** Takes answers of this session from the owner of a shard; `isReply` if they were asked for. */
    take(window, answers, isReply) {
        const { shard, generation, session, outcomes } = answers;
        for (const outcome of outcomes) {
            this.#deps.positions.note(shard, { generation, seq: outcome.seq });
            const update = window?.get(outcome.n);
            if (update !== undefined)
                this.#settle(update, outcome, session, isReply);
        }
    }
    /** Asks for the outcomes that are due in a shard, in one message. */
    ask(window, session, nowMs) {
        const { first } = window.stored;
        if (first === undefined || first.askAtMs > nowMs)
            return;
        if (nowMs - window.askedAtMs < ASK_AGAIN_MS)
            return;
        window.askedAtMs = nowMs;
        // Outcomes that are nearly due are asked for as well: their own request would follow at once.
        const dueMs = nowMs + ASK_SOON_MS;
        const numbers = [];
        let generation = Number.POSITIVE_INFINITY;
        let seq = 0;
        for (let n = window.done + 1; n <= window.last; n++) {
            const update = window.get(n);
            if (update === undefined || update.storedGeneration === 0 || update.askAtMs > dueMs)
                continue;
            // One request is about one journal, the oldest.
            if (update.storedGeneration > generation)
                continue;
            if (update.storedGeneration < generation) {
                generation = update.storedGeneration;
                numbers.length = 0;
                seq = 0;
            }
            numbers.push(n);
            seq = Math.max(seq, update.storedSeq);
        }
        this.#deps.commands.askOutcomes(window.shard, session, numbers, { generation, seq });
    }
    /** Takes an error in answer to a request for outcomes; `retryAfterMs` is how long it says to wait. */
    askFailed(window, failure, retryAfterMs) {
        const { code } = failure;
        if (healsWithTime(code)) {
            window.askedAtMs -= ASK_AGAIN_MS - Math.max(ASK_SOON_MS, retryAfterMs);
        }
        else if (endsSession(code)) {
            this.#deps.settler.endSession(failure);
        }
        else if (reactionTo(code) === "replaced") {
            noteReplaced(this.#deps.positions, window.shard, failure);
            const { generation } = this.#deps.positions.get(window.shard);
            this.#giveUpFrom(window, { generation: 1, seq: 0 }, generation, failure);
        }
        else if (reactionTo(code) === "lost") {
            // If a journal has lost its last records and goes on, only the records behind its end are lost.
            const { generation, seq } = expectedPosition(failure);
            const end = { generation: Math.max(generation, 1), seq };
            this.#giveUpFrom(window, end, Number.POSITIVE_INFINITY, failure);
        }
        // Any other error counts as no answer: the request is repeated until the call's deadline.
    }
    /** Gives up the records that are stored behind `end` in a journal before `generation`. */
    #giveUpFrom(window, end, generation, reason) {
        for (let n = window.done + 1; n <= window.last; n++) {
            const update = window.get(n);
            if (update === undefined || update.storedGeneration === 0)
                continue;
            const stored = { generation: update.storedGeneration, seq: update.storedSeq };
            const isLost = stored.generation < generation && laterPosition(end, stored) === stored;
            if (isLost)
                this.#deps.settler.giveUp(update, reason);
        }
    }
    #settle(update, outcome, session, isReply) {
        const { settler } = this.#deps;
        const { code } = outcome;
        if (code === undefined || !isOfTheSession(code)) {
            settler.settle(update, outcome);
            return;
        }
        // That the session has ended says nothing about an earlier copy of the record. Only a record that was
        // published once, and was answered itself, is known not to have been applied.
        const isFirstCopy = !isReply && update.sends === 1;
        const message = outcome.message ?? "the session is over";
        const details = { shard: update.shard, n: update.n, received: session };
        const failure = { code, message, details };
        const reaction = reactionTo(code);
        if (reaction === "rejoin" && isFirstCopy)
            update.isRejoined = true;
        else if (reaction === "end" && isFirstCopy)
            settler.settle(update, outcome);
        else if (reaction !== "rejoin")
            settler.giveUp(update, failure);
        if (endsSession(code))
            settler.endSession(failure);
    }
}
/** Returns whether an outcome is about the session, not about the record. */
function isOfTheSession(code) {
    return endsSession(code) || reactionToRejection(code) === "forgotten";
}
//# sourceMappingURL=outcome-tracker.js.map