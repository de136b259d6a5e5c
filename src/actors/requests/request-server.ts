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
} from "../../protocol/index.ts";
import { TURN_MS } from "./queue-limits.ts";
import type { Refusals } from "./refusals.ts";
import type { Request, RequestLane } from "./request-queue.ts";
import { Turn } from "./turn.ts";

/**
 * Works on one request: gives the entries of the reply, or throws what the reply carries. With `tell` it
 * sends messages to an inbox of the asker before that; what is no inbox of its gets none.
 */
export type RequestHandler = (
  id: string,
  verb: string,
  message: Message,
  tell: (inbox: string, entries: Fields) => void,
) => Promise<Fields>;

/**
 * Answers requests that any host of the job may answer, each by one of them, or by all. Trainers have
 * their turns one after the other, and what is too much of one is refused with BUSY.
 */
export class RequestServer {
  readonly #connection: NatsConnection;
  readonly #subjects: JobSubjects;
  readonly #handle: RequestHandler;
  readonly #lanes: readonly RequestLane[];
  readonly #subscription: Subscription;
  readonly #refusals: Refusals;
  readonly #onOtherAccount: (trainer: string) => void;
  readonly #turn: Turn = new Turn(TURN_MS, () => {
    this.#refusals.review();
    this.#work();
  });
  #active = 0;
  #isClosed = false;
  #idle: (() => void) | undefined;

  constructor(options: {
    readonly connection: NatsConnection;
    /** Of all requests that come through the connection. */
    readonly refusals: Refusals;
    readonly subjects: JobSubjects;
    /** Subject with the asker's id and the verb as its last tokens. */
    readonly subject: string;
    /** In the order in which they are served; a verb that has none is refused. */
    readonly lanes: readonly RequestLane[];
    readonly handle: RequestHandler;
    /** Whether every host is to hear each request, not one alone. */
    readonly isForAll?: boolean;
    /** Called for each request from another account of the broker, where none is answered. */
    readonly onOtherAccount?: (trainer: string) => void;
  }) {
    this.#connection = options.connection;
    this.#refusals = options.refusals;
    this.#subjects = options.subjects;
    this.#handle = options.handle;
    this.#lanes = options.lanes;
    this.#onOtherAccount = options.onOtherAccount ?? (() => undefined);
    this.#subscription = options.connection.subscribe(options.subject, {
      ...(options.isForAll === true ? {} : { queue: "hosts" }),
      callback: (error, message) => {
        if (error === null) this.#receive(message);
      },
    });
  }

  /** Takes no more requests, has those that wait ask again, and waits for those under way. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#subscription.unsubscribe();
    for (const lane of this.#lanes) {
      for (const { reply } of lane.drain()) {
        this.#respond(reply, encodeError(busy("the host is closing", { expected: 0 })));
      }
    }
    if (this.#active === 0) return;
    await new Promise<void>((resolve) => {
      this.#idle = resolve;
    });
  }

  #receive(message: Msg): void {
    const reply = message.reply ?? "";
    const sender = this.#sender(message.subject);
    if (sender === undefined) return;
    const { id: trainer, verb } = sender;
    // Answered elsewhere, the asker could write where only this host may.
    if (!this.#subjects.mayAnswer(reply, trainer)) {
      if (this.#subjects.isOfOtherAccount(reply)) this.#onOtherAccount(trainer);
      return;
    }
    const lane = this.#lanes.find((candidate) => candidate.takes(verb));
    if (lane === undefined) {
      const error = new PserverError("BAD_MESSAGE", `no such verb: ${verb}`, { received: verb });
      this.#refuse(trainer, reply, error);
      return;
    }
    // A copy: what came with it would be kept as long.
    const request = { trainer, verb, reply, data: Uint8Array.from(message.data) };
    const refusal = lane.add(request);
    if (refusal !== undefined) this.#refuse(trainer, reply, refusal);
    else this.#work();
  }

  #sender(subject: string): { id: string; verb: string } | undefined {
    try {
      return this.#subjects.parseSender(subject);
    } catch {
      // The subject names no asker: there is nobody to answer.
      return undefined;
    }
  }

  /** Begins what may be begun in this turn. */
  #work(): void {
    for (const lane of this.#lanes) {
      while (!this.#isClosed && !this.#turn.isOver) {
        const request = lane.next();
        if (request === undefined) break;
        this.#turn.begin();
        void this.#answer(lane, request);
      }
    }
  }

  async #answer(lane: RequestLane, request: Request): Promise<void> {
    this.#active++;
    this.#respond(request.reply, await this.#reply(request));
    lane.done(request);
    this.#active--;
    if (this.#active === 0) this.#idle?.();
    this.#work();
  }

  async #reply({ trainer, verb, data }: Request): Promise<Uint8Array> {
    const tell = (inbox: string, entries: Fields): void => {
      if (this.#subjects.isTrainerInbox(inbox, trainer)) {
        this.#respond(inbox, encodeMessage(entries));
      }
    };
    try {
      return encodeMessage(await this.#handle(trainer, verb, decodeMessage(data), tell));
    } catch (error) {
      return encodeError(ensureError(error));
    }
  }

  #refuse(trainer: string, reply: string, error: PserverError): void {
    this.#turn.begin();
    if (this.#refusals.mayTell(trainer)) this.#respond(reply, encodeError(error));
  }

  #respond(reply: string, bytes: Uint8Array): void {
    if (!this.#connection.isClosed()) this.#connection.publish(reply, bytes);
  }
}
