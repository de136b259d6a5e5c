import { type Msg, type NatsConnection, PermissionViolationError } from "@nats-io/transport-node";
import { decodeMessage, type Message } from "../../protocol/codec.ts";
import {
  type ErrorCode,
  ensureError,
  healsWithTime,
  PserverError,
  retryAfterMs,
} from "../../protocol/errors.ts";
import { refusalText, storeRefusalCode } from "../../protocol/jetstream-errors.ts";
import { throwIfError } from "../../protocol/messages/outcomes.ts";
import type { Position } from "../../protocol/messages/position.ts";
import type { JobSubjects } from "../../protocol/subjects.ts";
import { payloadBytesMaxOf, publishBulk, trafficOf } from "../../transport/bulk-transport.ts";
import { type PubAckError, parsePubAck } from "../../transport/jetstream.ts";
import { Backoff, type Deadline, orObstacle } from "../calls/calls.ts";
import type { ClientStats } from "../client-stats.ts";

/** A message to the client's inbox. `data` is valid during the callback only. */
export interface InboxMessage {
  /** The last token of the message's subject. */
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

/** The connection to the broker, as the parts of the client use it. */
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
  /**
   * Sends a PING; settles when it is answered. The broker handles what a connection sends in order: by then it has read
   * all that was published before, and all that it had sent has come. Rejects if the connection is lost.
   */
  flush(): Promise<void>;
  /** Bytes that the present connection has received, and given to the kernel to send; 0 while there is none. */
  readonly receivedBytes: number;
  readonly leftBytes: number;
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
  #sentBytes = 0;
  #takenBytes = 0;
  #reconnects = 0;

  private constructor(
    connection: NatsConnection,
    inbox: string,
    fail: (error: PserverError) => void,
  ) {
    this.#connection = connection;
    this.inbox = inbox;
    this.#fail = fail;
  }

  /** Wraps a connection and watches it from now on. Calls `fail` when it cannot be used any more. */
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

