import { DTYPES } from "../../protocol/dtypes.ts";
import type { ShardMemory } from "../memory/shard-memory.ts";
import { learningRateAt } from "../optimizer/learning-rate.ts";
import type { FloatDtype, UpdateRule } from "../optimizer/update-rule.ts";
import type { StoredBlock } from "./block.ts";
import { nextCount, rowCounts } from "./row-counts.ts";

/** Learning rate of an update. */
export interface RateChoice {
  /** Overrides that of the configuration. */
  readonly learningRate?: number | undefined;
  /** Divisor of the rate; 1 or more. */
  readonly divisor: number;
}

/**
 * One update of a block by its optimizer's rule, range by range. Rows of a sparse parameter have
 * update counts of their own; otherwise the block's count is that of all elements.
 */
export class RuleRun {
  readonly #memory: ShardMemory;
  readonly #block: StoredBlock;
  readonly #rate: RateChoice;
  readonly #rule: UpdateRule;
  readonly #elementBytes: number;
  readonly #counts: Uint32Array | undefined;
  /** Addresses of the rule's slots, and of the current range in them. */
  readonly #slots: number[] = [];
  readonly #rangeSlots: number[] = [];
  readonly #updateRate = { count: 0, learningRate: 0 };

  constructor(memory: ShardMemory, block: StoredBlock, dtype: FloatDtype, rate: RateChoice) {
    this.#memory = memory;
    this.#block = block;
    this.#rate = rate;
    this.#rule = block.rule(dtype);
    this.#elementBytes = DTYPES[dtype].bytes;
    this.#counts = rowCounts(block);
    for (let slot = 1; slot <= block.plan.rule; slot++) this.#slots.push(block.slotPointer(slot));
  }

  /** Updates `n` elements from `start` on with the gradient at an address, which is overwritten. */
  run(start: number, n: number, gradient: number): void {
    const counts = this.#counts;
    if (counts === undefined) {
      this.#begin(this.#block.updates + 1);
      this.#runRange(start, n, gradient);
      return;
    }
    const { rowElements } = this.#block.rows;
    const end = start + n;
    for (let at = start; at < end; ) {
      let row = Math.floor(at / rowElements);
      const count = counts[row] ?? 0;
      // Consecutive rows with the same count are updated together.
      do row += 1;
      while (row * rowElements < end && counts[row] === count);
      const stop = Math.min(row * rowElements, end);
      this.#begin(nextCount(count));
      this.#runRange(at, stop - at, gradient + (at - start) * this.#elementBytes);
      at = stop;
    }
  }

  #begin(count: number): void {
    if (this.#updateRate.count === count) return;
    this.#updateRate.count = count;
    this.#updateRate.learningRate = this.#rateAt(count) / this.#rate.divisor;
    this.#rule.begin(this.#memory.kernels, this.#updateRate);
  }

  #rateAt(count: number): number {
    const { learningRate } = this.#block.config;
    if (this.#rate.learningRate !== undefined) return this.#rate.learningRate;
    // Only `none` has no schedule here; it ignores the rate.
    if (learningRate === undefined) return 1;
    return learningRateAt(this.#memory.kernels, learningRate, count);
  }

  #runRange(start: number, n: number, gradient: number): void {
    const offset = start * this.#elementBytes;
    for (let i = 0; i < this.#slots.length; i++) {
      this.#rangeSlots[i] = (this.#slots[i] as number) + offset;
    }
    this.#rule.run(this.#block.pointer + offset, gradient, this.#rangeSlots, n);
  }
}
