import type { Msg, NatsConnection, Subscription } from "@nats-io/transport-node";
import {
  ensureError,
  type JobSubjects,
  type PserverError,
  TRAINER_REQUESTS,
} from "../../protocol/index.ts";
import type { BlockName } from "../fold/block-actor.ts";
import type { FairServer } from "./fair-server.ts";
import type { Asker, Responder } from "./responder.ts";

/** Works on the requests to a shard; what its methods throw is sent to the asker. */
export interface RequestHandler {
  pull(data: Uint8Array, asker: Asker, block: BlockName): void;
  outcome(data: Uint8Array, asker: Asker): void;
  step(data: Uint8Array, asker: Asker): void;
  /** A read of many blocks of the shard. */
  read(data: Uint8Array, asker: Asker): void;
  /** A request for the versions of the shard's fragments. */
  fragments(data: Uint8Array, asker: Asker): void;
  /** A request to the shard's owner, such as `status`. */
  ownerVerb(data: Uint8Array, asker: Asker, verb: string): void;
}

/** Makes a handler that refuses all requests with the error that `error` returns. */
export function refusingHandler(error: () => PserverError): RequestHandler {
  const refuse = (): never => {
    throw error();
  };
  const trainers = { outcome: refuse, step: refuse, read: refuse, fragments: refuse };
  return { pull: refuse, ...trainers, ownerVerb: refuse };
}

/** Resources that the subscriptions of a worker's shards share. */
export interface SubscriptionContext {
  readonly subjects: JobSubjects;
  /** Connection on which requests arrive and are answered. */
  readonly dataConnection: NatsConnection;
  readonly server: FairServer;
  readonly responder: Responder;
  readonly failedBlocks: FailedBlocks;
}

/** Kind of process that may send to a subject. */
type AskerKind = "trainer" | "host";

type Handle = (data: Uint8Array, asker: Asker, verb: string) => void;

/** Receives the requests to one shard and its block actors, and passes them to a handler. */
export class ShardSubscriptions {
  readonly #shard: number;
  readonly #context: SubscriptionContext;
  readonly #mayAnswer: () => boolean;
  readonly #blocks: Map<string, Subscription> = new Map();
  #handler: RequestHandler;
  #fixed: Subscription[] = [];
  #leaveFailedBlocks: () => void = () => undefined;
  #refused = 0;

  /** `mayAnswer`: whether this host is known to own the shard at this moment. */
  constructor(
    shard: number,
    context: SubscriptionContext,
    mayAnswer: () => boolean,
    handler: RequestHandler,
  ) {
    this.#shard = shard;
    this.#context = context;
    this.#mayAnswer = mayAnswer;
    this.#handler = handler;
  }

  /** Requests without an answer because their reply subject was outside the asker's inbox. */
  get refused(): number {
    return this.#refused;
  }

