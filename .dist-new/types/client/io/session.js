import { randomUUID } from "node:crypto";
import { encodeMessage } from "../../protocol/codec.js";
import { ensureError, PserverError } from "../../protocol/errors.js";
import { parseJoinReply } from "../../protocol/messages/lifecycle-messages.js";
import { quoteName } from "../../protocol/names.js";
import { Deadline } from "../calls/calls.js";
import { newSessionRequest, SessionCore, } from "../core/session-core.js";
import { toError } from "./update-sender.js";
/** Requests by which hosts claim or renew the trainer's lease. */
const HOLDS_LEASE = ["join", "renew", "enter"];
/**
 * Does the I/O of the session core: joins, renews the lease, and sends lifecycle requests again in the next
 * session. Also keeps the core's timer.
 */
export class Session {
    #options;
    #core;
    #pending = new Map();
    #requests = 0;
    /** When the last request that has claimed or renewed the lease was sent. */
    #heldAtMs = Number.NEGATIVE_INFINITY;
    #reply;
    #renewal;
    #isRenewing = false;
    #background;
    constructor(options) {
        this.#options = options;
        this.#core = new SessionCore({ commands: this, listener: this });
    }
    /** The number of the session; 0 before the first. */
    get number() {
        return this.#reply?.session ?? 0;
    }
    /** Whether the lease may have run out: for its whole time no host has confirmed that it was renewed. */
    get mayBeOut() {
        return performance.now() - this.#heldAtMs >= (this.#reply?.leaseMs ?? 0);
    }
    /** Shards of the job. */
    get shards() {
        return this.#reply?.shards ?? 0;
    }
    /** How the trainers of the job keep step. */
    get synchronization() {
        return this.#reply?.synchronization ?? { mode: "async" };
    }
    /** Joins the job. @throws NO_HOST if no host of the job answers in time. */
    async join(deadline) {
        const token = randomUUID();
        const body = () => ({ token, ...this.#joined() });
        const reply = parseJoinReply(await this.#ask("join", body, deadline));
        this.#reply = reply;
        this.#core.joined(reply.session, reply.leaseMs, performance.now());
        this.#options.onHeld();
    }
    /**
     * Renews the lease now, unless that is under way: the broker may hold another job by now. Nothing before the first
     * join, which will tell.
     */
    confirm() {
        if (this.#reply !== undefined)
            this.#core.renewalDue();
    }
    /**
     * Sends a lifecycle request and returns the reply. Joins again if the session has ended.
     * @throws the error in the reply; NO_HOST if nobody answers in time.
     */
    request(verb, entries, deadline) {
        const request = newSessionRequest(++this.#requests);
        const body = () => ({ session: this.number, ...this.#joined(), ...entries });
        return new Promise((resolve, reject) => {
            const ask = () => {
                this.#ask(verb, body, deadline).then((fields) => {
                    this.#pending.delete(request.id);
                    resolve(fields);
                }, (error) => this.#onRequestFailed(request, ensureError(error), deadline));
            };
            this.#pending.set(request.id, { ask, reject, isWaiting: false, stopListening: () => { } });
            ask();
        });
    }
    /** Takes a host's word that the session is over: REJOIN begins a new one, SUPERSEDED is final. */
    ended(error) {
        this.#core.ended(error);
    }
    /** Gives the lease back. */
    async leave(deadline) {
        if (this.#reply === undefined || this.#core.isStopped)
            return;
        this.stop();
        await this.#ask("leave", () => ({ session: this.number, ...this.#joined() }), deadline);
    }
    /** Stops renewing and joining. */
    stop() {
        this.#core.stop();
        this.#background?.end(new PserverError("CLOSED", "the client is closed"));
    }
    rejoin(timeoutMs) {
        this.#inBackground("rejoin", timeoutMs, (deadline) => this.join(deadline)).catch((error) => this.#core.rejoinFailed(ensureError(error)));
    }
    renew(timeoutMs) {
        if (this.#isRenewing)
            return;
        this.#isRenewing = true;
        const body = () => ({ session: this.number, ...this.#joined() });
        const renewing = this.#inBackground("renew", timeoutMs, (deadline) => this.#ask("renew", body, deadline)).finally(() => {
            this.#isRenewing = false;
        });
        renewing.then(() => {
            this.#core.renewed(performance.now());
            this.#options.onHeld();
        }, (error) => this.#core.renewFailed(ensureError(error), performance.now()));
    }
    setRenewal(atMs) {
        clearTimeout(this.#renewal);
        if (!Number.isFinite(atMs))
            return;
        this.#renewal = setTimeout(() => this.#core.renewalDue(), atMs - performance.now());
        this.#renewal.unref();
    }
    repeatRequest(request) {
        const pending = this.#pending.get(request.id);
        if (pending === undefined)
            return;
        stopWaiting(pending);
        pending.ask();
    }
    failRequest(request, failure) {
        const pending = this.#pending.get(request.id);
        if (pending === undefined)
            return;
        this.#pending.delete(request.id);
        stopWaiting(pending);
        pending.reject(toError(failure));
    }
    loseClient(failure) {
        const error = toError(failure);
        this.#options.onLost(error.code === "SUPERSEDED" ? this.#superseded(error) : error);
    }
    sessionEnded() {
        this.#options.onEnded();
    }
    sessionBegan() {
        if (this.#reply !== undefined)
            this.#options.onJoined(this.#reply);
    }
    /**
     * Hands an error to the core. If the core lets the request wait for another session, it waits at most until
     * its call ends.
     */
    #onRequestFailed(request, error, deadline) {
        const pending = this.#pending.get(request.id);
        if (pending === undefined)
            return;
        pending.isWaiting = true;
        this.#core.requestFailed(request, error);
        if (!pending.isWaiting)
            return;
        pending.stopListening = deadline.onEnd((end) => {
            this.#core.requestEnded(request);
            this.failRequest(request, end);
        });
    }
    /** Names the job that this trainer has joined, so that no host takes another one for it. */
    #joined() {
        return this.#reply === undefined ? {} : { made: this.#reply.made };
    }
    async #ask(verb, body, deadline) {
        const { requests, subjects, trainer } = this.#options;
        const askedAtMs = performance.now();
        try {
            const fields = await requests.ask({
                subject: subjects.lifecycle(trainer, verb),
                body: () => encodeMessage(body()),
                read: ({ fields }) => fields,
                deadline,
                nobody: () => {
                    this.#options.onNobody();
                    return this.#noHost();
                },
            });
            if (HOLDS_LEASE.includes(verb))
                this.#heldAtMs = Math.max(this.#heldAtMs, askedAtMs);
            return fields;
        }
        catch (caught) {
            const error = ensureError(caught);
            if (error !== deadline.ended || error.code !== "TIMEOUT")
                throw error;
            const { code, message, details } = this.#noHost();
            throw new PserverError(code, `${error.message}; ${message}`, details, { cause: error });
        }
    }
    #noHost() {
        const { job } = this.#options.subjects;
        return new PserverError("NO_HOST", `no host of job ${quoteName(job)} answers: start one on this broker, or check the name of the job and the broker's address`, { job });
    }
    #superseded(cause) {
        const { trainer } = this.#options;
        return new PserverError("SUPERSEDED", `trainer ${quoteName(trainer)}: a newer session has joined under this id, so this client can do nothing more; give every process an id of its own`, { trainer, session: this.number }, { cause });
    }
    async #inBackground(what, timeoutMs, work) {
        const deadline = Deadline.start(what, { timeoutMs });
        this.#background = deadline;
        try {
            return await work(deadline);
        }
        finally {
            deadline.dispose();
        }
    }
}
function stopWaiting(pending) {
    pending.isWaiting = false;
    pending.stopListening();
    pending.stopListening = () => { };
}
//# sourceMappingURL=session.js.map