import type { BlockHeader } from "../../actors/fold/block.ts";
import type { Declared } from "../../actors/fold/declaration-table.ts";
import type { FoldState } from "../../actors/fold/fold-state.ts";
import type { Lifecycle } from "../../actors/lifecycle/machine.ts";
import type { Parameter } from "../../actors/lifecycle/parameter.ts";
import type { Declaration, Layout } from "../../protocol/index.ts";
import { elementCount } from "../../protocol/tensor.ts";

/** A parameter under the highest epoch that any shard knows. */
interface Found {
  readonly epoch: number;
  readonly declaration: Declaration;
  readonly layout: Layout;
  /** The trainer that it was granted to; "" where no shard was told. */
  readonly trainer: string;
  readonly blocksMax: number;
  /** Its blocks under this epoch. */
  present: number;
}

/**
 * The parameters of a job as the states of its shards show them. The job's own records say how it is now,
 * not how it was at a point; the folds do. A parameter is ready if all of its blocks are there under the
 * epoch that was granted last. Any other is one whose initialization has not come to its end: it keeps its
 * epoch, so that the next initialization has a higher one.
 */
export class FoundParameters {
  readonly #shards: number;
  readonly #found: Map<string, Found> = new Map();

  /** `shards`: how many the job has. */
  constructor(shards: number) {
    this.#shards = shards;
  }

  /** Adds what one shard knows; each shard once. */
  add(shard: number, { blocks, declared = [] }: Pick<FoldState, "blocks" | "declared">): void {
    for (const each of declared) this.#take(each.name, granted(each));
    for (const block of blocks) {
      const found = this.#take(block.parameter, this.#ofBlock(shard, block));
      if (found.epoch === block.epoch) found.present += 1;
    }
  }

  /** The parameters as records of a job whose shards have begun with these states, in no order. */
  parameters(): Parameter[] {
    return [...this.#found.values()].map(({ declaration, layout, blocksMax, ...found }) => {
      const { epoch, trainer, present } = found;
      const lifecycle: Lifecycle = {
        state: present === layout.blocks ? "ready" : "uninitialized",
        context: { epoch, trainer, session: 0, at: [], sealed: 0, revised: 0 },
      };
      return { declaration, layout, blocksMax, jobEpoch: 0, lifecycle, revision: 0 };
    });
  }

  /** Keeps the entry of the higher epoch; of equal ones the one that names a trainer. */
  #take(name: string, entry: Omit<Found, "present">): Found {
    const known = this.#found.get(name);
    if (known !== undefined && known.epoch > entry.epoch) return known;
    const isSame = known?.epoch === entry.epoch;
    if (known !== undefined && isSame && entry.trainer === "") return known;
    const blocksMax = Math.max(known?.blocksMax ?? 0, entry.blocksMax);
    const found = {
      ...entry,
      blocksMax,
      present: known !== undefined && isSame ? known.present : 0,
    };
    this.#found.set(name, found);
    return found;
  }

  /** A parameter as one of its blocks shows it: jobs of rules version 1 were not told what is declared. */
  #ofBlock(shard: number, block: BlockHeader): Omit<Found, "present"> {
    const { parameter: name, dtype, shape, config, epoch, index, start, count } = block;
    const elements = elementCount(shape);
    const blockElements = index === 0 ? count : start / index;
    const blocks = Math.ceil(elements / blockElements);
    const shards = this.#shards;
    const firstShard = (shard + shards - (index % shards)) % shards;
    const layout = { elements, blockElements, blocks, firstShard, shards };
    return {
      ...{ epoch, layout, trainer: "", blocksMax: blocks },
      declaration: { name, dtype, shape, config },
    };
  }
}

function granted({ name, dtype, shape, config, ...rest }: Declared): Omit<Found, "present"> {
  const { epoch, layout, trainer } = rest;
  return {
    ...{ epoch, layout, trainer, blocksMax: layout.blocks },
    declaration: { name, dtype, shape, config },
  };
}