  /** Subscribes for the shard and these blocks. */
  open(blocks: Iterable<BlockName>): void {
    if (this.#fixed.length > 0) return;
    this.#openShard();
    for (const block of blocks) this.blockAdded(block);
  }

  /**
   * Subscribes for a shard that has failed, and for all its blocks, also those that it does not know. `handler` gets
   * the requests from now on, also those that are waiting.
   */
  openFailed(handler: RequestHandler = this.#handler): void {
    this.#handler = handler;
    if (this.#fixed.length === 0) this.#openShard();
    for (const subscription of this.#blocks.values()) subscription.unsubscribe();
    this.#blocks.clear();
    // The error does not depend on the block.
    this.#leaveFailedBlocks = this.#context.failedBlocks.add(this.#shard, (message) =>
      this.#receive(message, "trainer", (data, asker) =>
        this.#handler.pull(data, asker, { parameter: "", index: 0 }),
      ),
    );
  }

  #openShard(): void {
    const { owner, ...requests } = this.#context.subjects.shardRequests(this.#shard);
    this.#fixed = [
      ...TRAINER_REQUESTS.map((verb) =>
        this.#subscribe(requests[verb], (data, asker) => this.#handler[verb](data, asker)),
      ),
      this.#subscribe(
        owner,
        (data, asker, verb) => this.#handler.ownerVerb(data, asker, verb),
        "host",
      ),
    ];
  }

  /** Subscribes for a new block actor. */
  blockAdded({ parameter, index }: BlockName): void {
    const subject = this.#context.subjects.block(parameter, index);
    if (this.#fixed.length === 0 || this.#blocks.has(subject)) return;
    const pull: Handle = (data, asker) => this.#handler.pull(data, asker, { parameter, index });
    this.#blocks.set(subject, this.#subscribe(subject, pull));
  }

  /** Unsubscribes for a block actor that is gone. */
  blockRemoved({ parameter, index }: BlockName): void {
    const subject = this.#context.subjects.block(parameter, index);
    this.#blocks.get(subject)?.unsubscribe();
    this.#blocks.delete(subject);
  }

  /** Ends all subscriptions; requests that are waiting are dropped. */
  close(): void {
    for (const subscription of [...this.#fixed, ...this.#blocks.values()])
      subscription.unsubscribe();
    this.#fixed = [];
    this.#blocks.clear();
    this.#leaveFailedBlocks();
  }

  #subscribe(subject: string, handle: Handle, from: AskerKind = "trainer"): Subscription {
    return this.#context.dataConnection.subscribe(subject, {
      callback: (error, message) => {
        if (error === null) this.#receive(message, from, handle);
      },
    });
  }

  #receive(message: Msg, from: AskerKind, handle: Handle): void {
    const { server, responder } = this.#context;
    if (!this.#mayAnswer()) return;
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
  #run(asker: Asker, work: () => void): void {
    if (this.#fixed.length === 0 || !this.#mayAnswer()) return;
    try {
      work();
    } catch (error) {
      this.#context.responder.refuse(asker, ensureError(error));
    }
  }

  /**
   * Returns the id of the asker and the verb; undefined if the answer would not go to the asker's own inbox:
   * elsewhere, the asker could have this host publish where it may not publish itself.
   */
  #sender(
    subject: string,
    reply: string,
    from: AskerKind,
  ): { id: string; verb: string } | undefined {
    const { subjects } = this.#context;
    try {
      const sender = subjects.parseSender(subject);
      const isAllowed =
        from === "host"
          ? subjects.isHostInbox(reply, sender.id)
          : subjects.mayAnswer(reply, sender.id);
      return isAllowed ? sender : undefined;
    } catch {
      // The subject names no sender.
      return undefined;
    }
  }
}

/** Answers a pull of a block of one shard with the error of the shard. */
type Refuse = (message: Msg) => void;

/** Says where blocks lie. */
export interface BlockPlaces {
  /**
   * Returns the shard of a parameter's block `index`; undefined if that is unknown. It does not throw.
   */
  shardOf(parameter: string, index: number): Promise<number | undefined>;
}

/**
 * Receives the pulls of all blocks of the job while a shard of this worker has failed. Such a shard may not know its
 * blocks, because it has not folded their `init`; yet whoever pulls them is to get the error instead of waiting for
 * an owner. One subscription serves all failed shards.
 */
export class FailedBlocks {
  readonly #connection: NatsConnection;
  readonly #subjects: JobSubjects;
  readonly #places: BlockPlaces;
  readonly #refusals: Map<number, Refuse> = new Map();
  #subscription: Subscription | undefined;

  constructor(connection: NatsConnection, subjects: JobSubjects, places: BlockPlaces) {
    this.#connection = connection;
    this.#subjects = subjects;
    this.#places = places;
  }

  /** Passes the pulls of the shard's blocks to `refuse`, until the returned function is called. */
  add(shard: number, refuse: Refuse): () => void {
    this.#refusals.set(shard, refuse);
    this.#subscription ??= this.#connection.subscribe(this.#subjects.allPulls(), {
      callback: (error, message) => {
        if (error === null) void this.#forward(message);
      },
    });
    return () => this.#remove(shard, refuse);
  }

  #remove(shard: number, refuse: Refuse): void {
    // A later owner of the same shard may have failed, too.
    if (this.#refusals.get(shard) === refuse) this.#refusals.delete(shard);
    if (this.#refusals.size > 0) return;
    this.#subscription?.unsubscribe();
    this.#subscription = undefined;
  }

  async #forward(message: Msg): Promise<void> {
    const block = this.#subjects.parsePull(message.subject);
    if (block === undefined) return;
    const shard = await this.#places.shardOf(block.parameter, block.index);
    if (shard !== undefined) this.#refusals.get(shard)?.(message);
  }
}
