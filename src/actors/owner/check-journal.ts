import { PserverError } from "../../protocol/index.ts";
import type { JournalRecord } from "../fold/journal-record.ts";
import { recordCrc } from "../fold/read-record.ts";
import type { Shard } from "../fold/shard.ts";
import type { Journal, JournalInfo } from "../journal/journal.ts";
import { majorityInfo, majorityRecord } from "../journal/majority-reads.ts";
import type { HeadMark } from "./head-mark.ts";
import { journalDamaged, lastRecordSeq } from "./journal-gap.ts";

/** The last record that an owner has folded. */
export interface FoldedHead {
  readonly seq: number;
  /** Checksum of the record; 0 if there is none at this sequence, or an unreadable one. */
  readonly crc: number;
}

/** What a journal is compared with. */
export interface ExpectedJournal {
  readonly generation: number;
  /** Creation time of its stream; "" if unknown. */
  readonly created: string;
  readonly shard: Pick<Shard, "seq" | "lastCrc">;
  /** Mark of former owners, read before the journal's state; ignored if of another generation. */
  readonly mark: HeadMark | undefined;
}

/**
 * Checks that a journal is the one that was folded: created at the same time, not shorter, and with
 * the same record where this owner, and former ones according to the mark, have folded up to.
 * @returns its state; undefined if there is no stream.
 * @throws JOURNAL_LOST {from, to} if its newest records are gone, JOURNAL_DAMAGED {expected, found}
 * if records in it are.
 */
export async function checkJournal(
  journal: Pick<Journal, "shard" | "isReplicated" | "info" | "record" | "append">,
  expected: ExpectedJournal,
): Promise<JournalInfo | undefined> {
  const { generation, created } = expected;
  // One whose creation was not completed takes no records but its rules.
  const info =
    created === "" ? await journal.info(generation) : await majorityInfo(journal, generation);
  if (info === undefined) return undefined;
  for (const head of checkState(journal.shard, expected, info)) {
    checkRecordAt(head, journal.shard, info, await majorityRecord(journal, generation, head.seq));
  }
  return info;
}

/**
 * The part of {@link checkJournal} that needs only the state of the stream.
 * @returns the heads whose records {@link checkRecordAt} has to compare.
 */
export function checkState(
  shard: number,
  { generation, created, shard: { seq, lastCrc }, mark }: ExpectedJournal,
  info: JournalInfo,
): readonly FoldedHead[] {
  const own = { seq, crc: lastCrc };
  const isMarkLater = mark?.generation === generation && mark.seq > seq;
  const last = isMarkLater ? { seq: mark.seq, crc: mark.recordCrc } : own;
  if (created !== "" && info.created !== created) {
    const how = `was made at ${created} and again at ${info.created}`;
    throw journalLost(shard, 1, last.seq, how);
  }
  // After a skipped gap, the last sequence may have no record. A mark names a record.
  const endSeq = isMarkLater || own.crc !== 0 ? lastRecordSeq(info) : info.lastSeq;
  if (endSeq < last.seq) throw journalLost(shard, endSeq + 1, last.seq, "ends too early");
  if (info.firstSeq > seq + 1) throw journalDamaged(shard, seq + 1, info.firstSeq);
  // Without a checksum there is nothing to compare.
  return [own, ...(isMarkLater ? [last] : [])].filter(({ crc }) => crc !== 0);
}

/** @throws JOURNAL_DAMAGED if the record at a head is missing or another one. */
export function checkRecordAt(
  { seq, crc: expected }: FoldedHead,
  shard: number,
  info: Pick<JournalInfo, "firstSeq">,
  record: Pick<JournalRecord, "payload"> | undefined,
): void {
  if (record === undefined) {
    throw journalDamaged(shard, seq, info.firstSeq > seq ? info.firstSeq : undefined);
  }
  const found = recordCrc(record.payload);
  if (found === expected) return;
  throw new PserverError(
    "JOURNAL_DAMAGED",
    `shard ${shard}: record ${seq} has changed: expected checksum ${expected}; found ${found}`,
    { shard, seq, expected, found },
  );
}

/** The error for folded records that a journal no longer holds; `to` is below `from` for none. */
export function journalLost(shard: number, from: number, to: number, how: string): PserverError {
  const what = to < from ? "nothing of it had been folded" : `records ${from} to ${to} are lost`;
  return new PserverError("JOURNAL_LOST", `shard ${shard}: the journal ${how}; ${what}`, {
    shard,
    from,
    to,
  });
}
