/** A small deterministic random source (sfc32): one seed, one schedule, on every machine. */
export class Random {
  #a: number;
  #b = 0x9e3779b9;
  #c = 0x243f6a88;
  #counter = 1;

  constructor(seed: number) {
    this.#a = seed >>> 0;
    for (let i = 0; i < 12; i++) this.#next();
  }

  /** A whole number from 0 to `bound` − 1. */
  below(bound: number): number {
    return Math.floor((this.#next() / 2 ** 32) * bound);
  }

  /** True with this probability. */
  chance(probability: number): boolean {
    return this.#next() < probability * 2 ** 32;
  }

  /** One of a list; undefined of an empty one. */
  pick<Item>(items: readonly Item[]): Item | undefined {
    return items[this.below(items.length)];
  }

  /** One of a list in which an item of twice the weight, a whole number, is chosen twice as often. */
  pickWeighted<Item>(items: readonly (readonly [weight: number, item: Item])[]): Item | undefined {
    let ticket = this.below(items.reduce((sum, [weight]) => sum + weight, 0));
    const chosen = items.find(([weight]) => {
      ticket -= weight;
      return ticket < 0;
    });
    return chosen?.[1];
  }

  #next(): number {
    const sum = (this.#a + this.#b + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + sum) | 0;
    return sum >>> 0;
  }
}
