import { JetStreamApiError } from "@nats-io/jetstream";
import {
  createInbox,
  headers,
  type Msg,
  type NatsConnection,
  NatsConnectionImpl,
  NoRespondersError,
  TimeoutError,
} from "@nats-io/transport-node";
import { publishBulk } from "./bulk-transport.ts";
import { parsePubAck } from "./pub-ack.ts";

interface Waiting {
  readonly resolve: (seq: number) => void;
  readonly reject: (error: Error) => void;
  readonly timer: NodeJS.Timeout;
}

/** The header that makes a write a compare-and-swap on its subject. */
const EXPECTED_SEQ = "Nats-Expected-Last-Subject-Sequence";

/**
 * Stores messages in streams: large ones without copying them, and any number of small ones at a time with one
 * subscription for all answers. nats.js copies every message, and makes an error with a stack for each request
 * in case it fails, which is expensive for snapshots of a whole model and for the records of many parameters.
 */
export class StreamPublisher {
  readonly #connection: NatsConnection;
  readonly #inbox: string;
  readonly #waiting: Map<string, Waiting> = new Map();
  #tokens = 0;

  private constructor(connection: NatsConnection, inbox: string) {
    this.#connection = connection;
    this.#inbox = inbox;
  }

  /**
   * Receives acknowledgements on the connection from now on.
   * @param inboxPrefix where the connection may receive, without a final dot; by default where it receives the
   * answers to its requests.
   */
  static open(
    connection: NatsConnection,
    inboxPrefix: string | undefined = requestInboxPrefix(connection),
  ): StreamPublisher {
    const publisher = new StreamPublisher(connection, createInbox(inboxPrefix));
    connection.subscribe(`${publisher.#inbox}.*`, {
      callback: (error, message) => {
        // With an error, listening is not permitted: each publish then ends at its timeout.
        if (error === null) publisher.#receive(message);
      },
    });
    return publisher;
  }

  /**
   * Stores a message and returns its sequence. The bytes must not be changed until then; after an error
   * they may still be in use.
   * @throws errors of nats.js: no stream, no answer in time, or JetStream's refusal; BAD_MESSAGE.
   */
  publish(subject: string, bytes: Uint8Array, timeoutMs: number): Promise<number> {
    return this.#answered(timeoutMs, (reply) =>
      publishBulk(this.#connection, subject, bytes, reply),
    );
  }

  /**
   * As {@link publish}, if the last message on the subject has this sequence; 0: if there is none. The bytes are
   * copied.
   */
  swap(subject: string, text: string, expectedSeq: number, timeoutMs: number): Promise<number> {
    const expectation = headers();
    expectation.set(EXPECTED_SEQ, String(expectedSeq));
    return this.#answered(timeoutMs, (reply) =>
      this.#connection.publish(subject, text, { reply, headers: expectation }),
    );
  }

  /** Publishes with the subject for the answer, and returns the sequence in it. */
  #answered(timeoutMs: number, publish: (reply: string) => void): Promise<number> {
    const token = (++this.#tokens).toString(36);
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiting.delete(token);
        reject(new TimeoutError());
      }, timeoutMs);
      this.#waiting.set(token, { resolve, reject, timer });
      publish(`${this.#inbox}.${token}`);
    });
  }

  #receive(message: Msg): void {
    const token = message.subject.slice(message.subject.lastIndexOf(".") + 1);
    const waiting = this.#waiting.get(token);
    if (waiting === undefined) return;
    this.#waiting.delete(token);
    clearTimeout(waiting.timer);
    try {
      if (message.headers?.code === 503) throw new NoRespondersError(message.subject);
      const ack = parsePubAck(message.data);
      if (ack.kind === "refused") {
        const { code, errorCode, description } = ack.error;
        throw new JetStreamApiError({ code, err_code: errorCode, description });
      }
      waiting.resolve(ack.seq);
    } catch (error) {
      waiting.reject(error instanceof Error ? error : new Error(String(error)));
    }
  }
}

function requestInboxPrefix(connection: NatsConnection): string | undefined {
  return connection instanceof NatsConnectionImpl ? connection.options.inboxPrefix : undefined;
}
