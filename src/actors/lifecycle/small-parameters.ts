import {
  BATCH_BYTES,
  BATCH_ENTRY_BYTES_MAX,
  type Declaration,
  DTYPES,
  type Layout,
  RULES_WITH_BATCHES,
} from "../../protocol/index.ts";
import type { JobSettings } from "./owners.ts";

/** Parameters that share a shard, at most: the smallest ones of a large model still spread over all shards. */
const TOGETHER_MAX = 1_024;

/** The initialization that declares parameters. */
export interface Initialization {
  readonly session: number;
  readonly epoch: number;
}

/** The shard that the next small parameters of an initialization are placed on. */
interface Filling extends Initialization {
  readonly shard: number;
  readonly bytesLeft: number;
  readonly parametersLeft: number;
}

/**
 * Places the small parameters that one initialization declares one after the other on one shard until they fill a
 * batch, then on the next shard: so a training step costs a record for each MiB and not for each parameter. The
 * first shard is that of the first name's hash. What was placed last is known to this host only: parameters declared
 * through several hosts fill as many shards at a time.
 */
export class SmallParameters {
  readonly #job: Pick<JobSettings, "shards" | "rules">;
  #filling: Filling | undefined;

  constructor(job: Pick<JobSettings, "shards" | "rules">) {
    this.#job = job;
  }

  /** The layout of a new parameter, on the shard where it belongs. `layout` lies on the shard of the name's hash. */
  place(layout: Layout, declaration: Declaration, { session, epoch }: Initialization): Layout {
    const bytes = layout.elements * DTYPES[declaration.dtype].bytes;
    const isSmall = layout.blocks === 1 && bytes < BATCH_ENTRY_BYTES_MAX;
    if (!isSmall || this.#job.rules < RULES_WITH_BATCHES) return layout;
    const { shard, bytesLeft, parametersLeft } = this.#fillingFor(bytes, layout.firstShard, {
      session,
      epoch,
    });
    this.#filling = {
      ...{ session, epoch, shard },
      bytesLeft: bytesLeft - bytes,
      parametersLeft: parametersLeft - 1,
    };
    return { ...layout, firstShard: shard };
  }

  #fillingFor(bytes: number, hashed: number, { session, epoch }: Initialization): Filling {
    const last = this.#filling;
    const isSame = last?.session === session && last.epoch === epoch;
    if (isSame && last.bytesLeft >= bytes && last.parametersLeft > 0) return last;
    const shard = isSame ? (last.shard + 1) % this.#job.shards : hashed;
    return { session, epoch, shard, bytesLeft: BATCH_BYTES, parametersLeft: TOGETHER_MAX };
  }
}
