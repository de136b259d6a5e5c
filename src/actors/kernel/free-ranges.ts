import { PserverError } from "../../protocol/errors.ts";

/**
 * The free ranges of an address space, in order of address, neighbours always merged.
 *
 * Numbers only: it neither owns nor touches memory. Allocation is best fit, the lower address on a tie:
 * blocks come in few sizes, so a free range of exactly one block is best kept for a block.
 */
export class FreeRanges {
  readonly #starts: number[] = [];
  readonly #ends: number[] = [];

  /** Number of free ranges; at most 1 if the free bytes are contiguous. */
  get count(): number {
    return this.#starts.length;
  }

  /** Takes `bytes` from the smallest sufficient range; returns their start, or undefined without one. */
  take(bytes: number): number | undefined {
    let best = -1;
    let bestBytes = Number.POSITIVE_INFINITY;
    for (let at = 0; at < this.#starts.length; at++) {
      const has = this.#end(at) - this.#start(at);
      if (has < bytes || has >= bestBytes) continue;
      best = at;
      bestBytes = has;
      if (has === bytes) break;
    }
    if (best < 0) return undefined;
    const start = this.#start(best);
    if (bestBytes === bytes) this.#remove(best);
    else this.#starts[best] = start + bytes;
    return start;
  }

  /**
   * Adds the range of `bytes` from `start` on, merged with adjacent ranges.
   * @throws INTERNAL if a byte of it is free already; nothing has changed then.
   */
  give(start: number, bytes: number): void {
    const end = start + bytes;
    const next = this.#firstFrom(start);
    const previousEnd = next > 0 ? this.#end(next - 1) : 0;
    const nextStart = next < this.#starts.length ? this.#start(next) : Number.POSITIVE_INFINITY;
    if (previousEnd > start || nextStart < end) {
      throw new PserverError(
        "INTERNAL",
        `bytes ${start} to ${end} are free already, in part or all`,
        {
          start,
          end,
        },
      );
    }
    const joinsPrevious = next > 0 && previousEnd === start;
    const joinsNext = nextStart === end;
    if (joinsPrevious && joinsNext) {
      this.#ends[next - 1] = this.#end(next);
      this.#remove(next);
    } else if (joinsPrevious) {
      this.#ends[next - 1] = end;
    } else if (joinsNext) {
      this.#starts[next] = start;
    } else {
      this.#starts.splice(next, 0, start);
      this.#ends.splice(next, 0, end);
    }
  }

  /** Bytes of the free range that ends at `end`: growing the space there extends this range. */
  bytesBefore(end: number): number {
    const last = this.#starts.length - 1;
    return last >= 0 && this.#end(last) === end ? end - this.#start(last) : 0;
  }

  /** Index of the first range that starts at or above `address`. */
  #firstFrom(address: number): number {
    let low = 0;
    let high = this.#starts.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#start(middle) < address) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #start(at: number): number {
    return this.#starts[at] ?? Number.NaN;
  }

  #end(at: number): number {
    return this.#ends[at] ?? Number.NaN;
  }

  #remove(at: number): void {
    this.#starts.splice(at, 1);
    this.#ends.splice(at, 1);
  }
}
