import type { BlockHeader } from "../../actors/fold/block.ts";
import type { Shard } from "../../actors/fold/shard.ts";
import { type Position, PserverError, quoteName } from "../../protocol/index.ts";

/** A shard as it was at a position. */
export interface ReplayedShard {
  readonly shard: number;
  readonly position: Position;
  /** Its blocks without their bytes, by parameter and index. */
  readonly blocks: readonly BlockHeader[];
  /** SHA-256, in hex, of its whole state: equal exactly if the shards are. */
  digest(): Promise<string>;
  /**
   * A copy of the bytes of a block: slot 0 is the values, those from 1 on are what updates keep.
   * @throws UNKNOWN_PARAMETER if it has no such block, BAD_VALUE if the block has no such slot.
   */
  slot(parameter: string, index: number, slot: number): Promise<Uint8Array<ArrayBuffer>>;
}

/** A replayed shard of this thread. */
export class LocalReplayedShard implements ReplayedShard {
  readonly shard: number;
  readonly position: Position;
  readonly #state: Shard;

  constructor(shard: number, position: Position, state: Shard) {
    this.shard = shard;
    this.position = position;
    this.#state = state;
  }

  get blocks(): readonly BlockHeader[] {
    return this.#state.saveState().blocks;
  }

  async digest(): Promise<string> {
    return this.#state.digest();
  }

  async slot(parameter: string, index: number, slot: number): Promise<Uint8Array<ArrayBuffer>> {
    const block = this.#state.block(parameter, index);
    if (block !== undefined) return block.slotBytes(slot).slice();
    throw new PserverError(
      "UNKNOWN_PARAMETER",
      `shard ${this.shard} has no block ${index} of ${quoteName(parameter)}`,
      { parameter },
    );
  }
}