  /** What was sent and received on all connections since it was opened. */
  get traffic(): Pick<ClientStats, "sentBytes" | "receivedBytes" | "reconnects"> {
    const [sentBytes, receivedBytes] = [this.#sentBytes, this.#takenBytes];
    return { sentBytes, receivedBytes, reconnects: this.#reconnects };
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
    this.#sentBytes += bytes.length;
    publishBulk(this.#connection, subject, bytes, reply);
  }

  flush(): Promise<void> {
    return this.#connection.flush();
  }

  get receivedBytes(): number {
    return trafficOf(this.#connection)?.receivedBytes ?? 0;
  }

  get leftBytes(): number {
    return trafficOf(this.#connection)?.leftBytes ?? 0;
  }

  receive(name: string, callback: (message: InboxMessage) => void): void {
    this.#connection.subscribe(`${this.inbox}.${name}`, {
      callback: (error, message) => {
        if (error === null) {
          this.#takenBytes += message.data.length;
          callback(toInboxMessage(message));
        } else this.#fail(subscriptionFailed(`${this.inbox}.${name}`, error));
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
        this.#reconnects += 1;
        for (const listener of this.#listeners) listener.reconnected?.();
      }
      if (status.type === "error" && status.error instanceof PermissionViolationError) {
        const { operation, subject } = status.error;
        // The refusal of a subscription is reported to the subscription's own callback.
        if (operation === "publish") {
          const error = denied(`publishing to ${subject}`, status.error);
          for (const listener of this.#listeners) listener.denied?.(subject, error);
        }
      }
    }
  }
}

/** Makes the error of a call that had no connection. */
function disconnected(): PserverError {
  return new PserverError(
    "NO_BROKER",
    "the connection to the broker is lost; the client goes on trying to reconnect",
  );
}

/** Makes the error for something that the broker's permissions forbid. */
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
  /** Not stored, and never will be. */
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
  const answer = { status, errorCode, description };
  const code = storeRefusalCode(answer);
  const error = new PserverError(
    code,
    `${REFUSALS[code] ?? "the journal refused the record"}: ${refusalText(answer)}`,
    { brokerCode: errorCode, brokerMessage: description },
  );
  return { kind: error.retryable ? "later" : "refused", error };
}

/** Returned by {@link Ask.read}: further messages of the answer follow. */
export const MORE: unique symbol = Symbol("more");
/** Returned by {@link Ask.read}: messages of the answer are missing, so the request is sent again. */
export const ASK_AGAIN: unique symbol = Symbol("ask again");

/** A request to hosts. */
export interface Ask<Answer> {
  readonly subject: string;
  /** Makes the message, each time it is sent; `reply` is the subject of its answer. */
  readonly body: (reply: string) => Uint8Array;
  /**
   * Reads a message of the answer, usually the only one, while `data` is valid: copy what is to be kept.
   * Returns the answer once it is complete.
   */
  readonly read: (message: Message) => Answer | typeof MORE | typeof ASK_AGAIN;
  readonly deadline: Deadline;
  /** Makes the error for the case that nobody listens to the subject. */
  readonly nobody: () => PserverError;
  /** Called for each error after which the request is sent again later. */
  readonly refused?: () => void;
  /**
   * How long errors that a retry can heal are retried; until the deadline by default. Without any answer
   * the request always waits until its deadline.
   */
  readonly retryMs?: number;
  /** Whether to ask again while no answer comes, true by default; needs an idempotent request. */
  readonly repeat?: boolean;
}

/** How long an answer may take, once the broker has read the request, before the request is repeated. */
const REPEAT_MS = 1_000;
/** Longest pause between repeats. Pauses grow up to it, so that a slow host is not given more than it can answer. */
const REPEAT_MS_MAX = 4_000;
/** How often pending requests are checked: one timer for all costs less than one for each. */
const TICK_MS = 100;
/** So many bytes count as progress: many more than those of PINGs in the time of a call. */
const PROGRESS_BYTES = 16 * 1024;

/** Notices when a count of bytes has risen by so many that it is progress. */
export class ByteProgress {
  #bytes = 0;

  /** Takes the present count, which begins anew with each connection; returns whether it is progress. */
  take(bytes: number): boolean {
    if (bytes < this.#bytes) this.#bytes = 0;
    if (bytes - this.#bytes < PROGRESS_BYTES) return false;
    this.#bytes = bytes;
    return true;
  }
}

/**
 * Requests under way, each with a token. The first answer counts, whichever repeat of the request it is to.
 * The `request` of nats.js repeats nothing and does not survive reconnects.
 *
 * A request is repeated only when its answer is not on the way: the answer to a PING that was sent a second after the
 * broker had read the request comes after all that the broker had sent until then. Of an answer in several messages each
 * begins that time anew. So nothing is asked for twice because a link is slow.
 */
export class Requests {
  readonly #wire: Wire;
  readonly #pending = new Map<string, PendingAsk<unknown>>();
  #tokens = 0;
  #asked = 0;
  #timer: NodeJS.Timeout | undefined;
  #isPinging = false;
  readonly #carriesValues: boolean;
  readonly #received = new ByteProgress();
  readonly #left = new ByteProgress();

  private constructor(wire: Wire, carriesValues: boolean) {
    this.#wire = wire;
    this.#carriesValues = carriesValues;
  }

  /**
   * Makes an empty table of requests, which receives answers on the wire from now on.
   * @param carriesValues whether answers and received bytes are progress of the calls that wait: not where calls ask
   * the same question until the answer is what they wait for.
   */
  static open(wire: Wire, carriesValues: boolean): Requests {
    const requests = new Requests(wire, carriesValues);
    const all = requests.#pending;
    wire.receive("reply.*", (message) => all.get(message.token)?.receive(message));
    wire.listen({
      reconnected: () => {
        for (const pending of [...all.values()]) pending.send();
      },
      denied: (subject, error) => {
        for (const pending of [...all.values()]) {
          if (pending.subject === subject) pending.fail(error);
        }
      },
    });
    return requests;
  }

  /**
   * Sends a request and returns the answer. Repeats the request with growing delays while no answer is on the way,
   * nobody listens, or the host's error says that a retry can help.
   * @throws the error in the answer, what `read` throws, or at the deadline the last error seen.
   */
  ask<Answer>(ask: Ask<Answer>): Promise<Answer> {
    this.#asked += 1;
    return new Promise((resolve, reject) => {
      const token = (++this.#tokens).toString(36);
      const answered = this.#carriesValues ? () => ask.deadline.progressed() : () => {};
      const hooks = { done: () => this.#pending.delete(token), answered, resolve, reject };
      const pending = new PendingAsk<Answer>(this.#wire, token, ask, hooks);
      this.#pending.set(token, pending as PendingAsk<unknown>);
      pending.start();
      this.#arm();
    });
  }

  /** How many requests were made. */
  get asked(): number {
    return this.#asked;
  }

  /** Sends a message without waiting for an answer; does nothing once the connection is closed. */
  tell(subject: string, body: Uint8Array): void {
    try {
      const token = (++this.#tokens).toString(36);
      this.#wire.publish(subject, body, `${this.#wire.inbox}.reply.${token}`);
    } catch (error) {
      if (ensureError(error).code !== "CLOSED") throw error;
    }
  }

  #arm(): void {
    if (this.#timer !== undefined || this.#pending.size === 0) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      if (this.#carriesValues) this.#noteProgress();
      this.#ping();
      this.#arm();
    }, TICK_MS);
    // The deadlines of the requests keep the process alive.
    this.#timer.unref();
  }

  /** Tells the calls of waiting requests that bytes have come or gone: requests or answers may be behind them. */
  #noteProgress(): void {
    const hasReceived = this.#received.take(this.#wire.receivedBytes);
    const hasSent = this.#left.take(this.#wire.leftBytes);
    if (!hasReceived && !hasSent) return;
    for (const pending of this.#pending.values()) pending.noteProgress(hasReceived);
  }

  /** Asks the broker how far it has read, if a request needs to know; one PING serves all requests. */
  #ping(): void {
    const sentAtMs = performance.now();
    const asking = [...this.#pending.values()].filter((pending) => pending.needsPing(sentAtMs));
    if (this.#isPinging || !this.#wire.connected || asking.length === 0) return;
    this.#isPinging = true;
    const sends = asking.map((pending) => pending.sends);
    const answered = (): void => {
      this.#isPinging = false;
      asking.forEach((pending, i) => {
        if (pending.sends === sends[i]) pending.answeredPing(sentAtMs);
      });
    };
    // Once the connection is back every request is sent again.
    const lost = (): void => {
      this.#isPinging = false;
    };
    this.#wire.flush().then(answered, lost);
  }
}

interface AskHooks<Answer> {
  readonly done: () => void;
  /** Called for each complete answer. */
  readonly answered: () => void;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: PserverError) => void;
}

class PendingAsk<Answer> {
  readonly #wire: Wire;
  readonly #token: string;
  readonly #ask: Ask<Answer>;
  readonly #hooks: AskHooks<Answer>;
  readonly #startedAtMs = performance.now();
  #backoff: Backoff | undefined;
  #repeatMs = REPEAT_MS;
  #sends = 0;
  /** Whether the last copy is on its way to the broker, as far as is known. */
  #isUnread = false;
  /** Whether hosts have answered with an error, and with nothing else since: bytes are of other answers then. */
  #isRefused = false;
  /** When a PING is to be sent whose answer proves that no answer of the last copy is on the way. */
  #repeatAtMs = Number.POSITIVE_INFINITY;
  #retryTimer: NodeJS.Timeout | undefined;
  #stopListening: () => void = () => {};
  #last: PserverError | undefined;

  constructor(wire: Wire, token: string, ask: Ask<Answer>, hooks: AskHooks<Answer>) {
    this.#wire = wire;
    this.#token = token;
    this.#ask = ask;
    this.#hooks = hooks;
  }

  get subject(): string {
    return this.#ask.subject;
  }

  start(): void {
    const { deadline } = this.#ask;
    deadline.obstacle = () => this.#obstacle();
    this.#stopListening = deadline.onEnd((end) => this.fail(this.#atEnd(end)));
    if (deadline.ended === undefined) this.send();
  }

  /** How often it was sent. */
  get sends(): number {
    return this.#sends;
  }

  send(): void {
    clearTimeout(this.#retryTimer);
    this.#sends += 1;
    this.#isUnread = true;
    this.#repeatAtMs = Number.POSITIVE_INFINITY;
    const wire = this.#wire;
    try {
      const reply = `${wire.inbox}.reply.${this.#token}`;
      wire.publish(this.#ask.subject, this.#ask.body(reply), reply);
    } catch (error) {
      this.fail(ensureError(error));
      return;
    }
  }

  /** Returns whether it is to be known whether the broker has read the request, or has an answer on the way. */
  needsPing(nowMs: number): boolean {
    return this.#ask.repeat !== false && (this.#isUnread || nowMs >= this.#repeatAtMs);
  }

  /** Notes that a PING that was sent after the last copy of the request was answered. */
  answeredPing(sentAtMs: number): void {
    if (this.#isUnread) {
      this.#isUnread = false;
      this.#scheduleRepeat(this.#repeatMs);
      this.#repeatMs = Math.min(this.#repeatMs * 2, REPEAT_MS_MAX);
    } else if (sentAtMs >= this.#repeatAtMs) {
      this.send();
    }
  }

  /** Notes that bytes have come, or gone, on the connection. */
  noteProgress(hasReceived: boolean): void {
    const mayWait = hasReceived ? !this.#isRefused : this.#isUnread && this.#sends === 1;
    if (mayWait) this.#ask.deadline.progressed();
  }

  #scheduleRepeat(pauseMs: number): void {
    this.#repeatAtMs = performance.now() + pauseMs;
  }

  receive(received: InboxMessage): void {
    if (received.noResponders) {
      this.#retry(this.#ask.nobody());
      return;
    }
    try {
      const message = decodeMessage(received.data);
      throwIfError(message.fields);
      const answer = this.#ask.read(message);
      if (answer === MORE) {
        this.#ask.deadline.progressed();
        this.#isUnread = false;
        this.#isRefused = false;
        this.#scheduleRepeat(REPEAT_MS);
        return;
      }
      if (answer === ASK_AGAIN) {
        this.send();
        return;
      }
      this.#stop();
      this.#hooks.answered();
      this.#hooks.resolve(answer);
    } catch (caught) {
      const error = ensureError(caught);
      if (healsWithTime(error.code)) this.#retry(error);
      else this.fail(error);
    }
  }

  fail(error: PserverError): void {
    this.#stop();
    this.#hooks.reject(error);
  }

  #retry(error: PserverError): void {
    const { retryMs } = this.#ask;
    this.#last = error;
    this.#isRefused = true;
    this.#isUnread = false;
    if (retryMs !== undefined && performance.now() - this.#startedAtMs >= retryMs) {
      this.fail(error);
      return;
    }
    this.#ask.refused?.();
    this.#backoff ??= new Backoff();
    this.#repeatAtMs = Number.POSITIVE_INFINITY;
    clearTimeout(this.#retryTimer);
    const pauseMs = Math.max(this.#backoff.nextMs(), retryAfterMs(error));
    this.#retryTimer = setTimeout(() => this.send(), pauseMs);
  }

  #obstacle(): PserverError | undefined {
    return this.#wire.connected ? this.#last : disconnected();
  }

  /** Returns the error of a request at its end: at its timeout, the last obstacle. */
  #atEnd(end: PserverError): PserverError {
    return orObstacle(end, this.#obstacle());
  }

  #stop(): void {
    clearTimeout(this.#retryTimer);
    this.#stopListening();
    this.#hooks.done();
  }
}
