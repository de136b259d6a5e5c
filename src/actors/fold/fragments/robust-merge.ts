import {
  type DilocoSettings,
  isRobust,
  type Merge,
  type RobustMerge,
} from "../../../protocol/config/index.ts";
import { DTYPES, GROUP_ELEMENTS } from "../../../protocol/dtypes.ts";
import type { Kernels } from "../../kernel/kernels.ts";
import type { ShardMemory } from "../../kernel/shard-memory.ts";
import type { BlockActor } from "../block-actor.ts";
import type { BlockTable } from "../block-table.ts";
import type { FloatDtype } from "../update-rule.ts";
import { accumulatorOf, eachDisplacement, floatDtypeOf, MIX, originOf } from "./displacement.ts";
import type { KeptContribution } from "./kept-contribution.ts";

// Merges that a minority of contributions cannot move far. They look at the same elements of all contributions at once:
// these are decoded into rows of memory, a range of elements after the other, and the rows are ordered element by element
// with a sorting network, whose operations are minimum and maximum of two rows. Contributions are taken in the order of
// their trainers' ids, so the order in which they came makes no difference.

const ORDER = { float32: "orderF32", float64: "orderF64" } as const satisfies Record<
  FloatDtype,
  keyof Kernels
>;
const DISTANCE = { float32: "distanceF32", float64: "distanceF64" } as const satisfies Record<
  FloatDtype,
  keyof Kernels
>;

/** Bytes that all rows together should take, so that they stay in the processor's cache. */
const ROWS_BYTES = 256 * 1024;

/** State that a merge needs. */
interface MergeContext {
  readonly memory: ShardMemory;
  readonly blocks: BlockTable;
}

/** Returns how the contributions to a block are merged. */
export function mergeOf(
  { config }: Pick<BlockActor, "config">,
  { merge }: Pick<DilocoSettings, "merge">,
): Merge {
  return config.merge ?? merge;
}

/**
 * Replaces the mean of a round in the blocks that have a robust merge by what that merge comes to. `parameters`: the blocks
 * of all parameters of the fragment; `round`: all contributions of the round, at least two; `version`: that of the
 * fragment before the close.
 */
export function mergeRobustly(
  context: MergeContext,
  parameters: readonly (readonly BlockActor[])[],
  round: readonly KeptContribution[],
  settings: DilocoSettings,
  version: number,
): void {
  const all = parameters.flat();
  const robust = all.filter((block) => isRobust(mergeOf(block, settings)));
  const inOrder = [...round].sort(byTrainer);
  const rows = new Rows(context.memory, inOrder, version);
  try {
    const usesKrum = robust.some((block) => mergeOf(block, settings) === "krum");
    const nearest = usesKrum ? krum(distances(rows, all), inOrder.length, settings) : [];
    const network = sortingNetwork(inOrder.length);
    for (const block of robust) {
      const merge = mergeOf(block, settings) as RobustMerge;
      const chosen = merge === "krum" ? nearest : ranks(merge, inOrder.length, block, settings);
      context.blocks.beforeChange(block);
      const kernels = context.memory.kernels;
      const dtype = floatDtypeOf(block);
      const { bytes } = DTYPES[dtype];
      rows.each(block, (start, n) => {
        if (merge !== "krum") {
          const order = kernels[ORDER[dtype]];
          for (const [least, most] of network) order(rows.at(least), rows.at(most), n);
        }
        const mean = rows.meanOf(chosen, dtype, n);
        const target = accumulatorOf(block) + start * bytes;
        context.memory.bytes(target, n * bytes).set(context.memory.bytes(mean, n * bytes));
      });
    }
  } finally {
    rows.free();
  }
}

/** Returns which of `count` elements in order a merge takes the mean of. */
function ranks(
  merge: "median" | "trimmed-mean",
  count: number,
  { config }: BlockActor,
  { trim }: DilocoSettings,
): number[] {
  const cut =
    merge === "median" ? Math.floor((count - 1) / 2) : Math.floor((config.trim ?? trim) * count);
  return Array.from({ length: count - 2 * cut }, (_, i) => cut + i);
}

/** The same elements of all contributions of a round, each in a row of its own. */
class Rows {
  readonly #memory: ShardMemory;
  readonly #round: readonly KeptContribution[];
  readonly #version: number;
  readonly #rowBytes: number;
  readonly #pointer: number;

  constructor(memory: ShardMemory, round: readonly KeptContribution[], version: number) {
    this.#memory = memory;
    this.#round = round;
    this.#version = version;
    // Whole groups of float64, which are the largest elements.
    const unit = GROUP_ELEMENTS * DTYPES.float64.bytes;
    this.#rowBytes = unit * Math.max(1, Math.floor(ROWS_BYTES / (unit * round.length)));
    this.#pointer = memory.allocate(this.#rowBytes * round.length);
  }

