import { type Fields, PserverError, quoteName } from "../../protocol/index.ts";
import type { WantedPosition } from "./position-queue.ts";

/** Minimum time between two messages to the operator; all reports are counted. */
const TELL_AGAIN_MS = 60_000;

/**
 * Reports of askers that have seen a later record than the journal of a shard holds. Either the journal
 * has lost records unnoticed, or the asker names a record that never existed; so the operator is told,
 * and the shard goes on.
 */
export class LossReports {
  readonly #onReport: (error: PserverError) => void;
  readonly #now: () => number;
  #toldAtMs = Number.NEGATIVE_INFINITY;
  #count = 0;
  #last: Fields | undefined;

  constructor(onReport: (error: PserverError) => void, now = (): number => performance.now()) {
    this.#onReport = onReport;
    this.#now = now;
  }

  /** Adds a report. */
  add({ code, message, details }: PserverError, { asker, generation, seq }: WantedPosition): void {
    this.#count += 1;
    this.#last = { asker, generation, seq, count: this.#count };
    if (this.#now() - this.#toldAtMs < TELL_AGAIN_MS) return;
    this.#toldAtMs = this.#now();
    this.#onReport(
      new PserverError(code, `${message}; asker: ${quoteName(asker)}`, { ...details, asker }),
    );
  }

  /** Entry of `status`: the last report and their number; none without a report. */
  entry(): Fields {
    return this.#last === undefined ? {} : { reportedLoss: this.#last };
  }
}
