import { JetStreamApiError } from "@nats-io/jetstream";
import {
  AuthorizationError,
  ClosedConnectionError,
  DrainingConnectionError,
  NoRespondersError,
  PermissionViolationError,
  RequestError,
  TimeoutError,
} from "@nats-io/transport-node";
import { type ErrorDetails, PserverError, visible } from "../protocol/index.ts";

/** Error numbers of the JetStream API that we act on. */
export const JETSTREAM_ERRORS = {
  STREAM_NOT_FOUND: 10059,
  STREAM_NAME_IN_USE: 10058,
  /** The broker could not make a stream's store; its text says no more. */
  STREAM_NOT_MADE: 10049,
  MESSAGE_NOT_FOUND: 10037,
  SEQUENCE_NOT_FOUND: 10043,
  /** Of a stream's message; what else is in words that differ by broker version. */
  MESSAGE_NOT_REMOVED: 10057,
  MESSAGE_TOO_LARGE: 10054,
  ACCOUNT_EXCEEDED: 10002,
  INSUFFICIENT_RESOURCES: 10023,
  INSUFFICIENT_STORAGE: 10047,
  INSUFFICIENT_MEMORY: 10028,
  NOT_ENABLED: 10076,
  NOT_ENABLED_FOR_ACCOUNT: 10039,
  /** A limit of the stream, or whatever its store says; the text tells which. */
  STORE_FAILED: 10077,
  WRONG_LAST_SEQUENCE: 10071,
  WRONG_LAST_SEQUENCE_UNKNOWN: 10164,
} as const;

const NOT_ENABLED: readonly number[] = [
  JETSTREAM_ERRORS.NOT_ENABLED,
  JETSTREAM_ERRORS.NOT_ENABLED_FOR_ACCOUNT,
];

/** The number of a JetStream API error, 0 for any other error. */
export function jetStreamErrorCode(error: unknown): number {
  return error instanceof JetStreamApiError ? error.code : 0;
}

/**
 * Whether a stream's store took no message because a limit or the disk is full, by the broker's text.
 * Else it cannot write, such as "no message cache": a full disk took only half a record that began a
 * file, and nats-server writes no other behind it until it is started again.
 */
export function isStoreFull(text: string): boolean {
  return /exceeded|no space left/.test(text);
}

/** What an error of nats.js means to us; `action` says in the message what was being done. */
export function fromBrokerError(
  error: unknown,
  action: string,
  details: ErrorDetails = {},
): PserverError {
  if (error instanceof PserverError) return error;
  const cause = { cause: error };
  const text = visible(error instanceof Error ? error.message : String(error));
  const code = jetStreamErrorCode(error);
  // The JetStream client wraps some in an error of a class that it does not export.
  const wrapped = error instanceof Error ? error.cause : undefined;
  if (
    isNoResponders(error) ||
    isNoResponders(wrapped) ||
    NOT_ENABLED.includes(code) ||
    NOT_ENABLED.includes(jetStreamErrorCode(wrapped))
  ) {
    return new PserverError(
      "NO_JETSTREAM",
      `${action}: JetStream does not answer: ${text}`,
      details,
      cause,
    );
  }
  if (error instanceof TimeoutError) {
    return new PserverError(
      "TIMEOUT",
      `${action}: the broker did not answer in time`,
      details,
      cause,
    );
  }
  if (error instanceof ClosedConnectionError || error instanceof DrainingConnectionError) {
    return new PserverError("CLOSED", `${action}: the connection is closed`, details, cause);
  }
  if (isDenied(error)) {
    return new PserverError("DENIED", `${action}: ${text}`, details, cause);
  }
  if (code === JETSTREAM_ERRORS.STORE_FAILED) {
    const refusal = isStoreFull(text) ? "JOURNAL_FULL" : "JOURNAL_FAULT";
    return new PserverError(refusal, `${action}: ${text}`, details, cause);
  }
  if (
    code === JETSTREAM_ERRORS.ACCOUNT_EXCEEDED ||
    code === JETSTREAM_ERRORS.INSUFFICIENT_STORAGE ||
    code === JETSTREAM_ERRORS.INSUFFICIENT_MEMORY
  ) {
    return new PserverError("NO_SPACE", `${action}: ${text}`, details, cause);
  }
  return new PserverError("INTERNAL", `${action}: ${text}`, details, cause);
}

/** Whether the broker's permissions forbid a subscription: whoever made it hears nothing. */
export function isRefusedSubscription(error: unknown): boolean {
  return error instanceof PermissionViolationError && error.operation === "subscription";
}

/** Whether nobody listened to the subject of a request. */
export function isNoResponders(error: unknown): boolean {
  return (
    error instanceof NoRespondersError || (error instanceof RequestError && error.isNoResponders())
  );
}

/** The JetStream client and a request wrap it, the one in the cause of the other. */
function isDenied(error: unknown): boolean {
  return (
    error instanceof AuthorizationError ||
    error instanceof PermissionViolationError ||
    (error instanceof Error && isDenied(error.cause))
  );
}
