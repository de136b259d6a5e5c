import type { JobSubjects } from "../../protocol/index.ts";
import { blockKey } from "../snapshot/state.ts";
import type { Gap, LackedBlock, Tally } from "./findings.ts";

/** What is counted behind one place of the journal. */
interface Count {
  readonly afterSeq: number;
  readonly trainers: Map<string, number>;
  hostRecords: number;
}

/**
 * What a journal holds, told record by record in their order: which sequences it does not give, and
 * whose records lie behind each place that a shard may go back to.
 */
export class JournalTally {
  readonly #subjects: JobSubjects;
  readonly #missing: ReadonlySet<number>;
  readonly #counts: Count[] = [];
  readonly #gaps: Gap[] = [];
  readonly #baseSeq: number;
  readonly #initialized: Set<string> = new Set();
  #next: number;
  #hasEnd = false;

  /**
   * `baseSeq`: the records after it are those that the readable prefix would add; `places`: sequences
   * that the shard may go back to beside its end; `missing`: sequences that the stream says are empty.
   */
  constructor(options: {
    readonly subjects: JobSubjects;
    readonly firstSeq: number;
    readonly baseSeq: number;
    readonly places: readonly number[];
    readonly missing: readonly number[];
  }) {
    this.#subjects = options.subjects;
    this.#missing = new Set(options.missing);
    this.#baseSeq = options.baseSeq;
    // Records that the journal gave up long ago, before the base, are no loss.
    this.#next = Math.min(options.firstSeq, options.baseSeq + 1);
    for (const seq of options.places) this.#count(seq);
  }

  /** The next record that the journal gives. */
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

  /** No record comes any more; `lastSeq` is the last one that there should be. */
  end(lastSeq: number): void {
    this.#pass(lastSeq);
    if (!this.#hasEnd) this.#count(this.prefixEnd);
  }

  /** Sequences that the journal does not give, ascending. */
  get gaps(): readonly Gap[] {
    return this.#gaps;
  }

  /** The last record up to which there is no gap after the base. */
  get prefixEnd(): number {
    const first = this.#gaps.find(({ to }) => to > this.#baseSeq);
    return Math.max(this.#baseSeq, (first?.from ?? this.#next) - 1);
  }

  /** Those of some blocks that no record of the prefix initializes, as far as subjects tell. */
  stillLacked(lacked: readonly LackedBlock[]): LackedBlock[] {
    return lacked.filter(
      ({ parameter, index }) => !this.#initialized.has(blockKey(parameter, index)),
    );
  }

  /** Whose records the journal still gives behind a place. */
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
      this.#count(this.prefixEnd);
    }
  }

  #count(afterSeq: number): void {
    if (this.#counts.some((count) => count.afterSeq === afterSeq)) return;
    this.#counts.push({ afterSeq, trainers: new Map(), hostRecords: 0 });
  }

  /** The trainer of a record, undefined for a host's. */
  #sender(subject: string, seq: number): string | undefined {
    try {
      const parsed = this.#subjects.parseLog(subject);
      const isInit = parsed.by === "trainer" && parsed.verb === "init" && seq <= this.prefixEnd;
      if (isInit) this.#initialized.add(blockKey(parsed.parameter, parsed.index));
      return parsed.by === "host" ? undefined : parsed.trainer;
    } catch {
      // Whoever publishes below the journal's subjects is no trainer whom anybody could tell.
      return undefined;
    }
  }
}
