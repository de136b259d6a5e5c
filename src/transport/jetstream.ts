import { JetStreamApiError, type JetStreamClient, jetstream } from "@nats-io/jetstream";
import {
  createInbox,
  headers,
  type Msg,
  type NatsConnection,
  NatsConnectionImpl,
  NoRespondersError,
  type Payload,
  type RequestOptions,
  TimeoutError,
} from "@nats-io/transport-node";
import {
  asMap,
  type Fields,
  flagField,
  integerField,
  listField,
  mapField,
  numberField,
  PserverError,
  textField,
} from "../protocol/index.ts";
import { startAnswerDeadline } from "./answer-deadline.ts";
import { parseJson } from "./broker-error.ts";
import { publishBulk } from "./bulk-transport.ts";
import { requestOnce, requestRepeatedly } from "./repeated-request.ts";

/** JetStream's answer to a published message: where it is stored, or why it is not. */
export type PubAck =
  | { readonly kind: "stored"; readonly stream: string; readonly seq: number }
  | { readonly kind: "refused"; readonly error: PubAckError };

/**
 * Why a message is not stored: `code` is a status as in HTTP, `errorCode` one of `JETSTREAM_ERRORS` or any
 * other; each is 0 if the broker does not name it.
 */
export interface PubAckError {
  readonly code: number;
  readonly errorCode: number;
  readonly description: string;
}

/**
 * Reads JetStream's answer: JSON `{stream, seq}` or `{error}`.
 * @throws BAD_MESSAGE if it is neither.
 */
export function parsePubAck(bytes: Uint8Array): PubAck {
  const ack = asMap(parseJson(text.decode(bytes), "PubAck"), "PubAck");
  if (ack["error"] === undefined) {
    const seq = integerField(ack, "seq", 1);
    return { kind: "stored", stream: textField(ack, "stream"), seq };
  }
  return { kind: "refused", error: parsePubAckError(asMap(ack["error"], "PubAck error")) };
}

/** Reads an error that JetStream reports; a broker may leave out any part of it. @throws BAD_MESSAGE. */
function parsePubAckError(fields: Fields): PubAckError {
  const error = { code: 0, err_code: 0, description: "", ...fields };
  return {
    code: integerField(error, "code"),
    errorCode: integerField(error, "err_code"),
    description: textField(error, "description", Number.POSITIVE_INFINITY),
  };
}

const API = "$JS.API.";

/** Most entries in a page of a list, or in the state of a stream. */
const LISTED_MAX = 10_000_000;

/** Text in base64. */
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

const text = new TextDecoder();

/** Checks of answers, by the beginning of the request's operation. */
const CHECKS: readonly (readonly [string, (answer: Fields) => void])[] = [
  ["INFO", checkAccount],
  ["STREAM.INFO.", checkStream],
  ["STREAM.CREATE.", checkStream],
  ["STREAM.UPDATE.", checkStream],
  ["STREAM.NAMES", (answer) => checkPage(answer, (name) => textField({ name }, "name"))],
  ["STREAM.LIST", (answer) => checkPage(answer, (info) => checkStream(asMap(info, "streams")))],
  ["STREAM.MSG.GET.", checkMessage],
  ["CONSUMER.CREATE.", checkConsumer],
  ["CONSUMER.INFO.", checkConsumer],
];

/**
 * Checks JetStream's answer to a request to `subject`, which belongs to the API or a stream: nats.js itself
 * uses answers unchecked. An error that JetStream reports is a valid answer.
 * @throws BAD_MESSAGE if it is not a valid answer to such a request.
 */
export function checkJetStreamAnswer(subject: string, bytes: Uint8Array): void {
  try {
    if (subject.startsWith(API)) checkApiAnswer(subject.slice(API.length), bytes);
    else parsePubAck(bytes);
  } catch (error) {
    if (!(error instanceof PserverError)) throw error;
    const message = `the broker's answer to ${subject}: ${error.message}`;
    throw new PserverError(error.code, message, { ...error.details, subject }, { cause: error });
  }
}

