import { PserverError } from "../../protocol/index.ts";
import { recordCrc } from "../fold/read-record.ts";
import type { Shard } from "../fold/shard.ts";
import type { Journal, JournalInfo } from "../journal/journal.ts";
import type { HeadMark } from "./head-mark.ts";
import { journalDamaged, lastRecordSeq } from "./hole.ts";

/** A place in a journal that was folded, and the checksum of the record there; 0 if there is none. */
interface FoldedHead {
  readonly seq: number;
  readonly crc: number;
}

/** What a journal is checked against. */
export interface ExpectedJournal {
  readonly generation: number;
  /** When its stream was made; "" if that is not known yet. */
  readonly created: string;
  readonly shard: Pick<Shard, "seq" | "lastCrc">;
  /** Read before the journal is looked at. One of another generation says nothing. */
  readonly mark: HeadMark | undefined;
}

/**
 * Checks that a journal is the one that was folded: made at the same time, not shorter, and with the
 * last folded record unchanged, unless records were passed over up to there. What was folded is what
 * this owner holds, and what the mark says of its predecessors.
 * @returns undefined if there is no stream.
 * @throws JOURNAL_LOST {from, to} if its newest records are gone, JOURNAL_DAMAGED {expected, found}
 * if records in it are.
 */
export async function checkJournal(
  journal: Journal,
  { generation, created, shard, mark }: ExpectedJournal,
): Promise<JournalInfo | undefined> {
  const info = await journal.info(generation);
  if (info === undefined) return undefined;
  const held = { seq: shard.seq, crc: shard.lastCrc };
  const noted =
    mark?.generation === generation && mark.seq > held.seq
      ? { seq: mark.seq, crc: mark.recordCrc }
      : held;
  if (created !== "" && info.created !== created) {
    const how = `was made at ${created} and again at ${info.created}`;
    throw journalLost(journal, 1, noted.seq, how);
  }
  checkLength(journal, info, noted);
  if (info.firstSeq > held.seq + 1) {
    throw journalDamaged(journal.shard, held.seq + 1, info.firstSeq);
  }
  await checkRecord(journal, generation, info, held);
  if (noted !== held) await checkRecord(journal, generation, info, noted);
  return info;
}

/** @throws JOURNAL_LOST if the journal ends before a head. */
function checkLength(journal: Journal, info: JournalInfo, { seq, crc }: FoldedHead): void {
  // Where records were passed over, the sequences may be used up and without a record.
  const last = crc === 0 ? info.lastSeq : lastRecordSeq(info);
  if (last < seq) throw journalLost(journal, last + 1, seq, "ends too early");
}

/** @throws JOURNAL_DAMAGED if the record at a head is not there or is another. */
async function checkRecord(
  journal: Journal,
  generation: number,
  info: JournalInfo,
  { seq, crc: expected }: FoldedHead,
): Promise<void> {
  // Without a checksum there is no record, or one that could not be told from another.
  if (expected === 0) return;
  const record = await journal.record(generation, seq);
  if (record === undefined) throw journalDamaged(journal.shard, seq, info.firstSeq);
  const found = recordCrc(record.payload);
  if (found === expected) return;
  throw new PserverError(
    "JOURNAL_DAMAGED",
    `shard ${journal.shard}: record ${seq} has changed: expected checksum ${expected}; found ${found}`,
    { shard: journal.shard, seq, expected, found },
  );
}

/** The error for folded records that a journal does not hold any more; none if `to` is 0. */
export function journalLost(
  journal: Pick<Journal, "shard">,
  from: number,
  to: number,
  how: string,
): PserverError {
  const what = to < from ? "nothing of it had been folded" : `records ${from} to ${to} are lost`;
  return new PserverError("JOURNAL_LOST", `shard ${journal.shard}: the journal ${how}; ${what}`, {
    shard: journal.shard,
    from,
    to,
  });
}
