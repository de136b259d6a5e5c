import { type Msg, type NatsConnection, PermissionViolationError } from "@nats-io/transport-node";
import { type ErrorCode, ensureError, PserverError } from "../../protocol/errors.ts";
import { storeRefusalCode } from "../../protocol/jetstream-errors.ts";
import type { Position } from "../../protocol/messages/position.ts";
import type { JobSubjects } from "../../protocol/subjects.ts";
import { payloadBytesMaxOf, publishBulk } from "../../transport/bulk-transport.ts";
import { type PubAckError, parsePubAck } from "../../transport/jetstream.ts";

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
function denied(what: string, cause: Error): PserverError {
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

/** The broker's answer to a journal record. */
export type JournalAck =
  /** Stored at this position. */
  | { readonly kind: "stored"; readonly shard: number; readonly position: Position }
  /** Not stored; the same record can be stored later. */
  | { readonly kind: "later"; readonly error: PserverError }
  /** Not stored and never will be. */
  | { readonly kind: "refused"; readonly error: PserverError };

/** The beginning of the error message for each code. */
const REFUSALS: Readonly<Partial<Record<ErrorCode, string>>> = {
  JOURNAL_FULL: "the journal is full",
  JOURNAL_FAULT: "the broker cannot write the journal",
  JETSTREAM_UNAVAILABLE: "the journal cannot store at the moment",
  NO_JETSTREAM: "the broker runs without JetStream",
  TOO_LARGE: "the journal takes no record this large",
};

/**
 * Reads the broker's answer to a journal record.
 * @throws BAD_MESSAGE if it is none, or of a stream that is no journal of the job.
 */
export function parseJournalAck(message: InboxMessage, subjects: JobSubjects): JournalAck {
  if (message.noResponders) {
    return {
      kind: "later",
      error: new PserverError(
        "NO_OWNER",
        `no journal takes records of job ${subjects.job}: the broker has restarted, or its stream was deleted`,
      ),
    };
  }
  const ack = parsePubAck(message.data);
  if (ack.kind === "refused") return refusal(ack.error);
  const { shard, generation } = subjects.parseJournalStream(ack.stream);
  return { kind: "stored", shard, position: { generation, seq: ack.seq } };
}

function refusal({ code: status, errorCode, description }: PubAckError): JournalAck {
  const code = storeRefusalCode({ status, errorCode, description });
  const error = new PserverError(
    code,
    `${REFUSALS[code] ?? "the journal refused the record"}: ${description}`,
    { brokerCode: errorCode, brokerMessage: description },
  );
  return { kind: error.retryable ? "later" : "refused", error };
}
