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
import { parseJson } from "./parse-json.ts";
import { parsePubAck, parsePubAckError } from "./pub-ack.ts";

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
 * Checks JetStream's answer to a request to `subject`, one of the API or a PubAck, before nats.js uses
 * it, which does not check. An error that JetStream reports is a valid answer.
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
