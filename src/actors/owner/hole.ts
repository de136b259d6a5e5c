import { PserverError } from "../../protocol/index.ts";
import type { Journal, JournalInfo } from "../journal/journal.ts";

/** Records that a journal lacks between two that it holds: the first and the last of them. */
export interface Hole {
  readonly from: number;
  readonly to: number;
}

/**
 * Checks that a hole may be passed over by an owner that found `headSeq` to be the last record when
 * it took the shard over. Above that it alone has folded, and it has not folded these: so none was
 * ever acknowledged as applied. And the stream must say itself that it holds none of them, as it
 * does of those that a full disk kept it from writing; one that it counts and cannot read was
 * damaged later, and may have been promised to be stored.
 * @throws JOURNAL_DAMAGED {expected, found} if the hole may not be passed over.
 */
export function checkHole(
  shard: number,
  hole: Hole,
  headSeq: number,
  { missing }: Pick<JournalInfo, "missing">,
): void {
  const { from, to } = hole;
  const neverWritten = missing.filter((seq) => from <= seq && seq <= to).length;
  if (from <= headSeq || neverWritten !== to - from + 1) throw journalDamaged(shard, from, to + 1);
}

/**
 * The last record of a journal, 0 if there can be none: not always its last sequence, for a full
 * disk uses up sequences without records.
 */
export function lastRecordSeq({
  lastSeq,
  missing,
}: Pick<JournalInfo, "lastSeq" | "missing">): number {
  let seq = lastSeq;
  for (let i = missing.length - 1; i >= 0 && missing[i] === seq; i--) seq -= 1;
  return seq;
}

/**
 * Where a fold at `foldedSeq` has to get to until it has caught up.
 * @throws JOURNAL_DAMAGED if the record there cannot be read: no reading would ever get to it. Also
 * if the sequences after it have no records and the broker has found damage that is not these: it
 * names what a full disk kept it from writing, and what a crash cut off it does not.
 */
export async function findHead(
  journal: Journal,
  generation: number,
  foldedSeq: number,
  info: Pick<JournalInfo, "lastSeq" | "missing" | "lost">,
): Promise<number> {
  const headSeq = lastRecordSeq(info);
  const lost = info.lost && new Set(info.lost);
  const unnamed = info.missing.some((seq) => seq > headSeq && lost?.has(seq) === false);
  if (unnamed) throw journalDamaged(journal.shard, headSeq + 1, undefined);
  if (headSeq <= foldedSeq) return foldedSeq;
  const record = await journal.record(generation, headSeq);
  if (record === undefined) throw journalDamaged(journal.shard, headSeq, undefined);
  return headSeq;
}

/** The error for a journal that lacks a record it should hold; `found` is the next that it has. */
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
