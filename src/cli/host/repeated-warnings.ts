/** How long a warning is not printed again. */
const REPEAT_AFTER_MS = 60_000;

/** Texts that are remembered; the one that was printed first is forgotten for another one. */
const TEXTS_MAX = 256;

/**
 * Lets each text pass at most once a minute: a host that cannot reach its broker fails in the same way four times
 * a second.
 */
export class RepeatedWarnings {
  readonly #printed: Map<string, { atMs: number; suppressed: number }> = new Map();

  /**
   * What to print of a warning: its text, with how often it came since it was last printed; undefined
   * if it is to be kept back. `nowMs`: of a clock that does not go back.
   */
  toPrint(text: string, nowMs: number): string | undefined {
    const known = this.#printed.get(text);
    if (known !== undefined && nowMs - known.atMs < REPEAT_AFTER_MS) {
      known.suppressed += 1;
      return undefined;
    }
    this.#printed.delete(text);
    const [oldest] = this.#printed.keys();
    if (oldest !== undefined && this.#printed.size === TEXTS_MAX) this.#printed.delete(oldest);
    this.#printed.set(text, { atMs: nowMs, suppressed: 0 });
    const suppressed = known?.suppressed ?? 0;
    if (suppressed === 0) return text;
    return `${text} (${suppressed === 1 ? "once" : `${suppressed} times`} more in the meantime)`;
  }
}
