/** A seeded stream of numbers: the same seed gives the same run on every machine. */
export class Random {
  #state: number;

  /** Begins the stream; `seed` is any whole number. */
  constructor(seed: number) {
    // Neighbouring seeds must start far apart, and a xorshift state must not be 0.
    this.#state = Math.imul(seed + 1, 0x9e3779b1) >>> 0 || 1;
    for (let i = 0; i < 8; i++) this.uniform();
  }

  /** Returns a number from 0 (included) to 1 (excluded). */
  uniform(): number {
    let state = this.#state;
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    this.#state = state >>> 0;
    return this.#state / 2 ** 32;
  }

  /** Returns a number of the standard normal distribution. */
  normal(): number {
    const radius = Math.sqrt(-2 * Math.log(1 - this.uniform()));
    return radius * Math.cos(2 * Math.PI * this.uniform());
  }

  /** Returns a whole number from 0 to `limit` − 1. */
  below(limit: number): number {
    return Math.floor(this.uniform() * limit);
  }

  /** Puts the elements into a random order, in place. */
  shuffle(items: Uint16Array): void {
    for (let last = items.length - 1; last > 0; last--) {
      const other = this.below(last + 1);
      const item = items[last] as number;
      items[last] = items[other] as number;
      items[other] = item;
    }
  }
}
