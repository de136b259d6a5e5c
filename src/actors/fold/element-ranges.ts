import type { BlockRows, PartIndex } from "../../protocol/parts.ts";

const FIRST = Uint32Array.of(0);
const ONE = Uint32Array.of(1);

/**
 * The elements of a part of a block, in the order of its tensor bytes, as contiguous ranges:
 * {@link next} moves to the next range, given by {@link start} and {@link count}.
 */
export class ElementRanges {
  /** First element of the current range, counted within the block. */
  start = 0;
  /** Elements of the current range. */
  count = 0;
  readonly #origins: Uint32Array;
  readonly #originElements: number;
  readonly #starts: Uint32Array;
  readonly #lengths: Uint32Array;
  readonly #runElements: number;
  #origin = 0;
  #run = -1;
  #at = 0;
  #left = 0;

  private constructor(
    origins: { readonly numbers: Uint32Array; readonly elements: number },
    runs: {
      readonly starts: Uint32Array;
      readonly lengths: Uint32Array;
      readonly elements: number;
    },
  ) {
    this.#origins = origins.numbers;
    this.#originElements = origins.elements;
    this.#starts = runs.starts;
    this.#lengths = runs.lengths;
    this.#runElements = runs.elements;
  }

  /** All elements of a block, or those of a part of it. */
  static of({ rows, rowElements }: BlockRows, part: PartIndex | undefined): ElementRanges {
    const start = { numbers: FIRST, elements: 0 };
    if (part === undefined) {
      return new ElementRanges(start, {
        starts: FIRST,
        lengths: ONE,
        elements: rows * rowElements,
      });
    }
    if (part.inner === undefined) {
      return new ElementRanges(start, { ...runsOf(part.rows), elements: rowElements });
    }
    const origins = { numbers: part.rows, elements: rowElements };
    return new ElementRanges(origins, { ...runsOf(part.inner), elements: 1 });
  }

  /**
   * Moves to the next range of at most `limit` elements; false at the end. A longer range is split.
   */
  next(limit: number): boolean {
    if (this.#left === 0 && !this.#nextRun()) return false;
    this.start = this.#at;
    this.count = Math.min(this.#left, limit);
    this.#at += this.count;
    this.#left -= this.count;
    return true;
  }

  #nextRun(): boolean {
    this.#run += 1;
    if (this.#run === this.#starts.length) {
      this.#run = 0;
      this.#origin += 1;
    }
    if (this.#origin >= this.#origins.length) return false;
    const origin = (this.#origins[this.#origin] as number) * this.#originElements;
    this.#at = origin + (this.#starts[this.#run] as number) * this.#runElements;
    this.#left = (this.#lengths[this.#run] as number) * this.#runElements;
    return true;
  }
}

/** Runs of consecutive numbers in an ascending, non-empty list. */
function runsOf(numbers: Uint32Array): { starts: Uint32Array; lengths: Uint32Array } {
  const starts = new Uint32Array(numbers.length);
  const lengths = new Uint32Array(numbers.length);
  let runs = 0;
  let expected = -1;
  for (const number of numbers) {
    if (number !== expected) {
      starts[runs] = number;
      runs += 1;
    }
    lengths[runs - 1] = (lengths[runs - 1] as number) + 1;
    expected = number + 1;
  }
  return { starts: starts.subarray(0, runs), lengths: lengths.subarray(0, runs) };
}
