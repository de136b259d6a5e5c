import type { Msg, NatsConnection, Subscription } from "@nats-io/transport-node";
import {
  busy,
  decodeMessage,
  encodeError,
  encodeMessage,
  ensureError,
  type Fields,
  type JobSubjects,
  type Message,
  PserverError,
  RETRY_AFTER_MS,
} from "../../protocol/index.ts";
import { payloadBytesMaxOf } from "../../transport/bulk-transport.ts";
import {
  FairQueue,
  QUEUED_BYTES,
  REQUEST_BYTES,
  type Refusals,
  replyThatFits,
  TURN_MS,
  Turn,
} from "./fair-queue.ts";

/**
 * Answers one request: returns the entries of the reply, or throws the error that the reply carries.
 * With `tell` it may send messages before that, to inboxes of the asker only; to others nothing is sent.
 */
export type RequestHandler = (
  id: string,
  verb: string,
  message: Message,
  tell: (inbox: string, entries: Fields) => void,
) => Promise<Fields>;

/** Options of {@link RequestServer}. */
export interface RequestServerOptions {
  readonly connection: NatsConnection;
  /** Of all requests that come through the connection. */
  readonly refusals: Refusals;
  readonly subjects: JobSubjects;
  /** Subject with the asker's id and the verb as its last tokens. */
  readonly subject: string;
  /** In the order in which they are served; a verb that belongs to none is refused. */
  readonly queues: readonly RequestQueue[];
  readonly handle: RequestHandler;
  /** Whether every host gets each request, not one of them alone. */
  readonly isForAll?: boolean;
  /** Called for each request from another account of the broker; none of them is answered. */
  readonly onOtherAccount?: (trainer: string) => void;
}

/**
 * Answers requests that any host of the job may answer, each by one of them, or by all. Trainers are
 * served in turns; a trainer with too many waiting requests is refused with BUSY.
 */
export class RequestServer {
  readonly #options: RequestServerOptions;
  readonly #turn: Turn = new Turn(TURN_MS, () => {
    this.#options.refusals.review();
    this.#work();
  });
  #subscription: Subscription | undefined;
  #active = 0;
  #isClosed = false;
  #idle: (() => void) | undefined;

  constructor(options: RequestServerOptions) {
    this.#options = options;
  }

  /** Begins to take requests. */
  listen(): void {
    const { connection, subject, isForAll } = this.#options;
    this.#subscription = connection.subscribe(subject, {
      ...(isForAll === true ? {} : { queue: "hosts" }),
      callback: (error, message) => {
        if (error === null) this.#receive(message);
      },
    });
  }

  /** Stops taking requests, refuses waiting ones with BUSY, and waits for those in work. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#subscription?.unsubscribe();
    for (const queue of this.#options.queues) {
      for (const { reply } of queue.drain()) {
        this.#respond(reply, encodeError(busy("the host is closing", { expected: 0 })));
      }
    }
    if (this.#active === 0) return;
    await new Promise<void>((resolve) => {
      this.#idle = resolve;
    });
  }

  #receive(message: Msg): void {
    const { subjects, queues, onOtherAccount } = this.#options;
    const reply = message.reply ?? "";
    const sender = this.#sender(message.subject);
    if (sender === undefined) return;
    const { id: trainer, verb } = sender;
    // A reply to any other subject would let the asker write where only this host may.
    if (!subjects.mayAnswer(reply, trainer)) {
      if (subjects.isOfOtherAccount(reply)) onOtherAccount?.(trainer);
      return;
    }
    const queue = queues.find((candidate) => candidate.takes(verb));
    if (queue === undefined) {
      const error = new PserverError("BAD_MESSAGE", `no such verb: ${verb}`, { received: verb });
      this.#refuse(trainer, reply, error);
      return;
    }
    // A copy, so that a waiting request does not keep the whole received chunk alive.
    const request = { trainer, verb, reply, data: Uint8Array.from(message.data) };
    const refusal = queue.add(request);
    if (refusal !== undefined) this.#refuse(trainer, reply, refusal);
    else this.#work();
  }

  #sender(subject: string): { id: string; verb: string } | undefined {
    try {
      return this.#options.subjects.parseSender(subject);
    } catch {
      // The subject names no asker, so there is nobody to answer.
      return undefined;
    }
  }

  /** Begins as many requests as this turn allows. */
  #work(): void {
    for (const queue of this.#options.queues) {
      while (!this.#isClosed && !this.#turn.isOver) {
        const request = queue.next();
        if (request === undefined) break;
        this.#turn.begin();
        void this.#answer(queue, request);
      }
    }
  }

  async #answer(queue: RequestQueue, request: Request): Promise<void> {
    this.#active++;
    this.#respond(request.reply, await this.#reply(request));
    queue.done(request);
    this.#active--;
    if (this.#active === 0) this.#idle?.();
    this.#work();
  }

  async #reply({ trainer, verb, data }: Request): Promise<Uint8Array> {
    const { subjects, handle } = this.#options;
    const tell = (inbox: string, entries: Fields): void => {
      if (subjects.isTrainerInbox(inbox, trainer)) {
        this.#respond(inbox, encodeMessage(entries));
      }
    };
    try {
      return encodeMessage(await handle(trainer, verb, decodeMessage(data), tell));
    } catch (error) {
      return encodeError(ensureError(error));
    }
  }

  #refuse(trainer: string, reply: string, error: PserverError): void {
    this.#turn.begin();
    if (this.#options.refusals.take(trainer)) this.#respond(reply, encodeError(error));
  }

  #respond(reply: string, bytes: Uint8Array): void {
    const { connection } = this.#options;
    if (connection.isClosed()) return;
    connection.publish(reply, replyThatFits(bytes, payloadBytesMaxOf(connection)));
  }
}

