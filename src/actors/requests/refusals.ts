import { escapeId } from "../../protocol/index.ts";

/** Refusals sent to one trainer in one period, and to all together. */
const EACH_MAX = 16;
const ALL_MAX = 1_024;

/** Length of a period; shorter than the waiting time that refusals name. */
const PERIOD_MS = 100;

/**
 * Limits how many refusals are sent, period by period. A request without a reply is sent again after a
 * second. The requests of a trainer that has had its share of refusals are dropped unread for the rest of
 * the period: its queue is full, and reading would cost more than refusing.
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

  /** Takes one refusal from a trainer's share, to be sent; false if none is left. */
  take(trainer: string): boolean {
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

  /** Whether requests of the trainer with this token in its subjects are to be dropped now. */
  readonly isUnheard = (token: string): boolean => this.#unheard.has(token);

  /** Begins a new period if the last one is over. Call it in each turn of the event loop. */
  review(): void {
    if (this.#total === 0 || this.#now() < this.#endsAtMs) return;
    this.#told.clear();
    this.#unheard.clear();
    this.#total = 0;
  }
}
