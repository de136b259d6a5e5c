import { type Msg, type NatsConnection, PermissionViolationError } from "@nats-io/transport-node";
import { ensureError, PserverError } from "../../protocol/errors.ts";
import { publishBulk } from "../../transport/bulk-transport.ts";
import { payloadBytesMaxOf } from "../../transport/payload-limit.ts";

/** A message to the client's inbox. `data` is valid during the callback only. */
export interface InboxMessage {
  /** The last token of its subject. */
  readonly token: string;
  /** Whether the broker reports that nobody listens to the subject of the request. */
  readonly noResponders: boolean;
  readonly data: Uint8Array;
}

/** Events of the connection. */
export interface WireListener {
  /** The connection is lost: nats.js drops what is published from now on. */
  disconnected?(): void;
  /** The connection and its subscriptions are back. */
  reconnected?(): void;
  /** The broker refused what was published to this subject. */
  denied?(subject: string, error: PserverError): void;
}

/** The broker connection as the parts of the client see it. */
export interface Wire {
  /** Subject prefix of this client; no other process receives below it. */
  readonly inbox: string;
  /** Whether the client is connected; what is published while it is not may be dropped. */
  readonly connected: boolean;
  /** The largest message the broker takes. */
  readonly payloadBytesMax: number;
  /**
   * Hands a message to the connection, which owns the bytes from now on.
   * @throws TOO_LARGE, or CLOSED once the connection is closed.
   */
  publish(subject: string, bytes: Uint8Array, reply: string): void;
  /** Subscribes to `<inbox>.<name>`; a final `.*` in the name matches any token. */
  receive(name: string, callback: (message: InboxMessage) => void): void;
  listen(listener: WireListener): void;
}

/**
 * {@link Wire} over nats.js.
 * @internal
 */
export class NatsWire implements Wire {
  readonly inbox: string;
  #connected = true;
  readonly #connection: NatsConnection;
  readonly #listeners: WireListener[] = [];
  readonly #fail: (error: PserverError) => void;

  private constructor(
    connection: NatsConnection,
    inbox: string,
    fail: (error: PserverError) => void,
  ) {
    this.#connection = connection;
    this.inbox = inbox;
    this.#fail = fail;
  }

  /** Watches the connection from now on. `fail` is called when it cannot be used any more. */
  static open(
    connection: NatsConnection,
    inbox: string,
    fail: (error: PserverError) => void,
  ): NatsWire {
    const wire = new NatsWire(connection, inbox, fail);
    wire.#watch().catch((error: unknown) => fail(ensureError(error)));
    return wire;
  }

  get connected(): boolean {
    return this.#connected;
  }

  get payloadBytesMax(): number {
    return payloadBytesMaxOf(this.#connection);
  }

  publish(subject: string, bytes: Uint8Array, reply: string): void {
    if (bytes.length > this.payloadBytesMax) {
      throw new PserverError(
        "TOO_LARGE",
        `message of ${bytes.length} bytes: the broker takes at most ${this.payloadBytesMax} (max_payload)`,
        { expected: this.payloadBytesMax, received: bytes.length, subject },
      );
    }
    if (this.#connection.isClosed() || this.#connection.isDraining()) {
      throw new PserverError("CLOSED", "the connection to the broker is closed");
    }
    publishBulk(this.#connection, subject, bytes, reply);
  }

  receive(name: string, callback: (message: InboxMessage) => void): void {
    this.#connection.subscribe(`${this.inbox}.${name}`, {
      callback: (error, message) => {
        if (error === null) callback(toInboxMessage(message));
        else this.#fail(subscriptionFailed(`${this.inbox}.${name}`, error));
      },
    });
  }

  listen(listener: WireListener): void {
    this.#listeners.push(listener);
  }

  async #watch(): Promise<void> {
    for await (const status of this.#connection.status()) {
      if (status.type === "disconnect") {
        this.#connected = false;
        for (const listener of this.#listeners) listener.disconnected?.();
      }
      if (status.type === "reconnect") {
        this.#connected = true;
        for (const listener of this.#listeners) listener.reconnected?.();
      }
      if (status.type === "error" && status.error instanceof PermissionViolationError) {
        const { operation, subject } = status.error;
        // A refused subscription comes to the subscription's own callback.
        if (operation === "publish") {
          const error = denied(`publishing to ${subject}`, status.error);
          for (const listener of this.#listeners) listener.denied?.(subject, error);
        }
      }
    }
  }
}

/** The error of a call that had no connection. */
export function disconnected(): PserverError {
  return new PserverError(
    "NO_BROKER",
    "the connection to the broker is lost; the client goes on trying to reconnect",
  );
}

/** The error for something the broker's permissions forbid. */
export function denied(what: string, cause: Error): PserverError {
  return new PserverError(
    "DENIED",
    `the broker refuses ${what}: check the user's permissions`,
    {},
    { cause },
  );
}

function subscriptionFailed(subject: string, error: Error): PserverError {
  return error instanceof PermissionViolationError
    ? denied(`subscribing to ${subject}`, error)
    : ensureError(error);
}

function toInboxMessage(message: Msg): InboxMessage {
  const { subject, data } = message;
  return {
    token: subject.slice(subject.lastIndexOf(".") + 1),
    noResponders: data.length === 0 && message.headers?.code === 503,
    data,
  };
}
