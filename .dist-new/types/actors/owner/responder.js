import { busy, encodeAnswers, encodeError, ensureError, } from "../../protocol/index.js";
import { payloadBytesMaxOf, publishBulk } from "../../transport/bulk-transport.js";
import { FairQueue, replyThatFits, SLICE_MS, TimeSlice } from "./fair-server.js";
/** Limit of the bytes on their way to the broker; nats.js itself would buffer without limit. */
const IN_FLIGHT_BYTES_MAX = 6 * 1024 * 1024;
/** Bytes after which a flush finds out whether the broker has taken them. */
const PROBE_BYTES = 2 * 1024 * 1024;
/** Limits of the waiting replies; beyond them, askers get BUSY. */
const QUEUED = { each: 4_096, all: 16_384 };
/**
 * Sends the replies of a worker, a limited number of bytes at a time: to each trainer in order, and to
 * trainers in turn, with equal shares of the bytes. A reply is made only when it can be sent, so a
 * waiting one takes no memory and carries the newest values.
 */
export class Responder {
    #connection;
    #queue = new FairQueue(QUEUED);
    #slice = new TimeSlice(SLICE_MS, () => this.#drain());
    #inFlightBytes = 0;
    #unprobedBytes = 0;
    #unprobed = [];
    #pool;
    /** `pool`: provides the memory of large replies. */
    constructor(connection, pool) {
        this.#connection = connection;
        this.#pool = pool;
    }
    /** The largest message that the broker takes. */
    get payloadBytesMax() {
        return payloadBytesMaxOf(this.#connection);
    }
    /**
     * Sends what `make` returns, or the error that it throws, now or when the trainer's turn comes.
     * @returns whether `make` was or will be called; if not, the asker has got BUSY.
     */
    respond(asker, make) {
        const chunk = (allocate) => ({ bytes: make(allocate), more: false });
        return this.respondInChunks(asker, chunk, () => undefined);
    }
    /**
     * Sends the chunks that `make` returns until one says that no more follow; an error that it throws ends the reply,
     * too. Other replies, those of this asker included, are sent in between.
     * @param end called once, when `make` will not be called again.
     * @returns whether `make` was or will be called; if not, the asker has got BUSY.
     */
    respondInChunks({ from, reply }, make, end) {
        const willAnswer = this.#queueUp(from, { reply, make, end });
        if (willAnswer)
            this.#drain();
        return willAnswer;
    }
    /** Sends an error in place of a reply. */
    refuse(asker, error) {
        this.respond(asker, () => encodeError(error));
    }
    #drain() {
        while (this.#inFlightBytes < IN_FLIGHT_BYTES_MAX && !this.#slice.isOver) {
            const served = this.#queue.next();
            if (served === undefined)
                return;
            this.#slice.begin();
            this.#serve(served);
        }
    }
    #serve({ trainer, task }) {
        const startedMs = performance.now();
        const { bytes, more } = this.#make(task);
        const workMs = performance.now() - startedMs;
        this.#send(task.reply, bytes);
        if (more)
            this.#queueUp(trainer, task);
        else
            task.end();
        this.#queue.charge(trainer, workMs, bytes.length);
    }
    /** Queues a reply, or the rest of one; false if the asker has got BUSY instead. */
    #queueUp(trainer, task) {
        if (this.#queue.push(trainer, task))
            return true;
        const expected = QUEUED.each;
        const text = `expected at most ${expected} waiting replies of one trainer and ${QUEUED.all} in all`;
        this.#send(task.reply, encodeError(busy(text, { expected })));
        task.end();
        return false;
    }
    #send(reply, made) {
        if (this.#connection.isClosed())
            return;
        const bytes = replyThatFits(made, this.payloadBytesMax);
        publishBulk(this.#connection, reply, bytes);
        this.#inFlightBytes += bytes.length;
        this.#unprobedBytes += bytes.length;
        this.#unprobed.push(bytes);
        if (this.#unprobedBytes >= PROBE_BYTES)
            this.#probe();
    }
    #probe() {
        const [bytes, replies] = [this.#unprobedBytes, this.#unprobed];
        this.#unprobedBytes = 0;
        this.#unprobed = [];
        const gone = () => {
            this.#inFlightBytes -= bytes;
            this.#drain();
        };
        const taken = () => {
            for (const reply of replies)
                this.#pool.giveBack(reply);
            gone();
        };
        // A lost connection has dropped the bytes, but its socket may still refer to their memory.
        this.#connection.flush().then(taken, gone);
    }
    #make({ make }) {
        try {
            return make((bytes) => this.#pool.take(bytes));
        }
        catch (error) {
            return { bytes: encodeError(ensureError(error)), more: false };
        }
    }
}
/** Limit of the outcomes in one message, to keep it small. */
const OUTCOMES_MAX = 512;
/** Collects outcomes, and sends each session its own in one message. */
export class OutgoingOutcomes {
    #connection;
    #shard;
    #sessions = new Map();
    constructor(connection, shard) {
        this.#connection = connection;
        this.#shard = shard;
    }
    /** Adds an outcome; ignores one without a reply subject, whose sender asks for it. */
    add({ reply, session, outcome }) {
        if (reply === "")
            return;
        const key = `${session} ${reply}`;
        const answers = this.#sessions.get(key);
        if (answers === undefined)
            this.#sessions.set(key, { reply, session, outcomes: [outcome] });
        else
            answers.outcomes.push(outcome);
    }
    /** Sends the collected outcomes. */
    flush(generation) {
        const sessions = this.#sessions;
        this.#sessions = new Map();
        if (this.#connection.isClosed())
            return;
        const payloadBytesMax = payloadBytesMaxOf(this.#connection);
        for (const { reply, session, outcomes } of sessions.values()) {
            for (let start = 0; start < outcomes.length; start += OUTCOMES_MAX) {
                const part = outcomes.slice(start, start + OUTCOMES_MAX);
                const answers = { shard: this.#shard, generation, session, outcomes: part };
                this.#connection.publish(reply, encodeAnswers(answers, payloadBytesMax));
            }
        }
    }
    /** Drops the collected outcomes: an owner without a valid lease must not answer. */
    clear() {
        this.#sessions.clear();
    }
}
//# sourceMappingURL=responder.js.map