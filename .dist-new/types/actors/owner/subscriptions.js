import { ensureError } from "../../protocol/index.js";
/** Makes a handler that refuses all requests with the error that `error` returns. */
export function refusingHandler(error) {
    const refuse = () => {
        throw error();
    };
    return { pull: refuse, outcome: refuse, step: refuse, read: refuse, ownerVerb: refuse };
}
/** Receives the requests to one shard and its block actors, and passes them to a handler. */
export class ShardSubscriptions {
    #shard;
    #context;
    #mayAnswer;
    #blocks = new Map();
    #handler;
    #fixed = [];
    #leaveFailedBlocks = () => undefined;
    #refused = 0;
    /** `mayAnswer`: whether this host is known to own the shard at this moment. */
    constructor(shard, context, mayAnswer, handler) {
        this.#shard = shard;
        this.#context = context;
        this.#mayAnswer = mayAnswer;
        this.#handler = handler;
    }
    /** Requests without an answer because their reply subject was outside the asker's inbox. */
    get refused() {
        return this.#refused;
    }
    /** Subscribes for the shard and these blocks. */
    open(blocks) {
        if (this.#fixed.length > 0)
            return;
        this.#openShard();
        for (const block of blocks)
            this.blockAdded(block);
    }
    /**
     * Subscribes for a shard that has failed, and for all its blocks, also those that it does not know. `handler` gets
     * the requests from now on, also those that are waiting.
     */
    openFailed(handler = this.#handler) {
        this.#handler = handler;
        if (this.#fixed.length === 0)
            this.#openShard();
        for (const subscription of this.#blocks.values())
            subscription.unsubscribe();
        this.#blocks.clear();
        // The error does not depend on the block.
        this.#leaveFailedBlocks = this.#context.failedBlocks.add(this.#shard, (message) => this.#receive(message, "trainer", (data, asker) => this.#handler.pull(data, asker, { parameter: "", index: 0 })));
    }
    #openShard() {
        const { outcome, step, read, owner } = this.#context.subjects.shardRequests(this.#shard);
        this.#fixed = [
            this.#subscribe(outcome, (data, asker) => this.#handler.outcome(data, asker)),
            this.#subscribe(step, (data, asker) => this.#handler.step(data, asker)),
            this.#subscribe(read, (data, asker) => this.#handler.read(data, asker)),
            this.#subscribe(owner, (data, asker, verb) => this.#handler.ownerVerb(data, asker, verb), "host"),
        ];
    }
    /** Subscribes for a new block actor. */
    blockAdded({ parameter, index }) {
        const subject = this.#context.subjects.block(parameter, index);
        if (this.#fixed.length === 0 || this.#blocks.has(subject))
            return;
        const pull = (data, asker) => this.#handler.pull(data, asker, { parameter, index });
        this.#blocks.set(subject, this.#subscribe(subject, pull));
    }
    /** Unsubscribes for a block actor that is gone. */
    blockRemoved({ parameter, index }) {
        const subject = this.#context.subjects.block(parameter, index);
        this.#blocks.get(subject)?.unsubscribe();
        this.#blocks.delete(subject);
    }
    /** Ends all subscriptions; requests that are waiting are dropped. */
    close() {
        for (const subscription of [...this.#fixed, ...this.#blocks.values()])
            subscription.unsubscribe();
        this.#fixed = [];
        this.#blocks.clear();
        this.#leaveFailedBlocks();
    }
    #subscribe(subject, handle, from = "trainer") {
        return this.#context.dataConnection.subscribe(subject, {
            callback: (error, message) => {
                if (error === null)
                    this.#receive(message, from, handle);
            },
        });
    }
    #receive(message, from, handle) {
        const { server, responder } = this.#context;
        if (!this.#mayAnswer())
            return;
        const reply = message.reply ?? "";
        const sender = this.#sender(message.subject, reply, from);
        if (sender === undefined) {
            this.#refused++;
            return;
        }
        const { id, verb } = sender;
        // A host and a trainer of the same name are different askers; names contain no space.
        const asker = { from: from === "host" ? `host ${id}` : id, reply };
        server.take({
            from: asker.from,
            data: message.data,
            run: (data) => this.#run(asker, () => handle(data, asker, verb)),
            refuse: (error) => responder.refuse(asker, error),
        });
    }
    /** Works on a request, unless another host may have taken the shard over while it waited. */
    #run(asker, work) {
        if (this.#fixed.length === 0 || !this.#mayAnswer())
            return;
        try {
            work();
        }
        catch (error) {
            this.#context.responder.refuse(asker, ensureError(error));
        }
    }
    /**
     * Returns the id of the asker and the verb; undefined if the answer would not go to the asker's own inbox:
     * elsewhere, the asker could have this host publish where it may not publish itself.
     */
    #sender(subject, reply, from) {
        const { subjects } = this.#context;
        try {
            const sender = subjects.parseSender(subject);
            const isAllowed = from === "host"
                ? subjects.isHostInbox(reply, sender.id)
                : subjects.mayAnswer(reply, sender.id);
            return isAllowed ? sender : undefined;
        }
        catch {
            // The subject names no sender.
            return undefined;
        }
    }
}
/**
 * Receives the pulls of all blocks of the job while a shard of this worker has failed. Such a shard may not know its
 * blocks, because it has not folded their `init`; yet whoever pulls them is to get the error instead of waiting for
 * an owner. One subscription serves all failed shards.
 */
export class FailedBlocks {
    #connection;
    #subjects;
    #places;
    #shards;
    #refusals = new Map();
    #subscription;
    /** `shards`: number of shards of the job. */
    constructor(connection, subjects, places, shards) {
        this.#connection = connection;
        this.#subjects = subjects;
        this.#places = places;
        this.#shards = shards;
    }
    /** Passes the pulls of the shard's blocks to `refuse`, until the returned function is called. */
    add(shard, refuse) {
        this.#refusals.set(shard, refuse);
        this.#subscription ??= this.#connection.subscribe(this.#subjects.allPulls(), {
            callback: (error, message) => {
                if (error === null)
                    void this.#forward(message);
            },
        });
        return () => this.#remove(shard, refuse);
    }
    #remove(shard, refuse) {
        // A later owner of the same shard may have failed, too.
        if (this.#refusals.get(shard) === refuse)
            this.#refusals.delete(shard);
        if (this.#refusals.size > 0)
            return;
        this.#subscription?.unsubscribe();
        this.#subscription = undefined;
    }
    async #forward(message) {
        const block = this.#subjects.parsePull(message.subject);
        if (block === undefined)
            return;
        const shard = await this.#places.shardOf(block.parameter, block.index, this.#shards);
        if (shard !== undefined)
            this.#refusals.get(shard)?.(message);
    }
}
//# sourceMappingURL=subscriptions.js.map