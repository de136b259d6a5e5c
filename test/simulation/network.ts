import type { Random } from "./random.ts";

/** Messages under way: delivered in any order, late, or not at all. */
export class Network {
  readonly #random: Random;
  readonly #underWay: (() => void)[] = [];

  constructor(random: Random) {
    this.#random = random;
  }

  get count(): number {
    return this.#underWay.length;
  }

  send(deliver: () => void): void {
    this.#underWay.push(deliver);
  }

  /** Delivers any one of the messages, or loses it with this probability. */
  deliverOne(loss: number): void {
    const at = this.#random.below(this.#underWay.length);
    const last = this.#underWay.pop();
    if (last === undefined) return;
    const chosen = this.#underWay[at] ?? last;
    if (chosen !== last) this.#underWay[at] = last;
    if (!this.#random.chance(loss)) chosen();
  }

  /** Delivers all that is under way now. */
  deliverAll(): void {
    for (let left = this.#underWay.length; left > 0; left--) this.deliverOne(0);
  }
}
