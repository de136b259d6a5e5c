import {
  type Msg,
  type NatsConnection,
  NoRespondersError,
  RequestError,
  TimeoutError,
} from "@nats-io/transport-node";
import { type BrokerMessage, type ClientMessage, matches } from "./simulated-broker.ts";
import type { IsDropped } from "./simulated-files.ts";

/** What becomes of a message: it has its effect and is answered, or a part of that. */
export type Fate = "done" | "request lost" | "answer lost";

/** Answers a message. */
export type Take = (message: ClientMessage) => BrokerMessage[];

interface Sent extends ClientMessage {
  readonly resolve?: (message: Msg) => void;
  readonly reject?: (error: Error) => void;
}

const DECIDING = /^\$KV\.|\.manifest$|^\$JS\.API\.STREAM\.DELETE\./;

type Callback = (error: Error | null, message: Msg) => void;

/** Changes what a run sends, the answers to it, or what it does with files: bugs are planted so. */
export interface Tampering {
  sent?(message: ClientMessage): ClientMessage;
  answered?(message: ClientMessage, answers: BrokerMessage[]): BrokerMessage[];
  /** Has operations on files have no effect. */
  readonly isDropped?: IsDropped;
}

/**
 * The connection of one process to the simulated broker. What it sends waits, in order, until the schedule performs
 * it.
 */
export class SimulatedConnection {
  readonly name: string;
  readonly #take: Take;
  readonly #tampering: Tampering;
  readonly #onSent: () => void;
  #queue: Sent[] = [];
  readonly #subscriptions: Map<string, Callback> = new Map();
  #isDead = false;
  /** Inboxes of readers to which the broker has no more to send. */
  readonly #waiting: Set<string> = new Set();

  /** `onSent` is called after each message. */
  constructor(name: string, take: Take, onSent: () => void, tampering: Tampering = {}) {
    this.name = name;
    this.#take = take;
    this.#onSent = onSent;
    this.#tampering = tampering;
  }

  /** Number of messages that wait. */
  get waiting(): number {
    return this.#queue.length;
  }

  /** Whether the first message that waits decides something: a conditional write, or a removal of a stream. */
  get isDeciding(): boolean {
    return DECIDING.test(this.#queue[0]?.subject ?? "");
  }

  /** Whether the process has crashed. */
  get isDead(): boolean {
    return this.#isDead;
  }

  /** Ends the process at this point: it sends and learns nothing more. */
  crash(): void {
    this.#isDead = true;
    this.#queue = [];
    this.#subscriptions.clear();
  }

  /** Performs the first message that waits. */
  perform(fate: Fate): void {
    const sent = this.#queue.shift();
    if (sent === undefined) return;
    const { sent: change = (same) => same, answered = (_sent, same) => same } = this.#tampering;
    const answers = fate === "request lost" ? [] : answered(sent, this.#take(change(sent)));
    if (sent.resolve !== undefined) this.#resolve(sent, fate, answers[0]);
    else if (sent.reply !== undefined && fate === "done") this.#reply(sent, sent.reply, answers);
  }

  /** Takes the first message that waits for lost, though it is only late; the result performs it. */
  delay(): () => void {
    const sent = this.#queue[0];
    this.perform("request lost");
    return () => {
      if (sent !== undefined) this.#take(this.#tampering.sent?.(sent) ?? sent);
    };
  }

  /** Ends the requests of readers for more: nothing has come in time. */
  expire(): void {
    for (const inbox of [...this.#waiting]) {
      this.#waiting.delete(inbox);
      const status = { code: 408, description: "Request Timeout", get: () => "1000" };
      const message = { subject: inbox, data: new Uint8Array(0), headers: status, reply: "" };
      this.#deliver(inbox, message as unknown as Msg);
    }
  }

  #resolve({ subject, resolve, reject }: Sent, fate: Fate, first: BrokerMessage | undefined): void {
    if (fate !== "done") reject?.(new TimeoutError());
    else if (first === undefined)
      reject?.(new RequestError(subject, { cause: new NoRespondersError(subject) }));
    else resolve?.(toMsg(first));
  }

  #reply({ subject }: Sent, reply: string, answers: BrokerMessage[]): void {
    const isReader = subject.startsWith("$JS.API.CONSUMER.MSG.NEXT.");
    if (isReader) this.#waiting.add(reply);
    else if (answers.length === 0) {
      const message = { subject: reply, data: new Uint8Array(0), headers: { code: 503 } };
      this.#deliver(reply, message as unknown as Msg);
    }
    for (const each of answers) {
      this.#deliver(reply, toMsg(isReader ? each : { ...each, subject: reply }));
    }
  }

  #deliver(inbox: string, message: Msg): void {
    for (const [filter, callback] of [...this.#subscriptions]) {
      if (matches(filter, inbox)) callback(null, message);
    }
  }

  #send(sent: Sent): void {
    if (this.#isDead) return;
    // A buffer may be used again once the broker has it.
    this.#queue.push({ ...sent, data: Uint8Array.from(sent.data) });
    this.#onSent();
  }

  /** The connection as nats.js has it. */
  get connection(): NatsConnection {
    const info = { max_payload: 1024 ** 2, version: "2.12.0", headers: true, jetstream: true };
    const never = new Promise<never>(() => undefined);
    const features = { get: () => ({ ok: true, min: "" }) };
    return {
      ...{ info, features, options: { inboxPrefix: `_INBOX_${this.name}` } },
      getServerVersion: () => ({ major: 2, minor: 12, micro: 0 }),
      addCloseListener: () => undefined,
      removeCloseListener: () => undefined,
      isClosed: () => false,
      closed: () => never,
      close: () => Promise.resolve(),
      flush: () => Promise.resolve(),
      status: () => ({
        [Symbol.asyncIterator]: () => ({ next: () => never }),
        stop: () => undefined,
      }),
      request: (subject: string, data: Uint8Array | string = "", options: Options = {}) =>
        new Promise<Msg>((resolve, reject) => {
          this.#send({ subject, data: toBytes(data), headers: options.headers, resolve, reject });
        }),
      publish: (subject: string, data: Uint8Array | string = "", options: Options = {}) =>
        this.#send({ subject, data: toBytes(data), ...options }),
      subscribe: (subject: string, { callback }: { callback: Callback }) => {
        this.#subscriptions.set(subject, callback);
        return {
          closed: never,
          getSubject: () => subject,
          unsubscribe: () => {
            this.#subscriptions.delete(subject);
            this.#waiting.delete(subject);
          },
        };
      },
    } as unknown as NatsConnection;
  }
}

type Options = Pick<ClientMessage, "headers" | "reply">;

function toBytes(data: Uint8Array | string): Uint8Array {
  return typeof data === "string" ? new TextEncoder().encode(data) : data;
}

function toMsg(message: BrokerMessage): Msg {
  const text = (): string => new TextDecoder().decode(message.data);
  return { ...message, string: text, json: () => JSON.parse(text()) as unknown } as unknown as Msg;
}
