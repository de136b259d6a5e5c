import { escapeId } from "../../protocol/index.ts";

/** Refusals that one trainer is told in one period, and all together: whoever floods is not worth more. */
const EACH_MAX = 16;
const ALL_MAX = 1_024;

/** How long a period is. Shorter than what refusals say how long to wait. */
const PERIOD_MS = 100;

/**
 * Who has been told of a refusal in a period. What is not told is asked again after a second. Who has
 * been told enough is not heard any more in it: as much waits as may wait, and to read on would cost more
 * than what is refused.
 */
export class Refusals {
  readonly #told: Map<string, number> = new Map();
  readonly #unheard: Set<string> = new Set();
  readonly #now: () => number;
  #total = 0;
  #endsAtMs = 0;

  /** `now`: in milliseconds, of a clock that does not go back. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Whether one more may be told to a trainer, which then counts as told. */
  mayTell(trainer: string): boolean {
    if (this.#total === 0) this.#endsAtMs = this.#now() + PERIOD_MS;
    const told = this.#told.get(trainer) ?? 0;
    if (told >= EACH_MAX || this.#total >= ALL_MAX) {
      this.#unheard.add(escapeId(trainer));
      return false;
    }
    this.#told.set(trainer, told + 1);
    this.#total++;
    return true;
  }

  /** Whether the trainer with this token in its subjects is not heard at the moment. */
  readonly isUnheard = (token: string): boolean => this.#unheard.has(token);

  /** Begins a new period if the last one is over; to be called in each turn of the event loop. */
  review(): void {
    if (this.#total === 0 || this.#now() < this.#endsAtMs) return;
    this.#told.clear();
    this.#unheard.clear();
    this.#total = 0;
  }
}
