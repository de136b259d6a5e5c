import type { BlockHeader } from "../../actors/fold/block.ts";
import { blockDigest, stateDigest } from "../../actors/fold/digests.ts";
import type { Shard } from "../../actors/fold/shard.ts";
import { type Position, PserverError, quoteName } from "../../protocol/index.ts";
import type { ShardHistory } from "../source.ts";
import { foldRecords } from "./fold-records.ts";

/** A shard as it was at a position. */
export interface ReplayedShard {
  readonly shard: number;
  readonly position: Position;
  /**
   * Folds on to a later position; nothing if it is there already.
   * @throws JOURNAL_REPLACED for one of another generation; else as `foldRecords`.
   */
  advance(to: Position): Promise<void>;
  /** Its blocks without their bytes, by parameter and index. */
  readonly blocks: readonly BlockHeader[];
  /** SHA-256, in hex, of its whole state: equal exactly if the shards are. */
  digest(): Promise<string>;
  /** SHA-256, in hex, of its state without values and slots. */
  stateDigest(): Promise<string>;
  /** SHA-256, in hex, of a block's values and slots; undefined if it has no such block. */
  blockDigest(parameter: string, index: number): Promise<string | undefined>;
  /**
   * A copy of the bytes of a block: slot 0 is the values, those from 1 on are what updates keep.
   * @throws UNKNOWN_PARAMETER if it has no such block, BAD_VALUE if the block has no such slot.
   */
  slot(parameter: string, index: number, slot: number): Promise<Uint8Array<ArrayBuffer>>;
  /** Frees its memory; it must not be used afterwards. */
  free(): Promise<void>;
}

/** A replayed shard of this thread. */
export class LocalReplayedShard implements ReplayedShard {
  readonly shard: number;
  readonly #generation: number;
  readonly #state: Shard;
  readonly #history: ShardHistory;
  readonly #signal: AbortSignal;

  /** `state`: the shard, of this generation of its journal; `history`: where it is read from. */
  constructor(state: Shard, generation: number, history: ShardHistory, signal: AbortSignal) {
    this.shard = history.shard;
    this.#generation = generation;
    this.#state = state;
    this.#history = history;
    this.#signal = signal;
  }

  get position(): Position {
    return { generation: this.#generation, seq: this.#state.seq };
  }

  async advance(to: Position): Promise<void> {
    if (to.generation !== this.#generation) throw replaced(this.shard, this.position, to);
    await foldRecords(this.#state, this.#history, to, { signal: this.#signal });
  }

  get blocks(): readonly BlockHeader[] {
    return this.#state.saveState().blocks;
  }

  async digest(): Promise<string> {
    return this.#state.digest();
  }

  async stateDigest(): Promise<string> {
    return stateDigest(this.#state);
  }

  async blockDigest(parameter: string, index: number): Promise<string | undefined> {
    const block = this.#state.block(parameter, index);
    return block && blockDigest(block);
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

  async free(): Promise<void> {
    // Its memory goes with the last reference to it.
  }
}

/** The error for a position of another generation than a shard is of. */
export function replaced(shard: number, from: Position, to: Position): PserverError {
  return new PserverError(
    "JOURNAL_REPLACED",
    `shard ${shard}: its journal of generation ${from.generation} was replaced by generation ${to.generation}`,
    { shard, expected: from, received: to },
  );
}
