import { PserverError } from "../../protocol/index.ts";
import type { Block } from "../fold/block.ts";
import type { FoldState } from "../fold/fold-state.ts";
import type { JournalChecksum } from "../fold/journal-checksum.ts";
import type { Shard } from "../fold/shard.ts";
import type { SnapshotBudget } from "./snapshot-budget.ts";
import { type BlockPieces, blockKey } from "./state.ts";

/** What identifies the bytes of a block. */
type BlockVersion = Pick<Block, "epoch" | "version" | "accumulated">;

/** A block of a cut whose pieces are not stored yet. */
export interface PendingBlock {
  readonly block: Block;
  /** Its version at the cut. */
  readonly version: BlockVersion;
  /** Its slots at the cut, copied when it was about to change; undefined before. */
  copies: Uint8Array[] | undefined;
}

/**
 * A cut of a shard between two records, while the shard goes on. Blocks that have changed since the
 * last snapshot have to be stored; one that is about to change before is copied first. Does no I/O.
 */
export class SnapshotCut {
  /** The fold at the cut, without values. */
  readonly fold: FoldState;
  /** Last record of the cut, with its checksum. */
  readonly seq: number;
  readonly recordCrc: number;
  /** Checksum of the journal up to there. */
  readonly checksum: JournalChecksum;
  readonly #budget: SnapshotBudget;
  readonly #onReleased: () => void;
  /** Pieces of the blocks at the cut; undefined until they are stored. */
  readonly #pieces: Map<string, BlockPieces | undefined> = new Map();
  readonly #pending: Map<string, PendingBlock> = new Map();
  /** Blocks removed since the cut: their pieces say nothing about a block created anew. */
  readonly #removed: Set<string> = new Set();

  /**
   * `stored`: the pieces that the newest manifest names, by block; `budget`: of the copies;
   * `onReleased`: called when copies were released.
   */
  constructor(
    shard: Pick<Shard, "saveState" | "seq" | "lastCrc" | "noted" | "blocks">,
    stored: ReadonlyMap<string, BlockPieces>,
    budget: SnapshotBudget,
    onReleased: () => void = () => undefined,
  ) {
    this.fold = shard.saveState();
    this.seq = shard.seq;
    this.recordCrc = shard.lastCrc;
    this.checksum = shard.noted.checksum;
    this.#budget = budget;
    this.#onReleased = onReleased;
    for (const block of shard.blocks()) {
      const { epoch, version, accumulated } = block;
      const key = keyOf(block);
      const known = stored.get(key);
      const isStored = known !== undefined && isOfVersion(known, block);
      this.#pieces.set(key, isStored ? known : undefined);
      if (isStored) continue;
      const pending = { block, version: { epoch, version, accumulated }, copies: undefined };
      this.#pending.set(key, pending);
    }
  }

  /** Blocks that are neither stored nor being stored. */
  get pending(): readonly PendingBlock[] {
    return [...this.#pending.values()];
  }

  /** Whether a change of the shard may still need a copy. */
  get mayCopy(): boolean {
    return this.#pending.size > 0;
  }

  /** Copies a pending block; must be called before its bytes change or are freed. */
  beforeChange(block: Block): void {
    const pending = this.#pending.get(keyOf(block));
    if (pending?.block !== block || pending.copies !== undefined) return;
    pending.copies = slotBytes(block).map((bytes) => {
      const copy = this.#budget.pool.take(bytes.length);
      copy.set(bytes);
      return copy;
    });
    this.#budget.copied(block.heldBytes);
  }

  /** Notes that a block is gone; a new one may have its epoch and version again. */
  blockRemoved(block: Block): void {
    this.#removed.add(keyOf(block));
  }

  /**
   * Passes the slots of a pending block, as they were at the cut, to `store`, which must copy them
   * at once; from then on the block may change.
   */
  release<Result>(pending: PendingBlock, store: (slots: readonly Uint8Array[]) => Result): Result {
    const { block, copies } = pending;
    const result = store(copies ?? slotBytes(block));
    this.#pending.delete(keyOf(block));
    this.#freeCopies(pending);
    return result;
  }

  /** Adds the stored pieces of a block. */
  stored(pieces: BlockPieces): void {
    this.#pieces.set(keyOf(pieces), pieces);
  }

  /** The pieces of all blocks of the cut. @throws INTERNAL if a block has not been stored. */
  get pieces(): BlockPieces[] {
    return [...this.#pieces].map(([key, pieces]) => {
      if (pieces !== undefined) return pieces;
      throw new PserverError("INTERNAL", `snapshot: block ${key} was not stored`);
    });
  }

  /** Pieces, by block, that the next cut can use once this one is committed. */
  get reusable(): Map<string, BlockPieces> {
    const entries = this.pieces.map((pieces) => [keyOf(pieces), pieces] as const);
    return new Map(entries.filter(([key]) => !this.#removed.has(key)));
  }

  /** Ends the cut: releases all copies. */
  end(): void {
    for (const pending of this.#pending.values()) this.#freeCopies(pending);
    this.#pending.clear();
  }

  #freeCopies({ block, copies }: PendingBlock): void {
    if (copies === undefined) return;
    for (const copy of copies) this.#budget.pool.giveBack(copy);
    this.#budget.copied(-block.heldBytes);
    this.#onReleased();
  }
}

function keyOf({ parameter, index }: Pick<Block, "parameter" | "index">): string {
  return blockKey(parameter, index);
}

function isOfVersion(pieces: BlockPieces, { epoch, version, accumulated }: BlockVersion): boolean {
  return pieces.epoch === epoch && pieces.version === version && pieces.accumulated === accumulated;
}

function slotBytes(block: Block): Uint8Array[] {
  return Array.from({ length: 1 + block.slots }, (_, slot) => block.slotBytes(slot));
}
