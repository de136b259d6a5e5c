import { busy, fallbacksSince, PserverError, quoteName, WAITING_FOR_MAX, } from "../../protocol/index.js";
import { systemClock } from "../concurrent.js";
import { FairShares } from "./fair-server.js";
/** Limits of the pending requests of one kind in one shard; beyond them, askers get BUSY. */
const PENDING = { each: 2_048, all: 8_192 };
const WAIT = { kind: "wait" };
const ANSWER = { kind: "answer" };
/** Pending requests of one shard, re-evaluated after each fold. */
class PendingReads {
    #shard;
    #evaluate;
    #timeout;
    #clock;
    #shares = new FairShares(PENDING);
    /** The pending requests, with functions that cancel their timeouts. */
    #reads = new Map();
    constructor(options) {
        this.#shard = options.shard;
        this.#evaluate = options.evaluate;
        this.#timeout = options.timeout;
        this.#clock = options.clock ?? systemClock;
    }
    /** Answers or refuses a request now, at a later {@link evaluateAll}, or after its time. */
    add(read) {
        const { from, wanted, waitMs } = read;
        if (this.#settle(read))
            return;
        if (!this.#shares.take(from, 1)) {
            const expected = PENDING.each;
            const text = `shard ${this.#shard}: expected at most ${expected} pending requests of one trainer and ${PENDING.all} in all`;
            read.refuse(busy(text, { shard: this.#shard, expected }));
            return;
        }
        const cancel = this.#clock.after(waitMs, () => {
            this.#remove(read);
            read.refuse(this.#timeout(wanted, waitMs));
        });
        this.#reads.set(read, cancel);
    }
    /** Number of pending requests. */
    get size() {
        return this.#reads.size;
    }
    /** Yields what each pending request waits for. */
    *wanted() {
        for (const { wanted } of this.#reads.keys())
            yield wanted;
    }
    /** Answers or refuses all pending requests that need not wait any longer. */
    evaluateAll() {
        for (const read of this.#reads.keys())
            this.#settle(read);
    }
    /** Refuses all pending requests. */
    refuseAll(error) {
        for (const read of this.#reads.keys()) {
            this.#remove(read);
            read.refuse(error);
        }
    }
    /** Answers or refuses a request unless it has to wait; false if it has to. */
    #settle(read) {
        const evaluation = this.#evaluate(read.wanted);
        if (evaluation.kind === "wait")
            return false;
        this.#remove(read);
        if (evaluation.kind === "answer")
            read.run();
        else
            read.refuse(evaluation.error);
        return true;
    }
    #remove(read) {
        this.#reads.get(read)?.();
        if (this.#reads.delete(read))
            this.#shares.giveBack(read.from, 1);
    }
}
/** Lets requests wait until the fold of a shard has reached what they need. */
export class ReadConditions {
    #served;
    constructor(served) {
        this.#served = served;
    }
    /** Calls `run` once the fold has reached a position; calls `refuse` if it does not in time or cannot. */
    afterPosition({ from }, { generation, seq, waitMs }, run, refuse) {
        const read = { from, wanted: { generation, seq, asker: from }, waitMs, run, refuse };
        this.#served.positions.at(this.#served.position, read);
    }
    /** Calls `run` once the fold has reached a position and then a step, both within `waitMs`. */
    afterStep(asker, request, wanted, run, refuse) {
        const { shard, steps } = this.#served;
        const deadline = performance.now() + request.waitMs;
        const arrived = () => {
            const waitMs = Math.max(0, Math.ceil(deadline - performance.now()));
            steps.at(shard.steps, { from: asker.from, wanted, waitMs, run, refuse });
        };
        this.afterPosition(asker, request, arrived, refuse);
    }
    /** Calls `run` once the fold has reached the position and the step that a read of values names. */
    afterBoth(asker, request, run, refuse) {
        const { step } = request;
        // Step 0 counts as closed, also in a job without steps.
        if (step === undefined || step === 0)
            this.afterPosition(asker, request, run, refuse);
        else {
            const wanted = { revision: 0, step, trainer: asker.from, isRead: true };
            this.afterStep(asker, request, wanted, run, refuse);
        }
    }
}
/** Time before the first query for a request, and between two queries. */
const QUERY_AFTER_MS = 200;
/**
 * Asks the broker for the end of a shard's journal while requests wait for a position above the fold. One query at a
 * time serves all requests, and none is made for the first moments: the fold is rarely far behind.
 */
class EndQueries {
    #deps;
    #clock;
    #queries = 0;
    #known;
    #isDue = false;
    constructor(deps) {
        this.#deps = deps;
        this.#clock = deps.clock ?? systemClock;
    }
    /** Number of queries begun. A request is evaluated by a later query than those begun before it. */
    get queries() {
        return this.#queries;
    }
    /** Result of the last successful query. */
    get known() {
        return this.#known;
    }
    /** Starts to query, soon and then repeatedly, while requests wait. To be called for each new request. */
    watch() {
        if (this.#isDue)
            return;
        this.#isDue = true;
        this.#clock.after(QUERY_AFTER_MS, () => this.#query());
    }
    #query() {
        const wanted = this.#deps.awaited();
        if (wanted === undefined || this.#reaches(wanted)) {
            this.#finish();
            return;
        }
        this.#queries += 1;
        const query = this.#queries;
        const { generation } = wanted;
        this.#deps.lastSeq(wanted, (lastSeq) => {
            // Without an answer, requests go on waiting until they get TIMEOUT.
            if (lastSeq !== undefined) {
                this.#known = { generation, lastSeq, query };
                this.#deps.onKnown();
            }
            this.#finish();
        });
    }
    #finish() {
        this.#isDue = false;
        if (this.#deps.awaited() !== undefined)
            this.watch();
    }
    /** Whether the journal is known to contain a position. */
    #reaches({ generation, seq }) {
        return this.#known?.generation === generation && seq <= this.#known.lastSeq;
    }
}
/** Requests that are answered once the fold of a shard has reached a position. Does no I/O. */
export class PositionQueue {
    #deps;
    #reads;
    #end;
    #folded = { generation: 0, seq: 0 };
    constructor(deps) {
        const { shard, lastSeq, clock } = deps;
        this.#deps = deps;
        this.#reads = new PendingReads({
            shard,
            evaluate: (wanted) => this.#evaluate(wanted),
            timeout: (wanted, waitMs) => this.#timeout(wanted, waitMs),
            clock,
        });
        this.#end = new EndQueries({
            lastSeq,
            awaited: () => this.#highest(),
            onKnown: () => this.#reads.evaluateAll(),
            clock,
        });
    }
    /**
     * Runs `run` once the fold, now at `folded`, has reached the wanted position. Calls `refuse` with
     * TIMEOUT after `waitMs`, JOURNAL_REPLACED for a position in an old journal, JOURNAL_LOST when the
     * journal is known to end before the position, or BUSY if too many requests are pending.
     */
    at(folded, { wanted, ...read }) {
        this.#folded = folded;
        this.#reads.add({ ...read, wanted: { ...wanted, queries: this.#end.queries } });
        if (this.#reads.size > 0)
            this.#end.watch();
    }
    /** Answers requests for positions up to `folded`, and refuses those for an old journal. */
    advance(folded) {
        this.#folded = folded;
        this.#reads.evaluateAll();
    }
    /** Refuses all pending requests. */
    refuseAll(error) {
        this.#reads.refuseAll(error);
    }
    #evaluate(wanted) {
        const folded = this.#folded;
        if (wanted.seq === 0)
            return ANSWER;
        if (wanted.generation < folded.generation)
            return this.#refuseReplaced(wanted);
        if (wanted.generation > folded.generation)
            return WAIT;
        if (wanted.seq <= folded.seq)
            return ANSWER;
        const known = this.#end.known;
        // A query that began before the request may have missed a record stored in between.
        const isLost = known?.generation === wanted.generation &&
            known.query > wanted.queries &&
            known.lastSeq < wanted.seq;
        return isLost ? this.#refuseLost(wanted, known.lastSeq) : WAIT;
    }
    /** Returns the highest position of the present journal that a request waits for. */
    #highest() {
        let highest;
        for (const wanted of this.#reads.wanted()) {
            if (wanted.generation !== this.#folded.generation)
                continue;
            if (highest === undefined || wanted.seq > highest.seq)
                highest = wanted;
        }
        return highest;
    }
    #refuseLost(wanted, lastSeq) {
        const { shard, onLost } = this.#deps;
        const { generation, seq, asker } = wanted;
        const error = new PserverError("JOURNAL_LOST", `shard ${shard}: the journal ends at record ${lastSeq}; record ${seq}, which the asker ` +
            "has seen, is lost", { shard, expected: { generation, seq: lastSeq }, received: { generation, seq } });
        onLost(error, { generation, seq, asker });
        return { kind: "refuse", error };
    }
    #refuseReplaced({ generation, seq }) {
        const { shard, fallbacks } = this.#deps;
        const folded = this.#folded;
        const error = new PserverError("JOURNAL_REPLACED", `shard ${shard}: position ${seq} is of journal generation ${generation}; ` +
            `generation ${folded.generation} has replaced it`, {
            shard,
            expected: folded,
            received: { generation, seq },
            fallbacks: fallbacksSince(fallbacks(), generation),
        });
        return { kind: "refuse", error };
    }
    #timeout({ generation, seq }, waitMs) {
        const { shard } = this.#deps;
        return new PserverError("TIMEOUT", `shard ${shard}: position ${seq} was not folded within ${waitMs} ms`, { shard, expected: { generation, seq }, received: this.#folded });
    }
}
/** Requests that are answered once a step of a shard has closed. Does no I/O. */
export class StepQueue {
    #shard;
    #reads;
    constructor(shard, clock) {
        this.#shard = shard;
        this.#reads = new PendingReads({
            shard,
            evaluate: (wanted) => evaluateStep(wanted, wanted.progress),
            timeout: (wanted, waitMs) => this.#timeout(wanted, waitMs),
            clock,
        });
    }
    /**
     * Runs `run` once the steps have progressed as wanted. Calls `refuse` with TIMEOUT after `waitMs`, naming the
     * trainers waited for; with the error of {@link evaluateStep}; or with BUSY if too many requests are pending.
     * `progress` is a live view.
     */
    at(progress, { wanted, ...read }) {
        this.#reads.add({ ...read, wanted: { ...wanted, progress } });
    }
    /** Answers or refuses requests after records have been folded. */
    advance() {
        this.#reads.evaluateAll();
    }
    /** Refuses all pending requests. */
    refuseAll(error) {
        this.#reads.refuseAll(error);
    }
    #timeout(wanted, waitMs) {
        const { revision, step, progress } = wanted;
        const waitingFor = progress.waitingFor(WAITING_FOR_MAX);
        return new PserverError("TIMEOUT", `shard ${this.#shard}: ${reason(wanted, progress, waitingFor)}; waited ${waitMs} ms`, {
            shard: this.#shard,
            expected: { revision, step },
            received: { revision: progress.revision, step: progress.closed },
            waitingFor,
        });
    }
}
/**
 * Decides whether a request is answered, waits, or is refused: with UNSUPPORTED in an `async` job, or with NOT_MEMBER
 * if the step might never close because of the asker. A trainer waits only for steps that it has ended. If it is no
 * member, nobody waits for it. If the shard's clock of it is lower, it was removed and has entered again without
 * knowing, by a request that came late: then all others wait for it.
 */