function checkApiAnswer(operation: string, bytes: Uint8Array): void {
  // The answer is the stored message itself.
  if (operation.startsWith("DIRECT.")) return;
  const answer = asMap(parseJson(text.decode(bytes), "the whole"), "the whole");
  if (answer["error"] !== undefined) {
    parsePubAckError(mapField(answer, "error"));
    return;
  }
  const check = CHECKS.find(([start]) => operation.startsWith(start))?.[1];
  // All other operations change something, and report `success`.
  if (check === undefined) flagField(answer, "success");
  else check(answer);
}

function checkAccount(answer: Fields): void {
  // Limits of 64 bits are not exact as numbers of JavaScript, so they are not checked as integers.
  for (const key of ["streams", "storage", "memory"]) numberField(answer, key);
  const limits = mapField(answer, "limits");
  for (const key of ["max_storage", "max_memory", "max_streams"]) numberField(limits, key);
}

function checkStream(answer: Fields): void {
  textField(answer, "created");
  textField(mapField(answer, "config"), "name");
  const state = mapField(answer, "state");
  for (const key of ["messages", "bytes", "first_seq", "last_seq"]) integerField(state, key);
  if (state["subjects"] != null) mapField(state, "subjects");
  if (state["deleted"] != null) listField(state, "deleted", LISTED_MAX);
}

function checkPage(answer: Fields, checkEntry: (entry: unknown) => void): void {
  textField(answer, "type");
  integerField(answer, "total");
  // An empty page may omit the list.
  if (answer["streams"] != null) listField(answer, "streams", LISTED_MAX).forEach(checkEntry);
}

function checkMessage(answer: Fields): void {
  const message = mapField(answer, "message");
  integerField(message, "seq", 1);
  textField(message, "subject");
  for (const key of ["data", "hdrs"]) {
    if (message[key] === undefined) continue;
    if (BASE64.test(textField(message, key, Number.POSITIVE_INFINITY))) continue;
    throw new PserverError("BAD_MESSAGE", `${key}: expected base64; received other characters`);
  }
}

function checkConsumer(answer: Fields): void {
  textField(answer, "name");
  textField(answer, "stream_name");
  mapField(answer, "config");
  integerField(answer, "num_pending");
}

/**
 * Operations that are asked for only once: to do them twice gives another answer, or another result if somebody else
 * has done something in between.
 */
const NOT_REPEATED =
  /^\$JS\.API\.(?:STREAM\.(?:CREATE|UPDATE|DELETE|PURGE|MSG\.DELETE)|CONSUMER\.(?:CREATE|DELETE))\./;

/**
 * Makes a JetStream client on this connection that checks answers before nats.js uses them: its methods end
 * in a result, the broker's refusal or BAD_MESSAGE, whatever a broker answers. A request may take
 * `timeoutMs`, 5 s by default, not counting the time for which it or its answer is on the link. Questions and published
 * messages are repeated as {@link requestRepeatedly} does: publish what may be stored twice, or with the sequence that is
 * expected before it.
 */
export function openJetStream(connection: NatsConnection, timeoutMs?: number): JetStreamClient {
  return jetstream(withCheckedAnswers(connection), {
    ...(timeoutMs === undefined ? {} : { timeout: timeoutMs }),
  });
}

/** Time limit of nats.js for a request without one. */
const REQUEST_TIMEOUT_MS = 1_000;

/** Wraps a connection for requests to JetStream, which are then repeated, and their answers checked. */
function withCheckedAnswers(connection: NatsConnection): NatsConnection {
  const request = async (
    subject: string,
    payload?: Payload,
    options: RequestOptions = { timeout: REQUEST_TIMEOUT_MS },
  ): Promise<Msg> => {
    const answer = await (NOT_REPEATED.test(subject)
      ? requestOnce(connection, subject, payload, options)
      : requestRepeatedly(connection, subject, payload, options));
    checkJetStreamAnswer(subject, answer.data);
    return answer;
  };
  return Object.create(connection, { request: { value: request } }) as NatsConnection;
}

