import type { CountRow } from "./fold-state.ts";

/** Who sends to a shard, and what was of no use. */
export interface Senders {
  /** Trainers that are remembered. */
  readonly trainers: number;
  /** Parameters that hosts have declared. */
  readonly declared: number;
  /** Records that named no one to answer: damaged, malformed, or of another shard. */
  readonly unreadable: number;
  /** Sessions with more refused records than applied ones. */
  readonly refusedOf: readonly CountRow[];
  /** Unreadable records by the trainer in their subjects. */
  readonly unreadableOf: readonly CountRow[];
}

/** How many records nobody could be answered for: in all, and of some trainers each by itself. */
export class UnreadableCounts {
  readonly #byTrainer: Map<string, number> = new Map();
  #total = 0;

  /** Of all senders, whoever they are. */
  get total(): number {
    return this.#total;
  }

  /** By trainer, in order of the UTF-16 code units of the ids. */
  sorted(): CountRow[] {
    return [...this.#byTrainer].sort(([a], [b]) => (a < b ? -1 : 1));
  }

  /**
   * Counts one record, and as the trainer's own if there is one. Trainers beyond `trainersMax`, or
   * all if it is undefined, are part of the total only.
   */
  count(trainer: string | undefined, trainersMax: number | undefined): void {
    this.#total += 1;
    if (trainer === undefined || trainersMax === undefined) return;
    const known = this.#byTrainer.get(trainer);
    if (known === undefined && this.#byTrainer.size >= trainersMax) return;
    this.#byTrainer.set(trainer, (known ?? 0) + 1);
  }

  /** Takes the place of counts that were saved. */
  restore(total: number, byTrainer: readonly CountRow[]): void {
    this.#total = total;
    for (const [trainer, records] of byTrainer) this.#byTrainer.set(trainer, records);
  }
}
