/** Limits of the records that a shard requests ahead of the fold. */
const RECORDS_MIN = 2;
const RECORDS_MAX = 512;

/** Decay of the estimate with each smaller record: large ones are forgotten slowly. */
const DECAY = 0.95;

/**
 * Number of records that a reader may request so that they stay within a number of bytes. Sizes are
 * not known in advance, so the largest recent record is the estimate for the next ones.
 */
export class Credit {
  readonly #bytes: number;
  #recordBytes: number;

  /** `bytes`: limit for requested records. The first estimate is the largest possible record. */
  constructor(bytes: number, recordBytesMax: number) {
    this.#bytes = bytes;
    this.#recordBytes = recordBytesMax;
  }

  /** Updates the estimate with the size of a record. */
  saw(bytes: number): void {
    this.#recordBytes = Math.max(bytes, this.#recordBytes * DECAY);
  }

  /** Records that may be requested and not yet folded. */
  get records(): number {
    const fitting = Math.floor(this.#bytes / Math.max(this.#recordBytes, 1));
    return Math.min(Math.max(fitting, RECORDS_MIN), RECORDS_MAX);
  }
}
