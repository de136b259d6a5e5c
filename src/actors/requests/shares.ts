/** Bounds of something that trainers share, in units of the user's choice. */
export interface ShareLimits {
  /** What one trainer may hold; one thing alone may be larger. */
  readonly each: number;
  /** What all may hold together. */
  readonly all: number;
}

/**
 * How much of something bounded each trainer holds. Nobody may hold more than is left free, so that
 * those who hold the most are refused first and there is always room for one who holds nothing: of one
 * greedy trainer half remains free, of two a third.
 */
export class Shares {
  readonly #limits: ShareLimits;
  readonly #held: Map<string, number> = new Map();
  #total = 0;

  constructor(limits: ShareLimits) {
    this.#limits = limits;
  }

  /** What all hold together. */
  get total(): number {
    return this.#total;
  }

  /** Gives a trainer more, if it may have it; false changes nothing. */
  take(trainer: string, amount: number): boolean {
    const { each, all } = this.#limits;
    const before = this.#held.get(trainer) ?? 0;
    const held = before + amount;
    if ((before > 0 && held > each) || held > all - this.#total) return false;
    this.#held.set(trainer, held);
    this.#total += amount;
    return true;
  }

  /** Takes back what {@link take} gave. */
  giveBack(trainer: string, amount: number): void {
    const held = (this.#held.get(trainer) ?? 0) - amount;
    if (held > 0) this.#held.set(trainer, held);
    else this.#held.delete(trainer);
    this.#total -= amount;
  }
}
