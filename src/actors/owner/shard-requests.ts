import type { Msg, NatsConnection, Subscription } from "@nats-io/transport-node";
import { ensureError, type JobSubjects, type PserverError } from "../../protocol/index.ts";
import type { BlockName } from "../fold/block.ts";
import type { FailedBlocks } from "./failed-blocks.ts";
import type { Intake } from "./intake.ts";
import type { Asker, Responder } from "./responder.ts";

/** Works on the requests to a shard; what its methods throw is sent to the asker. */
export interface RequestHandler {
  pull(data: Uint8Array, asker: Asker, block: BlockName): void;
  outcome(data: Uint8Array, asker: Asker): void;
  step(data: Uint8Array, asker: Asker): void;
  /** A read of many blocks of the shard. */
  read(data: Uint8Array, asker: Asker): void;
  /** A request to the shard's owner, such as `status`. */
  ownerVerb(data: Uint8Array, asker: Asker, verb: string): void;
}

/** A handler that refuses all requests with the present error. */
export function refusingHandler(error: () => PserverError): RequestHandler {
  const refuse = (): never => {
    throw error();
  };
  return { pull: refuse, outcome: refuse, step: refuse, read: refuse, ownerVerb: refuse };
}

/** Dependencies of {@link ShardRequests}. */
export interface ShardRequestsDeps {
  readonly shard: number;
  readonly connection: NatsConnection;
  readonly subjects: JobSubjects;
  /** Shared by all shards of the worker, as are the responder and the failed blocks. */
  readonly intake: Intake;
  readonly responder: Responder;
  readonly failedBlocks: FailedBlocks;
  /** Whether this host is known to own the shard at this moment. */
  readonly mayAnswer: () => boolean;
}

/** Kind of process that may send to a subject. */
type AskerKind = "trainer" | "host";

type Handle = (data: Uint8Array, asker: Asker, verb: string) => void;

/** Receives the requests to one shard and its block actors, and passes them to a handler. */
export class ShardRequests {
  readonly #deps: ShardRequestsDeps;
  readonly #blocks: Map<string, Subscription> = new Map();
  #handler: RequestHandler;
  #fixed: Subscription[] = [];
  #leaveFailedBlocks: () => void = () => undefined;
  #refused = 0;

  constructor(deps: ShardRequestsDeps, handler: RequestHandler) {
    this.#deps = deps;
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
   * Subscribes for a shard that has failed, and for all its blocks, also those that it does not know.
   * `handler` gets the requests from now on, also those that wait for their turn.
   */
  openFailed(handler: RequestHandler = this.#handler): void {
    this.#handler = handler;
    if (this.#fixed.length === 0) this.#openShard();
    for (const subscription of this.#blocks.values()) subscription.unsubscribe();
    this.#blocks.clear();
    // The error does not depend on the block.
    this.#leaveFailedBlocks = this.#deps.failedBlocks.add(this.#deps.shard, (message) =>
      this.#receive(message, "trainer", (data, asker) =>
        this.#handler.pull(data, asker, { parameter: "", index: 0 }),
      ),
    );
  }

  #openShard(): void {
    const { outcome, step, read, owner } = this.#deps.subjects.shardRequests(this.#deps.shard);
    this.#fixed = [
      this.#subscribe(outcome, (data, asker) => this.#handler.outcome(data, asker)),
      this.#subscribe(step, (data, asker) => this.#handler.step(data, asker)),
      this.#subscribe(read, (data, asker) => this.#handler.read(data, asker)),
      this.#subscribe(
        owner,
        (data, asker, verb) => this.#handler.ownerVerb(data, asker, verb),
        "host",
      ),
    ];
  }

  /** Subscribes for a new block actor. */
  blockAdded({ parameter, index }: BlockName): void {
    const subject = this.#deps.subjects.block(parameter, index);
    if (this.#fixed.length === 0 || this.#blocks.has(subject)) return;
    const pull: Handle = (data, asker) => this.#handler.pull(data, asker, { parameter, index });
    this.#blocks.set(subject, this.#subscribe(subject, pull));
  }

  /** Unsubscribes for a block actor that is gone. */
  blockRemoved({ parameter, index }: BlockName): void {
    const subject = this.#deps.subjects.block(parameter, index);
    this.#blocks.get(subject)?.unsubscribe();
    this.#blocks.delete(subject);
  }

  /** Ends all subscriptions; requests that wait for their turn are dropped. */
  close(): void {
    for (const subscription of [...this.#fixed, ...this.#blocks.values()])
      subscription.unsubscribe();
    this.#fixed = [];
    this.#blocks.clear();
    this.#leaveFailedBlocks();
  }

  #subscribe(subject: string, handle: Handle, from: AskerKind = "trainer"): Subscription {
    return this.#deps.connection.subscribe(subject, {
      callback: (error, message) => {
        if (error === null) this.#receive(message, from, handle);
      },
    });
  }

  #receive(message: Msg, from: AskerKind, handle: Handle): void {
    const { intake, responder, mayAnswer } = this.#deps;
    if (!mayAnswer()) return;
    const reply = message.reply ?? "";
    const sender = this.#sender(message.subject, reply, from);
    if (sender === undefined) {
      this.#refused++;
      return;
    }
    const { id, verb } = sender;
    // A host and a trainer of the same name are different askers; names contain no space.
    const asker = { from: from === "host" ? `host ${id}` : id, reply };
    intake.take({
      from: asker.from,
      data: message.data,
      run: (data) => this.#run(asker, () => handle(data, asker, verb)),
      refuse: (busy) => responder.refuse(asker, busy),
    });
  }

  /** Works on a request; another host may have taken the shard over while it waited for its turn. */
  #run(asker: Asker, work: () => void): void {
    if (this.#fixed.length === 0 || !this.#deps.mayAnswer()) return;
    try {
      work();
    } catch (error) {
      this.#deps.responder.refuse(asker, ensureError(error));
    }
  }

  /**
   * Id of the asker, and verb; undefined if the answer would not go to the asker's own inbox:
   * elsewhere, the asker could have this host publish where it may not publish itself.
   */
  #sender(
    subject: string,
    reply: string,
    from: AskerKind,
  ): { id: string; verb: string } | undefined {
    const { subjects } = this.#deps;
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
