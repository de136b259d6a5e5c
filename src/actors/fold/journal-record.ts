import { isSealed, type Message } from "../../protocol/codec.ts";
import { PserverError } from "../../protocol/errors.ts";
import type { LogSubject } from "../../protocol/subjects.ts";
import { RECORD_HEADER_BYTES_MAX, readRecordMessage } from "./read-record.ts";
import type { Rules } from "./rules.ts";

/** One record of a shard's journal as the stream delivers it. The fold does not keep `payload`. */
export interface JournalRecord {
  readonly seq: number;
  readonly subject: string;
  readonly payload: Uint8Array;
  /**
   * False if the caller can read the record again: then `apply` throws BAD_CHECKSUM for a payload that
   * does not match its checksum instead of folding it as unreadable; it may have been damaged in
   * transit.
   */
  readonly reread?: boolean;
  /** When the broker stored it, in milliseconds since 1970. No part of the fold: only observers see it. */
  readonly timeMs?: number;
}

/** A subject that was parsed; undefined if the rules in force do not know it. */
export function knownSubject(
  subject: LogSubject | undefined,
  rules: Rules | undefined,
): LogSubject | undefined {
  if (subject?.by !== "batch" && subject?.by !== "note") return subject;
  return boundsOf(subject, rules) === undefined ? undefined : subject;
}

/**
 * The record's message; undefined if it is unreadable under the rules in force.
 * @throws BAD_CHECKSUM, only with `reread: false`, if the payload does not match its checksum.
 */
export function readMessage(
  record: JournalRecord,
  subject: LogSubject | undefined,
  rules: Rules | undefined,
  shard: number,
): Message | undefined {
  const { seq, payload, reread } = record;
  const headBytesMax = boundsOf(subject, rules)?.headBytesMax ?? RECORD_HEADER_BYTES_MAX;
  const message = readRecordMessage(payload, headBytesMax);
  if (message !== undefined || reread !== false) return message;
  // The checksum matches: the record is stored like this.
  if (isSealed(payload)) return undefined;
  throw new PserverError(
    "BAD_CHECKSUM",
    `record ${seq} of shard ${shard}: ${payload.length} bytes do not match their checksum`,
    { shard, seq },
  );
}

/** Own limits of a verb that later versions have added; undefined if the rules in force have none. */
function boundsOf(
  subject: LogSubject | undefined,
  rules: Rules | undefined,
): { readonly headBytesMax: number } | undefined {
  if (subject?.by === "batch") return rules?.batches;
  return subject?.by === "note" ? rules?.notes : undefined;
}
