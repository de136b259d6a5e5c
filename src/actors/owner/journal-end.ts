import type { Position } from "../../protocol/index.ts";
import { type Clock, systemClock } from "../clock.ts";

/** How long a request waits before the broker is asked, and the least time between two questions. */
const LOOK_AFTER_MS = 200;

/** Where a journal ended when the broker was asked. */
export interface KnownEnd {
  readonly generation: number;
  readonly lastSeq: number;
  /** Number of the look; what was asked for before it began, it can judge. */
  readonly look: number;
}

/** What a {@link JournalEnd} works with. */
export interface JournalEndOptions {
  /** The last sequence of the journal of a generation; undefined if there is no such stream. */
  readonly lastSeq: (generation: number) => Promise<number | undefined>;
  /** The latest position of the present journal that somebody waits for. */
  readonly awaited: () => Position | undefined;
  /** The end is known anew. */
  readonly onKnown: () => void;
  readonly clock?: Clock | undefined;
}

/**
 * Asks the broker where the journal of a shard ends, while somebody waits for a position that the
 * fold has not reached: one question at a time for all who wait, and few, because mostly the fold is
 * only moments behind.
 */
export class JournalEnd {
  readonly #options: JournalEndOptions;
  readonly #clock: Clock;
  #looks = 0;
  #known: KnownEnd | undefined;
  #isDue = false;

  constructor(options: JournalEndOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  /** Looks begun so far: what arrives now is judged by a later one. */
  get looks(): number {
    return this.#looks;
  }

  /** Where the journal ended when it was last looked at. */
  get known(): KnownEnd | undefined {
    return this.#known;
  }

  /** Somebody has begun to wait: looks soon, and as long as somebody waits. */
  watch(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    this.#clock.after(LOOK_AFTER_MS, () => {
      void this.#look().finally(() => {
        this.#isDue = false;
        if (this.#options.awaited() !== undefined) this.watch();
      });
    });
  }

  async #look(): Promise<void> {
    const wanted = this.#options.awaited();
    if (wanted === undefined || this.#holds(wanted)) return;
    const { generation } = wanted;
    this.#looks += 1;
    const look = this.#looks;
    try {
      const lastSeq = await this.#options.lastSeq(generation);
      if (lastSeq === undefined) return;
      this.#known = { generation, lastSeq, look };
    } catch {
      // Nothing is known: who waits goes on waiting, and is told TIMEOUT when its time has passed.
      return;
    }
    this.#options.onKnown();
  }

  /** Whether the journal is known to get as far. */
  #holds({ generation, seq }: Position): boolean {
    return this.#known?.generation === generation && seq <= this.#known.lastSeq;
  }
}
