import type { JobSubjects, LogSubject } from "../../protocol/index.ts";
import { blockKey } from "../snapshot/state.ts";
import type { Gap, LackedBlock, SeqRange, Tally } from "./findings.ts";

/** Counts of the records after one place of the journal. */
interface Count {
  readonly afterSeq: number;
  readonly trainers: Map<string, number>;
  hostRecords: number;
}

/**
 * Collects the gaps of a journal, and counts the records after each place that a shard may go back to,
 * while its records are scanned in order.
 */
export class JournalTally {
  readonly #subjects: JobSubjects;
  readonly #missing: ReadonlySet<number>;
  readonly #counts: Count[] = [];
  readonly #gaps: Gap[] = [];
  readonly #baseSeq: number;
  readonly #changedFrom: number;
  readonly #foldableEnd: number;
  readonly #initialized: Set<string> = new Set();
  readonly #batches: number[] = [];
  #next: number;
  #hasEnd = false;

  /**
   * `baseSeq`: the readable prefix starts after it; `places`: sequences that the shard may go back to,
   * besides the end of the prefix; `missing`: sequences without records according to the stream; `changed`:
   * records of which one is another than the one that was folded, which end the prefix, too; `failedSeq`: the
   * first record that cannot be folded, if there is one.
   */
  constructor(options: {
    readonly subjects: JobSubjects;
    readonly firstSeq: number;
    readonly baseSeq: number;
    readonly places: readonly number[];
    readonly missing: readonly number[];
    readonly changed?: SeqRange | undefined;
    readonly failedSeq?: number | undefined;
  }) {
    this.#subjects = options.subjects;
    this.#missing = new Set(options.missing);
    this.#baseSeq = options.baseSeq;
    this.#changedFrom = options.changed?.from ?? Number.POSITIVE_INFINITY;
    this.#foldableEnd = (options.failedSeq ?? Number.POSITIVE_INFINITY) - 1;
    if (options.failedSeq !== undefined) this.#count(this.#foldableEnd);
    // Records purged before the base are no loss.
    this.#next = Math.min(options.firstSeq, options.baseSeq + 1);
    for (const seq of options.places) this.#count(seq);
    if (options.changed !== undefined) this.#count(this.#changedFrom - 1);
  }

  /** Takes the next record. */
  record(seq: number, subject: string): void {
    this.#pass(seq - 1);
    this.#next = seq + 1;
    const sender = this.#sender(subject, seq);
    for (const count of this.#counts) {
      if (seq <= count.afterSeq) continue;
      if (sender === undefined) count.hostRecords += 1;
      else count.trainers.set(sender, (count.trainers.get(sender) ?? 0) + 1);
    }
  }

  /** Ends the scan; `lastSeq` is the last record that there should be. */
  end(lastSeq: number): void {
    this.#pass(lastSeq);
    if (!this.#hasEnd) this.#countEnds();
  }

  /** Gaps, ascending. */
  get gaps(): readonly Gap[] {
    return this.#gaps;
  }

  /** Last record before the first gap after the base, or before what has changed. */
  get readableEnd(): number {
    const first = this.#gaps.find(({ to }) => to > this.#baseSeq);
    const end = Math.min(first?.from ?? this.#next, this.#changedFrom) - 1;
    return Math.max(this.#baseSeq, end);
  }

  /** Last record up to which the journal can be folded from the base. */
  get prefixEnd(): number {
    return Math.min(this.readableEnd, this.#foldableEnd);
  }

  /** Batches of the prefix after the base, ascending: their subjects do not tell what they initialize. */
  get batches(): readonly number[] {
    return this.#batches;
  }

  /** The lacked blocks that no record of the prefix initializes, batches apart; looks at subjects only. */
  stillLacked(lacked: readonly LackedBlock[]): LackedBlock[] {
    return lacked.filter(
      ({ parameter, index }) => !this.#initialized.has(blockKey(parameter, index)),
    );
  }

  /** Counts of the records after a place. */
  behind(afterSeq: number): Tally {
    const count = this.#counts.find((each) => each.afterSeq === afterSeq);
    const trainers = [...(count?.trainers ?? [])]
      .map(([trainer, records]) => ({ trainer, records }))
      .sort((a, b) => b.records - a.records || (a.trainer < b.trainer ? -1 : 1));
    return { trainers, hostRecords: count?.hostRecords ?? 0 };
  }

  #pass(upTo: number): void {
    if (upTo < this.#next) return;
    for (let from = this.#next; from <= upTo; ) {
      const isEmpty = this.#missing.has(from);
      let to = from;
      while (to < upTo && this.#missing.has(to + 1) === isEmpty) to += 1;
      this.#gaps.push({ from, to, kind: isEmpty ? "empty" : "unreadable" });
      from = to + 1;
    }
    this.#next = upTo + 1;
    if (!this.#hasEnd && upTo > this.#baseSeq) {
      this.#hasEnd = true;
      this.#countEnds();
    }
  }

  #countEnds(): void {
    this.#count(this.prefixEnd);
    this.#count(this.readableEnd);
  }

  #count(afterSeq: number): void {
    if (this.#counts.some((count) => count.afterSeq === afterSeq)) return;
    this.#counts.push({ afterSeq, trainers: new Map(), hostRecords: 0 });
  }

  #noteBlocks(parsed: LogSubject, seq: number): void {
    if (parsed.by === "batch" && seq > this.#baseSeq) this.#batches.push(seq);
    const isInit = parsed.by === "trainer" && parsed.verb === "init";
    if (isInit) this.#initialized.add(blockKey(parsed.parameter, parsed.index));
  }

  /** The trainer of a record, undefined for a host's. */
  #sender(subject: string, seq: number): string | undefined {
    try {
      const parsed = this.#subjects.parseLog(subject);
      if (seq <= this.prefixEnd) this.#noteBlocks(parsed, seq);
      return parsed.by === "host" ? undefined : parsed.trainer;
    } catch {
      // A subject that is not one of the journal's names no trainer.
      return undefined;
    }
  }
}