/** A request that has arrived and is to be answered. */
export interface Request {
  readonly trainer: string;
  readonly verb: string;
  readonly reply: string;
  readonly data: Uint8Array;
}

/** What one queue takes, and how much of it a host works on at one time. */
export interface RequestQueueOptions {
  readonly verbs: readonly string[];
  /** Requests in work at one time. */
  readonly atOnce: number;
  /** Of them, at most so many of one trainer. */
  readonly atOnceEach: number;
  /** Cost of a waiting request besides its own bytes, of the 16 MiB that one trainer has. */
  readonly requestBytes?: number;
  /** Waiting time that a refusal names. */
  readonly retryAfterMs?: number;
}

/** Requests of one kind, served in turns of the trainers, a limited number at a time. */
export class RequestQueue {
  readonly #options: RequestQueueOptions;
  readonly #waiting: FairQueue<Request> = new FairQueue(QUEUED_BYTES);
  readonly #running: Map<string, number> = new Map();
  #runningTotal = 0;

  constructor(options: RequestQueueOptions) {
    this.#options = options;
  }

  /** Whether requests with this verb belong here. */
  takes(verb: string): boolean {
    return this.#options.verbs.includes(verb);
  }

  /** Keeps a request until its turn; or returns the BUSY to refuse it with. */
  add(request: Request): PserverError | undefined {
    const { requestBytes = REQUEST_BYTES, retryAfterMs = RETRY_AFTER_MS } = this.#options;
    const cost = requestBytes + request.data.length;
    if (this.#waiting.push(request.trainer, request, cost)) return undefined;
    const { trainer, verb } = request;
    const expected = Math.floor(QUEUED_BYTES.each / requestBytes);
    const text = `${verb}: expected at most ${expected} waiting requests of a trainer, and space for all`;
    return busy(text, { trainer, expected }, retryAfterMs);
  }

  /** The request to work on next, which counts as running until {@link done}; undefined if none. */
  next(): Request | undefined {
    const { atOnce, atOnceEach } = this.#options;
    if (this.#runningTotal >= atOnce) return undefined;
    const served = this.#waiting.next((trainer) => this.#runningOf(trainer) < atOnceEach);
    if (served === undefined) return undefined;
    this.#running.set(served.trainer, this.#runningOf(served.trainer) + 1);
    this.#runningTotal++;
    return served.task;
  }

  /** Ends the work on a request. */
  done({ trainer }: Request): void {
    const left = this.#runningOf(trainer) - 1;
    if (left > 0) this.#running.set(trainer, left);
    else this.#running.delete(trainer);
    this.#runningTotal--;
  }

  /** Removes and returns all waiting requests. */
  *drain(): Generator<Request, void, undefined> {
    for (let served = this.#waiting.next(); served !== undefined; served = this.#waiting.next()) {
      yield served.task;
    }
  }

  #runningOf(trainer: string): number {
    return this.#running.get(trainer) ?? 0;
  }
}
