import type { Msg, NatsConnection, Subscription } from "@nats-io/transport-node";
import {
  decodeMessage,
  encodeError,
  encodeMessage,
  ensureError,
  type Fields,
  type JobSubjects,
  type Message,
  PserverError,
} from "../protocol/index.ts";

/** Requests that one host works on at one time; more are told BUSY and ask again. */
const AT_ONCE_MAX = 1_024;

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

/** Answers requests that any host of the job may answer, each by one of them, or by all. */
export class RequestServer {
  readonly #connection: NatsConnection;
  readonly #subjects: JobSubjects;
  readonly #handle: RequestHandler;
  readonly #subscription: Subscription;
  #active = 0;
  #idle: (() => void) | undefined;

  constructor(options: {
    readonly connection: NatsConnection;
    readonly subjects: JobSubjects;
    /** Subject with the asker's id and the verb as its last tokens. */
    readonly subject: string;
    readonly handle: RequestHandler;
    /** Whether every host is to hear each request, not one alone. */
    readonly isForAll?: boolean;
  }) {
    this.#connection = options.connection;
    this.#subjects = options.subjects;
    this.#handle = options.handle;
    this.#subscription = options.connection.subscribe(options.subject, {
      ...(options.isForAll === true ? {} : { queue: "hosts" }),
      callback: (error, message) => {
        if (error === null) void this.#receive(message);
      },
    });
  }

  /** Takes no more requests and waits for those under way. */
  async close(): Promise<void> {
    this.#subscription.unsubscribe();
    if (this.#active === 0) return;
    await new Promise<void>((resolve) => {
      this.#idle = resolve;
    });
  }

  async #receive(message: Msg): Promise<void> {
    const reply = message.reply ?? "";
    this.#active++;
    try {
      const { id, verb } = this.#subjects.parseSender(message.subject);
      // Answered elsewhere, the asker could write where only this host may.
      if (!this.#subjects.mayAnswer(reply, id)) return;
      const tell = (inbox: string, entries: Fields): void => {
        if (this.#subjects.isTrainerInbox(inbox, id)) this.#respond(inbox, encodeMessage(entries));
      };
      this.#respond(reply, await this.#reply(id, verb, message.data, tell));
    } catch {
      // The subject names no asker: there is nobody to answer.
    } finally {
      this.#active--;
      if (this.#active === 0) this.#idle?.();
    }
  }

  async #reply(
    id: string,
    verb: string,
    data: Uint8Array,
    tell: (inbox: string, entries: Fields) => void,
  ): Promise<Uint8Array> {
    try {
      if (this.#active > AT_ONCE_MAX) {
        throw new PserverError("BUSY", `the host works on ${AT_ONCE_MAX} requests already`);
      }
      return encodeMessage(await this.#handle(id, verb, decodeMessage(data), tell));
    } catch (error) {
      return encodeError(ensureError(error));
    }
  }

  #respond(reply: string, bytes: Uint8Array): void {
    if (!this.#connection.isClosed()) this.#connection.publish(reply, bytes);
  }
}
