/**
 * Bounds what is done in one turn of the event loop, so that others have theirs: timers, above all those
 * that renew leases, and what other connections have brought.
 */
export class Turn {
  readonly #lengthMs: number;
  readonly #onNext: () => void;
  #endsAtMs: number | undefined;

  /** `onNext` is called in the turn after each one that has begun. */
  constructor(lengthMs: number, onNext: () => void) {
    this.#lengthMs = lengthMs;
    this.#onNext = onNext;
  }

  /** Something is done in this turn. */
  begin(): void {
    if (this.#endsAtMs !== undefined) return;
    this.#endsAtMs = performance.now() + this.#lengthMs;
    setImmediate(() => {
      this.#endsAtMs = undefined;
      this.#onNext();
    });
  }

  /** Whether what is left has to wait for the next turn. */
  get isOver(): boolean {
    return this.#endsAtMs !== undefined && performance.now() >= this.#endsAtMs;
  }
}