export function evaluateStep(wanted, progress) {
    const { revision, step, trainer, isRead } = wanted;
    if (progress.synchronization.mode === "async") {
        const text = "the trainers of this job do not keep step: it is async";
        const details = { expected: "sync or ssp", received: "async" };
        return { kind: "refuse", error: new PserverError("UNSUPPORTED", text, details) };
    }
    if (progress.revision < revision)
        return WAIT;
    if (progress.closed >= step)
        return ANSWER;
    const clock = progress.clockOf(trainer);
    if (clock === undefined ? isRead : clock >= step)
        return WAIT;
    const what = clock === undefined
        ? "is not a member of the job's steps"
        : `has become a member of the job's steps anew, in which it has ended step ${clock}`;
    const error = new PserverError("NOT_MEMBER", `trainer ${quoteName(trainer)} ${what}: it has to enter before it waits for step ${step}`, { trainer, expected: step, received: clock ?? progress.closed });
    return { kind: "refuse", error };
}
function reason({ revision, step }, progress, waitingFor) {
    const { synchronization, closed, memberCount } = progress;
    if (progress.revision < revision) {
        return `members of revision ${revision} are not known yet, only those of ${progress.revision}`;
    }
    const what = `step ${step} has not closed, the last one is ${closed}`;
    if (!progress.started) {
        const needed = synchronization.mode === "async" ? 0 : synchronization.trainers;
        return `${what}: ${memberCount} of ${needed} trainers have entered`;
    }
    if (memberCount === 0)
        return `${what}: no trainer is a member any more`;
    const names = waitingFor.map(quoteName).join(", ");
    const more = waitingFor.length < WAITING_FOR_MAX ? "" : ", perhaps others";
    return `${what}: step ${closed + 1} waits for ${names}${more}`;
}
//# sourceMappingURL=pending-reads.js.map