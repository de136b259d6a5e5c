import { TRAINERS_MAX, UNSETTLED_BLOCK_BYTES, UNSETTLED_BYTES_MAX } from "../../protocol/index.js";
/**
 * How far ahead of the fold a session may be. A client that waits for its outcomes stays far below, even if its calls
 * end at their deadlines and it sends others.
 */
export const BACKLOG_BYTES_MAX = 4 * UNSETTLED_BYTES_MAX;
/** Time within which folded records are counted together. */
const STEP_MS = 10;
/**
 * Finds the sessions that send without waiting for their outcomes. When a record is folded, what was folded of its
 * session since the broker has stored it is what the session had in the journal before it, not folded yet.
 */
export class BacklogWatch {
    #backlogs = new Map();
    /** The least time between storing and folding so far: the difference of the clocks, and the shortest way. */
    #leastLagMs = Number.POSITIVE_INFINITY;
    /** Takes a record; true, once for each session, if the session was too far ahead of the fold when it sent it. */
    isTooFarAhead({ trainer, session, payloadBytes, storedMs, foldedMs }) {
        this.#leastLagMs = Math.min(this.#leastLagMs, foldedMs - storedMs);
        const backlog = this.#of(trainer, session);
        const sentMs = storedMs + this.#leastLagMs;
        while (backlog.steps[0] !== undefined && backlog.steps[0].foldedMs <= sentMs) {
            backlog.bytesBefore = backlog.steps.shift()?.bytes ?? 0;
        }
        const isAhead = backlog.bytes - backlog.bytesBefore > BACKLOG_BYTES_MAX;
        backlog.bytes += payloadBytes + UNSETTLED_BLOCK_BYTES;
        const last = backlog.steps.at(-1);
        if (last !== undefined && foldedMs - last.foldedMs < STEP_MS)
            last.bytes = backlog.bytes;
        else
            backlog.steps.push({ foldedMs, bytes: backlog.bytes });
        const isNew = isAhead && !backlog.isReported;
        backlog.isReported ||= isAhead;
        return isNew;
    }
    /** Returns the backlog of a session; a new session of the trainer begins a new one. */
    #of(trainer, session) {
        const known = this.#backlogs.get(trainer);
        if (known?.session === session)
            return known;
        const backlog = { session, bytes: 0, bytesBefore: 0, steps: [], isReported: false };
        this.#backlogs.delete(trainer);
        const [oldest] = this.#backlogs.keys();
        if (oldest !== undefined && this.#backlogs.size >= TRAINERS_MAX)
            this.#backlogs.delete(oldest);
        this.#backlogs.set(trainer, backlog);
        return backlog;
    }
}
//# sourceMappingURL=backlog-watch.js.map