import { PserverError } from "../protocol/errors.ts";
import type { Position } from "../protocol/outcomes.ts";
import type { JobSubjects } from "../protocol/subjects.ts";
import { isStoreFull, JETSTREAM_ERRORS } from "../transport/broker-error.ts";
import { type PubAckError, parsePubAck } from "../transport/pub-ack.ts";
import type { InboxMessage } from "./wire.ts";

/** What the broker said to a journal record. */
export type JournalAck =
  /** It is stored, at this position. */
  | { readonly kind: "stored"; readonly shard: number; readonly position: Position }
  /** It is not stored; the same record can be stored later. */
  | { readonly kind: "later"; readonly error: PserverError }
  /** It is not stored and never will be. */
  | { readonly kind: "refused"; readonly error: PserverError };

/** An account or a store that is full. */
const FULL: readonly number[] = [
  JETSTREAM_ERRORS.ACCOUNT_EXCEEDED,
  JETSTREAM_ERRORS.INSUFFICIENT_STORAGE,
  JETSTREAM_ERRORS.INSUFFICIENT_RESOURCES,
];

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
  if ("error" in ack) return refusal(ack.error);
  const { shard, generation } = subjects.parseJournalStream(ack.stream);
  return { kind: "stored", shard, position: { generation, seq: ack.seq } };
}

function refusal(ack: PubAckError): JournalAck {
  const { code, errorCode, description } = ack;
  const details = { brokerCode: errorCode, brokerMessage: description };
  if (isFull(ack)) {
    const message = `the journal is full: ${description}`;
    return { kind: "later", error: new PserverError("JOURNAL_FULL", message, details) };
  }
  if (errorCode === JETSTREAM_ERRORS.STORE_FAILED) {
    const message = `the broker cannot write the journal: ${description}`;
    return { kind: "later", error: new PserverError("JOURNAL_FAULT", message, details) };
  }
  if (errorCode === JETSTREAM_ERRORS.MESSAGE_TOO_LARGE) {
    return {
      kind: "refused",
      error: new PserverError(
        "TOO_LARGE",
        `the journal takes no record this large: ${description}`,
        details,
      ),
    };
  }
  if (code === 503) {
    return {
      kind: "later",
      error: new PserverError("NO_OWNER", `the journal cannot store: ${description}`, details),
    };
  }
  return {
    kind: "refused",
    error: new PserverError("INTERNAL", `the journal refused the record: ${description}`, details),
  };
}

/** Whether the stream, the store or the account is full. */
function isFull({ errorCode, description }: PubAckError): boolean {
  if (errorCode === JETSTREAM_ERRORS.STORE_FAILED) return isStoreFull(description);
  return FULL.includes(errorCode);
}
