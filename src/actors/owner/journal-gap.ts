import { PserverError } from "../../protocol/index.ts";
import type { JournalInfo } from "../journal/journal.ts";

/** First and last of consecutive records that a journal lacks between two that it holds. */
export interface JournalGap {
  readonly from: number;
  readonly to: number;
}

/**
 * The last record of a journal; 0 if there can be none. It may be below the last sequence, because a
 * full disk uses up sequences without storing records.
 */
export function lastRecordSeq({
  lastSeq,
  missing,
}: Pick<JournalInfo, "lastSeq" | "missing">): number {
  let seq = lastSeq;
  for (let i = missing.length - 1; i >= 0 && missing[i] === seq; i--) seq -= 1;
  return seq;
}

/** The error for a journal that lacks an expected record; `found` is the next one that it holds. */
export function journalDamaged(
  shard: number,
  expected: number,
  found: number | undefined,
): PserverError {
  return new PserverError(
    "JOURNAL_DAMAGED",
    `shard ${shard}: expected record ${expected}; found ${found ?? "nothing"}`,
    { shard, expected, found: found ?? "nothing" },
  );
}
