import type { JournalInfo } from "../journal/journal.ts";
import { type JournalGap, journalDamaged, lastRecordSeq } from "./journal-gap.ts";

/** State of a journal stream that tells where its records end. */
type JournalEndInfo = Pick<JournalInfo, "lastSeq" | "missing" | "lost">;

/**
 * The last record that a fold at `foldedSeq` has to reach, at least `foldedSeq`.
 * @throws JOURNAL_DAMAGED if the sequences after it have no records, and the broker has found damage
 * other than these: it names records that a full disk kept it from storing, but not those that a
 * crash has cut off.
 */
export function headSeqOf(shard: number, foldedSeq: number, info: JournalEndInfo): number {
  const headSeq = lastRecordSeq(info);
  const lost = info.lost && new Set(info.lost);
  const isCutOff = info.missing.some((seq) => seq > headSeq && lost?.has(seq) === false);
  if (isCutOff) throw journalDamaged(shard, headSeq + 1, undefined);
  return Math.max(headSeq, foldedSeq);
}

/**
 * The last record of a journal as its owner found it.
 *
 * Two invariants depend on it. An owner serves only after it has folded all records that it found when
 * it took over: former owners may have answered them. And it skips a gap only above these: only there
 * is it certain that no former owner has folded the missing records.
 */
export class JournalHead {
  readonly #shard: number;
  /** The head at the first look at the present generation. */
  #takeOver: { readonly generation: number; readonly seq: number } | undefined;
  #seq = 0;

  constructor(shard: number) {
    this.#shard = shard;
  }

  /** The record that the fold must have reached to have caught up. */
  get seq(): number {
    return this.#seq;
  }

  /** Whether the journal of a generation has been looked at before. */
  knows(generation: number): boolean {
    return this.#takeOver?.generation === generation;
  }

  /** Notes the head at a look at the journal. */
  note(generation: number, seq: number): void {
    this.#seq = seq;
    if (!this.knows(generation)) this.#takeOver = { generation, seq };
  }

  /**
   * Passes if a gap may be skipped: it begins above the head at take-over, and the stream reports that
   * it holds none of the records. A record that it counts but cannot read was stored, acknowledged,
   * and damaged later.
   * @throws JOURNAL_DAMAGED {expected, found} if the gap may be a loss.
   */
  checkGap(
    { from, to }: JournalGap,
    generation: number,
    info: Pick<JournalInfo, "missing"> | undefined,
  ): void {
    const missing = info?.missing.filter((seq) => from <= seq && seq <= to).length;
    const isAbove = this.#takeOver?.generation === generation && from > this.#takeOver.seq;
    if (!isAbove || missing !== to - from + 1) throw journalDamaged(this.#shard, from, to + 1);
  }
}