  get count(): number {
    return this.#round.length;
  }

  get kernels(): Kernels {
    return this.#memory.kernels;
  }

  /** Address of a row. */
  at(row: number): number {
    return this.#pointer + row * this.#rowBytes;
  }

  free(): void {
    this.#memory.free(this.#pointer, this.#rowBytes * this.#round.length);
  }

  /** Calls `visit` with range after range of a block's elements, whose displacements are in the rows. */
  each(block: BlockActor, visit: (start: number, n: number) => void): void {
    const dtype = floatDtypeOf(block);
    const { bytes } = DTYPES[dtype];
    const length = this.#rowBytes / bytes;
    for (let start = 0; start < block.count; start += length) {
      const n = Math.min(length, block.count - start);
      for (const [row, contribution] of this.#round.entries()) {
        this.#fill(this.at(row), block, contribution, start, n);
      }
      visit(start, n);
    }
  }

  #fill(row: number, block: BlockActor, own: KeptContribution, start: number, n: number): void {
    const memory = this.#memory;
    const { bytes } = DTYPES[floatDtypeOf(block)];
    const origin = originOf(block, own, this.#version);
    const from = origin === undefined ? undefined : origin + start * DTYPES[block.dtype].bytes;
    const elements = own.elementsOf(block, start, n);
    const change = { origin: from, clip: own.clipOf(block) };
    eachDisplacement(memory, block, elements, change, (at, count) => {
      const target = memory.bytes(row + at * bytes, count * bytes);
      target.set(memory.bytes(memory.scratch, count * bytes));
    });
  }

  /** Makes the mean of some rows in the first of them; returns its address. */
  meanOf(rows: readonly number[], dtype: FloatDtype, n: number): number {
    const mix = this.#memory.kernels[MIX[dtype]];
    const [first = 0, ...others] = rows;
    for (const [i, row] of others.entries()) {
      mix(this.at(first), this.at(row), n, (i + 1) / (i + 2), 1 / (i + 2));
    }
    return this.at(first);
  }
}

/** Returns how far each two contributions are apart, squared, over all blocks: row after row. */
function distances(rows: Rows, blocks: readonly BlockActor[]): Float64Array {
  const { count } = rows;
  const sums = new Float64Array(count * count);
  for (const block of blocks) {
    const distance = rows.kernels[DISTANCE[floatDtypeOf(block)]];
    rows.each(block, (_start, n) => {
      for (let a = 0; a < count; a++) {
        for (let b = a + 1; b < count; b++) {
          const sum = (sums[a * count + b] as number) + distance(rows.at(a), rows.at(b), n);
          sums[a * count + b] = sum;
          sums[b * count + a] = sum;
        }
      }
    });
  }
  // Two infinities have no distance: they are as far away as can be.
  return sums.map((sum) => (Number.isNaN(sum) ? Number.POSITIVE_INFINITY : sum));
}

/**
 * Returns the contributions that Krum takes, ascending: those with the least sums of distances to their nearest *n* − *f* −
 * 2 others, where *f* may be arbitrary; of equal sums the first.
 */
function krum(
  distance: Float64Array,
  count: number,
  { krumFaults, krumKeep }: Pick<DilocoSettings, "krumFaults" | "krumKeep">,
): number[] {
  const faults = krumFaults ?? Math.max(0, Math.floor((count - 3) / 2));
  const neighbours = Math.max(1, count - faults - 2);
  const scores = Array.from({ length: count }, (_, own) => {
    const others = distance
      .slice(own * count, (own + 1) * count)
      .filter((_distance, other) => other !== own)
      .sort();
    return others.slice(0, neighbours).reduce((sum, each) => sum + each, 0);
  });
  const byScore = [...scores.keys()].sort((a, b) => {
    const [first, second] = [scores[a] as number, scores[b] as number];
    return first === second ? a - b : first - second;
  });
  return byScore.slice(0, Math.min(krumKeep, neighbours)).sort((a, b) => a - b);
}

/** Pairs of rows, each to be put in order, that leave `count` rows sorted: Batcher's merge exchange (Knuth 5.2.2 M). */
function sortingNetwork(count: number): [least: number, most: number][] {
  const pairs: [number, number][] = [];
  const half = 2 ** Math.max(0, Math.ceil(Math.log2(count)) - 1);
  for (let p = half; p >= 1; p /= 2) {
    let [q, r, d] = [half, 0, p];
    while (true) {
      for (let i = 0; i < count - d; i++) if ((i & p) === r) pairs.push([i, i + d]);
      if (q === p) break;
      d = q - p;
      q /= 2;
      r = p;
    }
  }
  return pairs;
}

function byTrainer(a: KeptContribution, b: KeptContribution): number {
  if (a.trainer === b.trainer) return a.base - b.base;
  return a.trainer < b.trainer ? -1 : 1;
}
