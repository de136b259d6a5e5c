/** Fewest and most records a shard asks the broker for ahead of what it has folded. */
const RECORDS_MIN = 2;
const RECORDS_MAX = 512;

/** Weight of a smaller record in the estimate: large ones must not be forgotten at once. */
const DECAY = 0.95;

/**
 * How many records a reader may have under way so that they stay within a number of bytes. Sizes
 * are not known in advance, so the largest recent record stands for the next ones.
 */
export class Credit {
  readonly #bytes: number;
  #recordBytes: number;

  /** `bytes`: what may be under way. Until a record was seen, the largest one is assumed. */
  constructor(bytes: number, recordBytesMax: number) {
    this.#bytes = bytes;
    this.#recordBytes = recordBytesMax;
  }

  /** Takes note of a record's size. */
  saw(bytes: number): void {
    this.#recordBytes = Math.max(bytes, this.#recordBytes * DECAY);
  }

  /** Records that may be under way. */
  get records(): number {
    const fitting = Math.floor(this.#bytes / Math.max(this.#recordBytes, 1));
    return Math.min(Math.max(fitting, RECORDS_MIN), RECORDS_MAX);
  }
}
