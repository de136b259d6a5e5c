import { CONTROL_VERBS, decodeMessage, encodeError, encodeMessage, ensureError, isOneOf, LIFECYCLE_VERBS, PserverError, } from "../../protocol/index.js";
import { payloadBytesMaxOf } from "../../transport/bulk-transport.js";
import { FairServer, replyThatFits, } from "../owner/fair-server.js";
/**
 * Returns the lanes of lifecycle requests: those that keep sessions alive are served first, those that only read
 * last.
 */
function lifecycleLanes() {
    const sessions = ["join", "renew", "leave", "enter", "exit"];
    const reading = ["status"];
    const writing = LIFECYCLE_VERBS.filter((verb) => ![...sessions, ...reading].includes(verb));
    return [
        { verbs: sessions, atOnce: 64, atOnceEach: 8 },
        { verbs: writing, atOnce: 32, atOnceEach: 8 },
        { verbs: reading, atOnce: 16, atOnceEach: 4 },
    ];
}
/**
 * Returns the lanes of control requests. These take long and cost much, so few may wait and saves run one at a time.
 * Requests that only read do not wait for snapshots.
 */
function controlLanes() {
    const saving = ["save"];
    const reading = ["hosts", "versions"];
    const others = CONTROL_VERBS.filter((verb) => ![...saving, ...reading].includes(verb));
    const bounds = { atOnce: 16, atOnceEach: 2, requestBytes: 1024 * 1024 };
    return [
        { verbs: reading, ...bounds },
        { verbs: others, ...bounds },
        {
            verbs: saving,
            atOnce: 1,
            requestBytes: 4 * 1024 * 1024 - 64 * 1024,
            retryAfterMs: 2_000,
        },
    ];
}
/** Begins to answer the lifecycle and control requests of a job; the caller closes what is returned. */
export function serveRequests(reception, lifecycle, control, onOtherAccount) {
    const { subjects } = reception;
    const handle = (...request) => control.handle(...request);
    const kinds = [
        {
            subject: subjects.allLifecycle(),
            lanes: lifecycleLanes(),
            onOtherAccount,
            handle: async (trainer, verb, message) => {
                if (isOneOf(LIFECYCLE_VERBS, verb))
                    return await lifecycle.handle(trainer, verb, message);
                throw noSuchVerb(verb);
            },
        },
        { subject: subjects.allControl(), lanes: controlLanes(), handle },
        {
            subject: subjects.allStops(),
            isForAll: true,
            lanes: [{ verbs: ["stop"], atOnce: 16, atOnceEach: 2 }],
            handle,
        },
    ];
    return kinds.map((kind) => new HostRequests(reception, kind));
}
/** Receives the requests of one kind. Each request goes to one host of the job, or to all, as the kind says. */
export class HostRequests {
    #reception;
    #kind;
    #server;
    #subscription;
    constructor(reception, kind) {
        this.#reception = reception;
        this.#kind = kind;
        this.#server = new FairServer(reception.refusals, kind.lanes);
        this.#subscription = reception.connection.subscribe(kind.subject, {
            ...(kind.isForAll === true ? {} : { queue: "hosts" }),
            callback: (error, message) => {
                if (error === null)
                    this.#receive(message);
            },
        });
    }
    /** Receives no more requests, refuses waiting ones with BUSY, and waits for those in work. */
    async close() {
        this.#subscription.unsubscribe();
        await this.#server.close();
    }
    #receive(message) {
        const { subjects } = this.#reception;
        const { lanes, onOtherAccount } = this.#kind;
        const reply = message.reply ?? "";
        const sender = this.#sender(message.subject);
        if (sender === undefined)
            return;
        const { id: from, verb } = sender;
        // A reply to any other subject would let the asker write where only this host may.
        if (!subjects.mayAnswer(reply, from)) {
            if (subjects.isOfOtherAccount(reply))
                onOtherAccount?.(from);
            return;
        }
        const refuse = (error) => this.#respond(reply, encodeError(error));
        const lane = lanes.findIndex(({ verbs }) => verbs.includes(verb));
        if (lane < 0) {
            this.#server.refuse(from, () => refuse(noSuchVerb(verb)));
            return;
        }
        const run = async (data) => this.#respond(reply, await this.#reply(from, verb, data));
        this.#server.take({ from, data: message.data, run, refuse }, lane);
    }
    #sender(subject) {
        try {
            return this.#reception.subjects.parseSender(subject);
        }
        catch {
            // The subject names no asker, so there is nobody to answer.
            return undefined;
        }
    }
    async #reply(asker, verb, data) {
        const { subjects } = this.#reception;
        const tell = (inbox, entries) => {
            if (subjects.isTrainerInbox(inbox, asker))
                this.#respond(inbox, encodeMessage(entries));
        };
        try {
            return encodeMessage(await this.#kind.handle(asker, verb, decodeMessage(data), tell));
        }
        catch (error) {
            return encodeError(ensureError(error));
        }
    }
    #respond(reply, bytes) {
        const { connection } = this.#reception;
        if (connection.isClosed())
            return;
        connection.publish(reply, replyThatFits(bytes, payloadBytesMaxOf(connection)));
    }
}
function noSuchVerb(received) {
    return new PserverError("BAD_MESSAGE", `no such verb: ${received}`, { received });
}
//# sourceMappingURL=host-requests.js.map