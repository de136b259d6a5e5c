import { PermissionViolationError } from "@nats-io/transport-node";
import { decodeMessage } from "../../protocol/codec.js";
import { ensureError, healsWithTime, PserverError, retryAfterMs, } from "../../protocol/errors.js";
import { refusalText, storeRefusalCode } from "../../protocol/jetstream-errors.js";
import { throwIfError } from "../../protocol/messages/outcomes.js";
import { payloadBytesMaxOf, publishBulk, trafficOf } from "../../transport/bulk-transport.js";
import { parsePubAck } from "../../transport/jetstream.js";
import { Backoff, orObstacle } from "../calls/calls.js";
/**
 * {@link Wire} over nats.js.
 * @internal
 */
export class NatsWire {
    inbox;
    #connected = true;
    #connection;
    #listeners = [];
    #fail;
    constructor(connection, inbox, fail) {
        this.#connection = connection;
        this.inbox = inbox;
        this.#fail = fail;
    }
    /** Wraps a connection and watches it from now on. Calls `fail` when it cannot be used any more. */
    static open(connection, inbox, fail) {
        const wire = new NatsWire(connection, inbox, fail);
        wire.#watch().catch((error) => fail(ensureError(error)));
        return wire;
    }
    get connected() {
        return this.#connected;
    }
    get payloadBytesMax() {
        return payloadBytesMaxOf(this.#connection);
    }
    publish(subject, bytes, reply) {
        if (bytes.length > this.payloadBytesMax) {
            throw new PserverError("TOO_LARGE", `message of ${bytes.length} bytes: the broker takes at most ${this.payloadBytesMax} (max_payload)`, { expected: this.payloadBytesMax, received: bytes.length, subject });
        }
        if (this.#connection.isClosed() || this.#connection.isDraining()) {
            throw new PserverError("CLOSED", "the connection to the broker is closed");
        }
        publishBulk(this.#connection, subject, bytes, reply);
    }
    flush() {
        return this.#connection.flush();
    }
    get receivedBytes() {
        return trafficOf(this.#connection)?.receivedBytes ?? 0;
    }
    get leftBytes() {
        return trafficOf(this.#connection)?.leftBytes ?? 0;
    }
    receive(name, callback) {
        this.#connection.subscribe(`${this.inbox}.${name}`, {
            callback: (error, message) => {
                if (error === null)
                    callback(toInboxMessage(message));
                else
                    this.#fail(subscriptionFailed(`${this.inbox}.${name}`, error));
            },
        });
    }
    listen(listener) {
        this.#listeners.push(listener);
    }
    async #watch() {
        for await (const status of this.#connection.status()) {
            if (status.type === "disconnect") {
                this.#connected = false;
                for (const listener of this.#listeners)
                    listener.disconnected?.();
            }
            if (status.type === "reconnect") {
                this.#connected = true;
                for (const listener of this.#listeners)
                    listener.reconnected?.();
            }
            if (status.type === "error" && status.error instanceof PermissionViolationError) {
                const { operation, subject } = status.error;
                // The refusal of a subscription is reported to the subscription's own callback.
                if (operation === "publish") {
                    const error = denied(`publishing to ${subject}`, status.error);
                    for (const listener of this.#listeners)
                        listener.denied?.(subject, error);
                }
            }
        }
    }
}
/** Makes the error of a call that had no connection. */
function disconnected() {
    return new PserverError("NO_BROKER", "the connection to the broker is lost; the client goes on trying to reconnect");
}
/** Makes the error for something that the broker's permissions forbid. */
function denied(what, cause) {
    return new PserverError("DENIED", `the broker refuses ${what}: check the user's permissions`, {}, { cause });
}
function subscriptionFailed(subject, error) {
    return error instanceof PermissionViolationError
        ? denied(`subscribing to ${subject}`, error)
        : ensureError(error);
}
function toInboxMessage(message) {
    const { subject, data } = message;
    return {
        token: subject.slice(subject.lastIndexOf(".") + 1),
        noResponders: data.length === 0 && message.headers?.code === 503,
        data,
    };
}
/** The beginning of the error message for each code. */
const REFUSALS = {
    JOURNAL_FULL: "the journal is full",
    JOURNAL_FAULT: "the broker cannot write the journal",
    JETSTREAM_UNAVAILABLE: "the journal cannot store at the moment",
    NO_JETSTREAM: "the broker runs without JetStream",
    TOO_LARGE: "the journal takes no record this large",
};
/**
 * Reads the broker's answer to a journal record.
 * @throws BAD_MESSAGE if it is none, or of a stream that is no journal of the job.
 */
export function parseJournalAck(message, subjects) {
    if (message.noResponders) {
        return {
            kind: "later",
            error: new PserverError("NO_OWNER", `no journal takes records of job ${subjects.job}: the broker has restarted, or its stream was deleted`),
        };
    }
    const ack = parsePubAck(message.data);
    if (ack.kind === "refused")
        return refusal(ack.error);
    const { shard, generation } = subjects.parseJournalStream(ack.stream);
    return { kind: "stored", shard, position: { generation, seq: ack.seq } };
}
function refusal({ code: status, errorCode, description }) {
    const answer = { status, errorCode, description };
    const code = storeRefusalCode(answer);
    const error = new PserverError(code, `${REFUSALS[code] ?? "the journal refused the record"}: ${refusalText(answer)}`, { brokerCode: errorCode, brokerMessage: description });
    return { kind: error.retryable ? "later" : "refused", error };
}
/** Returned by {@link Ask.read}: further messages of the answer follow. */
export const MORE = Symbol("more");
/** Returned by {@link Ask.read}: messages of the answer are missing, so the request is sent again. */
export const ASK_AGAIN = Symbol("ask again");
/** How long an answer may take, once the broker has read the request, before the request is repeated. */
const REPEAT_MS = 1_000;
/** Longest pause between repeats. Pauses grow up to it, so that a slow host is not given more than it can answer. */
const REPEAT_MS_MAX = 4_000;
/** How often pending requests are checked: one timer for all costs less than one for each. */
const TICK_MS = 100;
/** So many bytes count as progress: many more than those of PINGs in the time of a call. */
const PROGRESS_BYTES = 16 * 1024;
/** Notices when a count of bytes has risen by so many that it is progress. */
export class ByteProgress {
    #bytes = 0;
    /** Takes the present count, which begins anew with each connection; returns whether it is progress. */
    take(bytes) {
        if (bytes < this.#bytes)
            this.#bytes = 0;
        if (bytes - this.#bytes < PROGRESS_BYTES)
            return false;
        this.#bytes = bytes;
        return true;
    }
}
/**
 * Requests under way, each with a token. The first answer counts, whichever repeat of the request it is to.
 * The `request` of nats.js repeats nothing and does not survive reconnects.
 *
 * A request is repeated only when its answer is not on the way: the answer to a PING that was sent a second after the
 * broker had read the request comes after all that the broker had sent until then. Of an answer in several messages each
 * begins that time anew. So nothing is asked for twice because a link is slow.
 */
export class Requests {
    #wire;
    #pending = new Map();
    #tokens = 0;
    #timer;
    #isPinging = false;
    #carriesValues;
    #received = new ByteProgress();
    #left = new ByteProgress();
    constructor(wire, carriesValues) {
        this.#wire = wire;
        this.#carriesValues = carriesValues;
    }
    /**
     * Makes an empty table of requests, which receives answers on the wire from now on.
     * @param carriesValues whether answers and received bytes are progress of the calls that wait: not where calls ask
     * the same question until the answer is what they wait for.
     */
    static open(wire, carriesValues) {
        const requests = new Requests(wire, carriesValues);
        const all = requests.#pending;
        wire.receive("reply.*", (message) => all.get(message.token)?.receive(message));
        wire.listen({
            reconnected: () => {
                for (const pending of [...all.values()])
                    pending.send();
            },
            denied: (subject, error) => {
                for (const pending of [...all.values()]) {
                    if (pending.subject === subject)
                        pending.fail(error);
                }
            },
        });
        return requests;
    }
    /**
     * Sends a request and returns the answer. Repeats the request with growing delays while no answer is on the way,
     * nobody listens, or the host's error says that a retry can help.
     * @throws the error in the answer, what `read` throws, or at the deadline the last error seen.
     */
    ask(ask) {
        return new Promise((resolve, reject) => {
            const token = (++this.#tokens).toString(36);
            const answered = this.#carriesValues ? () => ask.deadline.progressed() : () => { };
            const hooks = { done: () => this.#pending.delete(token), answered, resolve, reject };
            const pending = new PendingAsk(this.#wire, token, ask, hooks);
            this.#pending.set(token, pending);
            pending.start();
            this.#arm();
        });
    }
    /** Sends a message without waiting for an answer; does nothing once the connection is closed. */
    tell(subject, body) {
        try {
            const token = (++this.#tokens).toString(36);
            this.#wire.publish(subject, body, `${this.#wire.inbox}.reply.${token}`);
        }
        catch (error) {
            if (ensureError(error).code !== "CLOSED")
                throw error;
        }
    }
    #arm() {
        if (this.#timer !== undefined || this.#pending.size === 0)
            return;
        this.#timer = setTimeout(() => {
            this.#timer = undefined;
            if (this.#carriesValues)
                this.#noteProgress();
            this.#ping();
            this.#arm();
        }, TICK_MS);
        // The deadlines of the requests keep the process alive.
        this.#timer.unref();
    }
    /** Tells the calls of waiting requests that bytes have come or gone: requests or answers may be behind them. */
    #noteProgress() {
        const hasReceived = this.#received.take(this.#wire.receivedBytes);
        const hasSent = this.#left.take(this.#wire.leftBytes);
        if (!hasReceived && !hasSent)
            return;
        for (const pending of this.#pending.values())
            pending.noteProgress(hasReceived);
    }
    /** Asks the broker how far it has read, if a request needs to know; one PING serves all requests. */
    #ping() {
        const sentAtMs = performance.now();
        const asking = [...this.#pending.values()].filter((pending) => pending.needsPing(sentAtMs));
        if (this.#isPinging || !this.#wire.connected || asking.length === 0)
            return;
        this.#isPinging = true;
        const sends = asking.map((pending) => pending.sends);
        const answered = () => {
            this.#isPinging = false;
            asking.forEach((pending, i) => {
                if (pending.sends === sends[i])
                    pending.answeredPing(sentAtMs);
            });
        };
        // Once the connection is back every request is sent again.
        const lost = () => {
            this.#isPinging = false;
        };
        this.#wire.flush().then(answered, lost);
    }
}
class PendingAsk {
    #wire;
    #token;
    #ask;
    #hooks;
    #startedAtMs = performance.now();
    #backoff;
    #repeatMs = REPEAT_MS;
    #sends = 0;
    /** Whether the last copy is on its way to the broker, as far as is known. */
    #isUnread = false;
    /** Whether hosts have answered with an error, and with nothing else since: bytes are of other answers then. */
    #isRefused = false;
    /** When a PING is to be sent whose answer proves that no answer of the last copy is on the way. */
    #repeatAtMs = Number.POSITIVE_INFINITY;
    #retryTimer;
    #stopListening = () => { };
    #last;
    constructor(wire, token, ask, hooks) {
        this.#wire = wire;
        this.#token = token;
        this.#ask = ask;
        this.#hooks = hooks;
    }
    get subject() {
        return this.#ask.subject;
    }
    start() {
        const { deadline } = this.#ask;
        deadline.obstacle = () => this.#obstacle();
        this.#stopListening = deadline.onEnd((end) => this.fail(this.#atEnd(end)));
        if (deadline.ended === undefined)
            this.send();
    }
    /** How often it was sent. */
    get sends() {
        return this.#sends;
    }
    send() {
        clearTimeout(this.#retryTimer);
        this.#sends += 1;
        this.#isUnread = true;
        this.#repeatAtMs = Number.POSITIVE_INFINITY;
        const wire = this.#wire;
        try {
            const reply = `${wire.inbox}.reply.${this.#token}`;
            wire.publish(this.#ask.subject, this.#ask.body(reply), reply);
        }
        catch (error) {
            this.fail(ensureError(error));
            return;
        }
    }
    /** Returns whether it is to be known whether the broker has read the request, or has an answer on the way. */
    needsPing(nowMs) {
        return this.#ask.repeat !== false && (this.#isUnread || nowMs >= this.#repeatAtMs);
    }
    /** Notes that a PING that was sent after the last copy of the request was answered. */
    answeredPing(sentAtMs) {
        if (this.#isUnread) {
            this.#isUnread = false;
            this.#scheduleRepeat(this.#repeatMs);
            this.#repeatMs = Math.min(this.#repeatMs * 2, REPEAT_MS_MAX);
        }
        else if (sentAtMs >= this.#repeatAtMs) {
            this.send();
        }
    }
    /** Notes that bytes have come, or gone, on the connection. */
    noteProgress(hasReceived) {
        const mayWait = hasReceived ? !this.#isRefused : this.#isUnread && this.#sends === 1;
        if (mayWait)
            this.#ask.deadline.progressed();
    }
    #scheduleRepeat(pauseMs) {
        this.#repeatAtMs = performance.now() + pauseMs;
    }
    receive(received) {
        if (received.noResponders) {
            this.#retry(this.#ask.nobody());
            return;
        }
        try {
            const message = decodeMessage(received.data);
            throwIfError(message.fields);
            const answer = this.#ask.read(message);
            if (answer === MORE) {
                this.#ask.deadline.progressed();
                this.#isUnread = false;
                this.#isRefused = false;
                this.#scheduleRepeat(REPEAT_MS);
                return;
            }
            if (answer === ASK_AGAIN) {
                this.send();
                return;
            }
            this.#stop();
            this.#hooks.answered();
            this.#hooks.resolve(answer);
        }
        catch (caught) {
            const error = ensureError(caught);
            if (healsWithTime(error.code))
                this.#retry(error);
            else
                this.fail(error);
        }
    }
    fail(error) {
        this.#stop();
        this.#hooks.reject(error);
    }
    #retry(error) {
        const { retryMs } = this.#ask;
        this.#last = error;
        this.#isRefused = true;
        this.#isUnread = false;
        if (retryMs !== undefined && performance.now() - this.#startedAtMs >= retryMs) {
            this.fail(error);
            return;
        }
        this.#ask.refused?.();
        this.#backoff ??= new Backoff();
        this.#repeatAtMs = Number.POSITIVE_INFINITY;
        clearTimeout(this.#retryTimer);
        const pauseMs = Math.max(this.#backoff.nextMs(), retryAfterMs(error));
        this.#retryTimer = setTimeout(() => this.send(), pauseMs);
    }
    #obstacle() {
        return this.#wire.connected ? this.#last : disconnected();
    }
    /** Returns the error of a request at its end: at its timeout, the last obstacle. */
    #atEnd(end) {
        return orObstacle(end, this.#obstacle());
    }
    #stop() {
        clearTimeout(this.#retryTimer);
        this.#stopListening();
        this.#hooks.done();
    }
}
//# sourceMappingURL=wire.js.map