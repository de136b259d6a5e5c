/** Limits of a shared resource, in units of the caller's choice. */
export interface ShareLimits {
  /** The most that one trainer may hold, unless it holds a single larger amount. */
  readonly each: number;
  /** The most that all may hold together. */
  readonly all: number;
}

/**
 * Shares out a limited resource among trainers. Invariant: when a trainer takes more, it then holds no
 * more than is left free. So those who hold the most are refused first, and a trainer that holds nothing
 * can always take some: one greedy trainer leaves half free, two leave a third.
 */
export class Shares {
  readonly #limits: ShareLimits;
  readonly #held: Map<string, number> = new Map();
  #total = 0;

  constructor(limits: ShareLimits) {
    this.#limits = limits;
  }

  /** The amount that all hold together. */
  get total(): number {
    return this.#total;
  }

  /** Gives a trainer more, if the limits allow it; false changes nothing. */
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
