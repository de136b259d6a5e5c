import { JetStreamApiError, JetStreamError } from "@nats-io/jetstream";
import {
  AuthorizationError,
  ClosedConnectionError,
  DrainingConnectionError,
  type NatsConnection,
  NoRespondersError,
  PermissionViolationError,
  RequestError,
  TimeoutError,
} from "@nats-io/transport-node";
import { mismatch, visible } from "../protocol/errors.ts";
import {
  type ErrorCode,
  type ErrorDetails,
  JETSTREAM_ERRORS,
  PserverError,
  refusalCode,
  refusalText,
  storeRefusalCode,
} from "../protocol/index.ts";

/** Returns the number of a JetStream API error; 0 for any other error. */
export function jetStreamErrorCode(error: unknown): number {
  return error instanceof JetStreamApiError ? error.code : 0;
}

/** Returns whether a compare-and-swap was refused because of another write, done or under way. */
export function isWrongSequence(error: unknown): boolean {
  const code = jetStreamErrorCode(error);
  return (
    code === JETSTREAM_ERRORS.WRONG_LAST_ID ||
    code === JETSTREAM_ERRORS.WRONG_LAST_SEQUENCE ||
    code === JETSTREAM_ERRORS.WRONG_LAST_SEQUENCE_UNKNOWN
  );
}

/**
 * Turns an error of nats.js into an error of the project, whose message says with `action` what failed. "No
 * responders" becomes JETSTREAM_UNAVAILABLE: a cluster without a leader is as silent as a broker without
 * JetStream, which {@link isWithoutJetStream} recognizes.
 */
export function fromBrokerError(
  error: unknown,
  action: string,
  details: ErrorDetails = {},
): PserverError {
  return toPserverError(error, action, details, refusalCode);
}

/**
 * Does as {@link fromBrokerError} does, for storing a message in a stream: a full stream may store it later.
 */
export function fromStoreError(
  error: unknown,
  action: string,
  details: ErrorDetails = {},
): PserverError {
  return toPserverError(error, action, details, storeRefusalCode);
}

/**
 * Returns whether the broker has no JetStream, by its greeting. False for a member of a cluster: other
 * members may have it.
 */
export function isWithoutJetStream({ info }: Pick<NatsConnection, "info">): boolean {
  return info !== undefined && info.jetstream !== true && info.cluster === undefined;
}

/**
 * Returns the error itself, or NO_JETSTREAM instead of JETSTREAM_UNAVAILABLE if the broker has no JetStream.
 */
export function orNoJetStream(
  error: PserverError,
  connection: Pick<NatsConnection, "info">,
): PserverError {
  if (error.code !== "JETSTREAM_UNAVAILABLE" || !isWithoutJetStream(connection)) return error;
  return new PserverError("NO_JETSTREAM", error.message, error.details, { cause: error });
}

/**
 * Returns whether the error says that the broker's permissions forbid a subscription. Such a subscription
 * receives nothing.
 */
export function isRefusedSubscription(error: unknown): boolean {
  return error instanceof PermissionViolationError && error.operation === "subscription";
}

/** Returns whether the error says that nobody answers for a consumer which was asked for messages. */
export function isUnknownConsumer(error: unknown): boolean {
  // nats.js exports no class of such errors.
  return error instanceof JetStreamError && "code" in error && error.code === 503;
}

/** Returns whether the error says that nobody listens to the subject of a request. */
export function isNoResponders(error: unknown): boolean {
  return (
    error instanceof NoRespondersError || (error instanceof RequestError && error.isNoResponders())
  );
}

function toPserverError(
  error: unknown,
  action: string,
  details: ErrorDetails,
  meaning: typeof refusalCode,
): PserverError {
  if (error instanceof PserverError) return error;
  const text = visible(error instanceof Error ? error.message : String(error));
  // nats.js wraps errors: the one that matters may be a cause of the one thrown.
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof PserverError) return cause;
    const code = codeOf(cause, meaning);
    if (code === undefined) continue;
    const reason = isNoResponders(cause)
      ? "nobody answers"
      : (BETTER_TEXTS[code] ?? explained(cause, text));
    return new PserverError(code, `${action}: ${reason}`, details, { cause: error });
  }
  return new PserverError("INTERNAL", `${action}: ${text}`, details, { cause: error });
}

/** Better texts for some errors of nats.js, by code. */
const BETTER_TEXTS: Partial<Record<ErrorCode, string>> = {
  TIMEOUT: "the broker did not answer in time",
  CLOSED: "the connection is closed",
};

/** Adds what people need to know about a refusal of JetStream. */
function explained(error: Error, description: string): string {
  if (!(error instanceof JetStreamApiError)) return description;
  return refusalText({ status: error.status, errorCode: error.code, description });
}

function codeOf(error: Error, meaning: typeof refusalCode): ErrorCode | undefined {
  if (error instanceof JetStreamApiError) {
    const { status, code: errorCode, message: description } = error;
    return meaning({ status, errorCode, description });
  }
  if (isNoResponders(error)) return "JETSTREAM_UNAVAILABLE";
  if (error instanceof TimeoutError) return "TIMEOUT";
  if (error instanceof ClosedConnectionError || error instanceof DrainingConnectionError) {
    return "CLOSED";
  }
  if (error instanceof AuthorizationError || error instanceof PermissionViolationError) {
    return "DENIED";
  }
  // An error with a cause only wraps that error. Without a cause, the connection was lost before the answer.
  if (error instanceof RequestError && error.cause === undefined) return "NO_BROKER";
  // A consumer has ended: it was deleted, lost its leader or sent no heartbeat.
  return error instanceof JetStreamError ? "JETSTREAM_UNAVAILABLE" : undefined;
}

const SHOWN_MAX = 60;

/**
 * Parses JSON that a broker has sent; @throws BAD_MESSAGE, showing the beginning of the text, if it is not
 * JSON.
 */
export function parseJson(text: string, what: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    const received = visible(JSON.stringify(text.slice(0, SHOWN_MAX)));
    throw mismatch("BAD_MESSAGE", what, "JSON", received, {}, { cause });
  }
}