interface PendingPublish {
  readonly resolve: (seq: number) => void;
  readonly reject: (error: Error) => void;
  readonly stopDeadline: () => void;
}

/** What must be true of a stream for a message to be stored; {@link StreamPublisher.swap} names the headers. */
export interface StoreCondition {
  /** Sequence of the last message on the subject; 0 for none. */
  readonly lastSeq?: number | undefined;
  /** Id of this message: the broker stores it once, and acknowledges it again if it is repeated within two minutes. */
  readonly id?: string | undefined;
  /** Id of the last message of the whole stream. */
  readonly lastId?: string | undefined;
}

/**
 * Stores messages in streams: large ones without copying them, and any number of small ones at a time with one
 * subscription for all answers. nats.js copies every message, and makes an error with a stack for each request
 * in case it fails, which is expensive for snapshots of a whole model and for the records of many parameters.
 */
export class StreamPublisher {
  readonly #connection: NatsConnection;
  readonly #inbox: string;
  readonly #pending: Map<string, PendingPublish> = new Map();
  #tokens = 0;

  private constructor(connection: NatsConnection, inbox: string) {
    this.#connection = connection;
    this.#inbox = inbox;
  }

  /**
   * Makes a publisher, which receives acknowledgements on the connection from now on.
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
        // If listening is not permitted, each publish ends at its timeout.
        if (error === null) publisher.#receive(message);
      },
    });
    return publisher;
  }

  /**
   * Stores a message and returns its sequence. The bytes must not be changed until then; after an error
   * they may still be in use. Of `timeoutMs` only the time counts for which nothing is on the link
   * ({@link startAnswerDeadline}).
   * @throws errors of nats.js: no stream, no answer in time, or JetStream's refusal; BAD_MESSAGE.
   */
  publish(subject: string, bytes: Uint8Array, timeoutMs: number): Promise<number> {
    return this.#answered(timeoutMs, (reply) =>
      publishBulk(this.#connection, subject, bytes, reply),
    );
  }

  /**
   * Publishes as {@link publish} does, on these conditions. The text is copied. Messages are sent in the order of the
   * calls.
   */
  swap(
    subject: string,
    text: string,
    { lastSeq, id, lastId }: StoreCondition,
    timeoutMs: number,
  ): Promise<number> {
    const conditions = headers();
    if (lastSeq !== undefined) conditions.set("Nats-Expected-Last-Subject-Sequence", `${lastSeq}`);
    if (id !== undefined) conditions.set("Nats-Msg-Id", id);
    if (lastId !== undefined) conditions.set("Nats-Expected-Last-Msg-Id", lastId);
    return this.#answered(timeoutMs, (reply) =>
      this.#connection.publish(subject, text, { reply, headers: conditions }),
    );
  }

  /** Publishes with the subject for the answer, and returns the sequence in it. */
  #answered(timeoutMs: number, publish: (reply: string) => void): Promise<number> {
    const token = (++this.#tokens).toString(36);
    return new Promise((resolve, reject) => {
      const onOver = (): void => {
        this.#pending.delete(token);
        reject(new TimeoutError());
      };
      const stopDeadline = startAnswerDeadline(this.#connection, timeoutMs, { onOver });
      this.#pending.set(token, { resolve, reject, stopDeadline });
      publish(`${this.#inbox}.${token}`);
    });
  }

  #receive(message: Msg): void {
    const token = message.subject.slice(message.subject.lastIndexOf(".") + 1);
    const waiting = this.#pending.get(token);
    if (waiting === undefined) return;
    this.#pending.delete(token);
    waiting.stopDeadline();
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
