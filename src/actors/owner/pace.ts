/** Work that comes sooner than this after the last waits for more. */
const QUIET_MS = 0.3;

/** How long it waits then. */
const GATHER_MS = 1;

/**
 * Brings together what the shards of one worker do after records, above all their answers: each write
 * to the broker costs as much as folding a small record. What comes alone is done in the same turn of
 * the event loop; only where records follow each other closely does it wait for about a millisecond.
 */
export class Pace {
  readonly #now: () => number;
  #waiting: (() => void)[] = [];
  #ranAtMs = Number.NEGATIVE_INFINITY;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Runs `work` soon, after what was given before. */
  soon(work: () => void): void {
    this.#waiting.push(work);
    if (this.#waiting.length > 1) return;
    const run = (): void => this.#run();
    if (this.#now() - this.#ranAtMs >= QUIET_MS) setImmediate(run);
    else setTimeout(run, GATHER_MS);
  }

  #run(): void {
    this.#ranAtMs = this.#now();
    for (const work of this.#waiting.splice(0)) work();
  }
}
