/** Work that follows the last run sooner than this waits for more. */
const QUIET_MS = 0.3;

/** Time that it waits. */
const GATHER_MS = 1;

/**
 * Gathers the work of a worker's shards after records, above all their answers: each write to the broker
 * costs as much as folding a small record. Single work runs in the same turn of the event loop; where
 * records follow each other closely, it is delayed by about a millisecond.
 */
export class Pace {
  readonly #now: () => number;
  #waiting: (() => void)[] = [];
  #ranAtMs = Number.NEGATIVE_INFINITY;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Runs `work` soon, in the order of the calls. */
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
