import { type Fields, PserverError, quoteName } from "../../protocol/index.ts";
import type { WantedPosition } from "./position-queue.ts";

/** The least time between two reports that the operator is told of; all are counted. */
const TELL_AGAIN_MS = 60_000;

/**
 * What askers report about the journal of a shard: that they have seen a later record than it holds.
 * Either it has lost records that nobody else can tell of, or the asker names what never was; so the
 * operator is told, and the shard goes on.
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

  /** Takes a report. */
  add({ code, message, details }: PserverError, { asker, generation, seq }: WantedPosition): void {
    this.#count += 1;
    this.#last = { asker, generation, seq, count: this.#count };
    if (this.#now() - this.#toldAtMs < TELL_AGAIN_MS) return;
    this.#toldAtMs = this.#now();
    this.#onReport(
      new PserverError(code, `${message}; asker: ${quoteName(asker)}`, { ...details, asker }),
    );
  }

  /** What `status` shows: the last report and how many there were; nothing if there was none. */
  entry(): Fields {
    return this.#last === undefined ? {} : { reportedLoss: this.#last };
  }
}
