import type { CountRow } from "./fold-state.ts";

/** Counts of senders to a shard and of their rejected and unreadable records. */
export interface Senders {
  /** Remembered trainers. */
  readonly trainers: number;
  /** Parameters that hosts have declared. */
  readonly declared: number;
  /** Records without a readable sender: damaged, malformed, or of another shard. */
  readonly unreadable: number;
  /** Trainers whose session has more rejected than applied records. */
  readonly refusedOf: readonly CountRow[];
  /** Unreadable records by the trainer in their subjects. */
  readonly unreadableOf: readonly CountRow[];
}

/** Counts of unreadable records: in total, and for a limited number of trainers. */
export class UnreadableCounts {
  readonly #byTrainer: Map<string, number> = new Map();
  #total = 0;

  /** Of all senders. */
  get total(): number {
    return this.#total;
  }

  /** By trainer, in order of the UTF-16 code units of the ids. */
  sorted(): CountRow[] {
    return [...this.#byTrainer].sort(([a], [b]) => (a < b ? -1 : 1));
  }

  /**
   * Counts one record, in total and for its trainer if known. Trainers beyond `trainersMax` (all if
   * undefined) have no count of their own.
   */
  count(trainer: string | undefined, trainersMax: number | undefined): void {
    this.#total += 1;
    if (trainer === undefined || trainersMax === undefined) return;
    const known = this.#byTrainer.get(trainer);
    if (known === undefined && this.#byTrainer.size >= trainersMax) return;
    this.#byTrainer.set(trainer, (known ?? 0) + 1);
  }

  /** Restores saved counts. */
  restore(total: number, byTrainer: readonly CountRow[]): void {
    this.#total = total;
    for (const [trainer, records] of byTrainer) this.#byTrainer.set(trainer, records);
  }
}
