import { type ErrorCode, PserverError } from "../../protocol/errors.ts";
import { storeRefusalCode } from "../../protocol/jetstream-errors.ts";
import type { Position } from "../../protocol/position.ts";
import type { JobSubjects } from "../../protocol/subjects.ts";
import { type PubAckError, parsePubAck } from "../../transport/pub-ack.ts";
import type { InboxMessage } from "./wire.ts";

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
