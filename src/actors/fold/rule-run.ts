import { DTYPES } from "../../protocol/dtypes.ts";
import type { PartIndex } from "../../protocol/parts.ts";
import type { ShardMemory } from "../memory/shard-memory.ts";
import { isConstantRate, learningRateAt } from "../optimizer/learning-rate.ts";
import type { FloatDtype, UpdateRule } from "../optimizer/update-rule.ts";
import type { StoredBlock } from "./block.ts";
import type { ColumnTarget } from "./column-walk.ts";
import { nextCount, rowCounts } from "./row-counts.ts";
import type { ColumnVisit, RowVisit } from "./row-pieces.ts";

/** Learning rate of an update. */
export interface RateChoice {
  /** Overrides that of the configuration. */
  readonly learningRate?: number | undefined;
  /** Divisor of the rate; 1 or more. */
  readonly divisor: number;
}

/**
 * One update of a block by its optimizer's rule. Rows of a sparse parameter have update counts of their
 * own; otherwise the block's count is that of all elements.
 */
export class RuleRun {
  readonly #memory: ShardMemory;
  readonly #block: StoredBlock;
  readonly #rate: RateChoice;
  readonly #rule: UpdateRule;
  readonly #elementBytes: number;
  /** Address of the rows' counts, if what the rule does with a row depends on its count. */
  readonly #counts: number | undefined;
  /** Addresses of the rule's slots in the present visit. */
  readonly #slots: number[] = [];
  readonly #updateRate = { count: 0, learningRate: 0 };

  constructor(memory: ShardMemory, block: StoredBlock, dtype: FloatDtype, rate: RateChoice) {
    this.#memory = memory;
    this.#block = block;
    this.#rate = rate;
    this.#rule = block.rule(dtype);
    this.#elementBytes = DTYPES[dtype].bytes;
    const isPlain = !this.#rule.dependsOnCount && this.#isSteady();
    this.#counts = isPlain ? undefined : rowCounts(block);
  }

  /** These elements of the block, in the columns that the rule changes: the values and its slots. */
  target(part: PartIndex | undefined): ColumnTarget {
    const { rows, plan } = this.#block;
    const columns: number[] = [];
    for (let slot = 0; slot <= plan.rule; slot++) columns.push(this.#block.slotPointer(slot));
    const [elementBytes, counts] = [this.#elementBytes, this.#counts];
    const visitRows = this.#rowVisit(columns, counts);
    return { rows, part, elementBytes, columns, counts, visitRows };
  }

  /** The update of rows in one call, if the rule has it and rows have the same learning rate. */
  #rowVisit(columns: readonly number[], counts: number | undefined): RowVisit | undefined {
    const rule = this.#rule;
    if (counts === undefined || rule.runRows === undefined || !this.#isSteady()) return undefined;
    const { rowElements } = this.#block.rows;
    return (gradient, list, n) => {
      this.#begin(1);
      rule.runRows?.(columns, gradient, { list, n, rowElements, counts });
    };
  }

  /** Updates elements of the columns with the gradient at an address, which is overwritten. */
  readonly update: ColumnVisit = (columns, gradient, n, count) => {
    this.#begin(this.#counts === undefined ? this.#block.updates + 1 : nextCount(count));
    for (let slot = 1; slot < columns.length; slot++) {
      this.#slots[slot - 1] = columns[slot] as number;
    }
    this.#rule.run(columns[0] as number, gradient, this.#slots, n);
  };

  /** Whether the learning rate is that of any update. */
  #isSteady(): boolean {
    const { learningRate } = this.#block.config;
    if (this.#rate.learningRate !== undefined || learningRate === undefined) return true;
    return isConstantRate(learningRate);
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
}
