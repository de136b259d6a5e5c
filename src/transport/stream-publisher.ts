import { JetStreamApiError } from "@nats-io/jetstream";
import {
  createInbox,
  type Msg,
  type NatsConnection,
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

/**
 * Stores large messages in streams without copying them. The client of nats.js copies every message,
 * which is expensive for snapshots of a whole model.
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
   * @param inboxPrefix where the connection may receive, without a final dot.
   */
  static open(connection: NatsConnection, inboxPrefix: string): StreamPublisher {
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
    const token = (++this.#tokens).toString(36);
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiting.delete(token);
        reject(new TimeoutError());
      }, timeoutMs);
      this.#waiting.set(token, { resolve, reject, timer });
      publishBulk(this.#connection, subject, bytes, `${this.#inbox}.${token}`);
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
