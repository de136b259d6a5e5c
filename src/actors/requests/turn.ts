/**
 * Limits the work done in one turn of the event loop, so that timers, above all those that renew leases,
 * and messages of other connections have their turns.
 */
export class Turn {
  readonly #lengthMs: number;
  readonly #onNext: () => void;
  #endsAtMs: number | undefined;

  /** `onNext` is called in the turn after each one in which {@link begin} was called. */
  constructor(lengthMs: number, onNext: () => void) {
    this.#lengthMs = lengthMs;
    this.#onNext = onNext;
  }

  /** Notes that work is done in this turn. */
  begin(): void {
    if (this.#endsAtMs !== undefined) return;
    this.#endsAtMs = performance.now() + this.#lengthMs;
    setImmediate(() => {
      this.#endsAtMs = undefined;
      this.#onNext();
    });
  }

  /** Whether further work has to wait for the next turn. */
  get isOver(): boolean {
    return this.#endsAtMs !== undefined && performance.now() >= this.#endsAtMs;
  }
}
