import {
  draftMessage,
  type JobSubjects,
  type Position,
  PserverError,
  packValue,
  sealMessage,
} from "../../../protocol/index.ts";
import type { Block } from "../../fold/block-actor.ts";
import type { FoldState } from "../../fold/fold-state.ts";
import type { JournalChecksum } from "../../fold/journal-checksum.ts";
import type { Shard } from "../../fold/shard.ts";
import type { Manifest, PieceRef, StoredManifest } from "../manifest.ts";
import {
  type BlockPieces,
  blockKey,
  type SnapshotState,
  type SnapshotStore,
} from "../snapshot-store.ts";
import type { SnapshotBudget } from "./snapshot-budget.ts";
import type { PutOff } from "./snapshot-pace.ts";

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
 * A cut of a shard between two records, while the shard goes on. Blocks that have changed since the last snapshot
 * must be stored; a block that changes before it is stored is copied first. Does no I/O.
 */
export class SnapshotCut {
  /** The fold at the cut, without values. */
  readonly fold: FoldState;
  /** The last record of the cut, with its checksum. */
  readonly seq: number;
  readonly recordCrc: number;
  /** Checksum of the journal up to that record. */
  readonly checksum: JournalChecksum;
  readonly #budget: SnapshotBudget;
  readonly #onReleased: () => void;
  /** Pieces of the blocks at the cut; undefined until they are stored. */
  readonly #pieces: Map<string, BlockPieces | undefined> = new Map();
  readonly #pending: Map<string, PendingBlock> = new Map();
  /** Blocks removed since the cut. Their pieces must not be reused for a new block of the same name. */
  readonly #removed: Set<string> = new Set();

  /**
   * `stored` has the pieces that the newest manifest names, by block. `budget` limits the copies. `onReleased` is
   * called when copies were released.
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
   * Passes the slots of a pending block, as they were at the cut, to `store`, which must copy them at once. After
   * that the block may change.
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

/** How many blocks are stored at a time. */
const BLOCKS_IN_FLIGHT = 4;

/** The part of a manifest that does not come from the fold: who makes the cut, and of which journal. */
export type ManifestHeader = Pick<
  Manifest,
  "term" | "host" | "owner" | "generation" | "created" | "fallbacks" | "past" | "rewind"
>;

/** A cut or manifest being stored. Requests left over from a failed one must not affect what is stored later. */
interface Storing {
  /** Why nothing more may be stored for it; undefined while it goes on. */
  ended: PserverError | undefined;
  /** Ends the storing at once, whatever it waits for. */
  readonly abort: (reason: PserverError) => void;
  /** Sequences of the messages that were stored, unless a manifest may name them by now. */
  readonly unnamed: Set<number>;
}

/** A cut being stored. */
interface StoredCut {
  readonly cut: SnapshotCut;
  readonly storing: Storing;
}

/** Dependencies of {@link Snapshotter}. */
export interface SnapshotterDeps {
  readonly store: Pick<SnapshotStore, "publish" | "commit" | "requireRoom" | "remove">;
  readonly subjects: JobSubjects;
  readonly shard: number;
  /** Limit of the state's bytes in one message. */
  readonly partBytesMax: number;
  readonly budget: SnapshotBudget;
  /** Called and awaited before a cut at this position is committed. */
  readonly beforeCommit?: (position: Position) => Promise<void>;
  /** Called when copies were released, so that the fold may go on. */
  readonly onProgress: () => void;
  /** Pieces that the newest manifest names, by block. */
  readonly stored: ReadonlyMap<string, BlockPieces>;
}

/** Stores cuts of a shard, one at a time, while the shard goes on. */
export class Snapshotter {
  readonly #deps: SnapshotterDeps;
  #stored: Map<string, BlockPieces>;
  /** The cut being stored. */
  #cut: SnapshotCut | undefined;
  #storing: Storing | undefined;
  /** What the last cut has left that failed. */
  #left: Set<number> = new Set();

  constructor(deps: SnapshotterDeps) {
    this.#deps = deps;
    this.#stored = new Map(deps.stored);
  }

  /** Whether a change of the shard might need one more copy than the worker may hold. */
  get holdsUp(): boolean {
    return this.#cut?.mayCopy === true && this.#deps.budget.isSpent;
  }

  /** Must be called before a block's bytes change or are freed. */
  beforeChange(block: Block): void {
    this.#cut?.beforeChange(block);
  }

  /** Must be called when a block is gone: a new one may have its epoch and version again. */
  blockRemoved(block: Block): void {
    this.#stored.delete(blockKey(block.parameter, block.index));
    this.#cut?.blockRemoved(block);
  }

  /**
   * Stores a cut of the shard and commits it after the manifest with sequence `previousSeq`. Makes the cut and calls
   * `header` when all earlier cuts of the worker have ended. Calls `onStored` before the next cut, whose header
   * depends on this one. `putOff`: how long the cut may take; without it, it is stored at once.
   * @returns the manifest.
   * @throws NOT_OWNER if another owner has committed since.
   */
  cut(
    shard: Shard,
    header: () => ManifestHeader,
    previousSeq: () => number,
    onStored: (stored: StoredManifest) => void,
    putOff?: PutOff,
  ): Promise<StoredManifest> {
    return this.#deps.budget.runInOrder(async () => {
      const stored = await this.#makeCut(shard, header(), previousSeq());
      onStored(stored);
      return stored;
    }, putOff);
  }

  /**
   * Writes the shard's newest manifest again under the next term, when all earlier cuts of the worker have ended.
   * Only then `newest` is called. Calls `onStored` before the next cut.
   * @returns the sequence of the former manifest.
   * @throws NOT_OWNER if another owner has committed since.
   */
  renew(newest: () => StoredManifest, onStored: (stored: StoredManifest) => void): Promise<number> {
    return this.#deps.budget.runInOrder(async () => {
      const former = newest();
      const manifest = { ...former.manifest, term: former.manifest.term + 1 };
      const seq = await this.#run((storing) => this.#commit(storing, manifest, former.seq));
      onStored({ seq, manifest });
      return former.seq;
    });
  }

  /** Ends what is being stored: its messages were lost with the connection, and no answers will come. */
  abort(reason: PserverError): void {
    this.#storing?.abort(reason);
  }

  async #makeCut(
    shard: Shard,
    header: ManifestHeader,
    previousSeq: number,
  ): Promise<StoredManifest> {
    const { budget, onProgress } = this.#deps;
    const cut = new SnapshotCut(shard, this.#stored, budget, onProgress);
    this.#cut = cut;
    try {
      return await this.#run((storing) => this.#storeCut({ cut, storing }, header, previousSeq));
    } finally {
      this.#cut = undefined;
      cut.end();
    }
  }

  /** Runs `store` until it is done or aborted. */
  async #run<Result>(store: (storing: Storing) => Promise<Result>): Promise<Result> {
    let abort: (reason: PserverError) => void = () => undefined;
    const aborted = new Promise<never>((_resolve, reject) => {
      abort = reject;
    });
    const storing: Storing = { ended: undefined, abort, unnamed: new Set() };
    this.#storing = storing;
    try {
      return await Promise.race([store(storing), aborted]);
    } finally {
      storing.ended = new PserverError("CLOSED", "the snapshot has ended");
      this.#storing = undefined;
    }
  }

  async #storeCut(
    current: StoredCut,
    header: ManifestHeader,
    previousSeq: number,
  ): Promise<StoredManifest> {
    const { cut, storing } = current;
    await this.#removeLeft();
    this.#left = storing.unnamed;
    const bytes = cut.pending.reduce((sum, { block }) => sum + block.heldBytes, 0);
    await this.#deps.store.requireRoom(bytes);
    this.#deps.budget.begin(bytes);
    await this.#storePending(current);
    const { fold, seq: cutSeq, recordCrc, checksum, pieces } = cut;
    const state: SnapshotState = { fold, pieces };
    const manifest: Manifest = {
      ...header,
      seq: cutSeq,
      ...{ recordCrc, checksum },
      state: await this.#storeState(storing, packValue(state)),
      pieces: pieces.flatMap((entry) => entry.slots.map((slot) => slot.seq)),
    };
    await this.#deps.beforeCommit?.(manifest);
    const seq = await this.#commit(storing, manifest, previousSeq);
    this.#stored = cut.reusable;
    return { seq, manifest };
  }

  async #commit(storing: Storing, manifest: Manifest, previousSeq: number): Promise<number> {
    if (storing.ended !== undefined) throw storing.ended;
    // From here on the manifest may be stored, whatever the broker answers.
    storing.unnamed.clear();
    const seq = await this.#deps.store.commit(manifest, previousSeq, () => storing.ended);
    if (storing.ended !== undefined) throw storing.ended;
    return seq;
  }

  async #storePending(current: StoredCut): Promise<void> {
    const { budget } = this.#deps;
    const queue = [...current.cut.pending];
    const work = async (): Promise<void> => {
      for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
        const { heldBytes } = next.block;
        // After the end of a cut, another one may have its turn.
        if (current.storing.ended !== undefined) throw current.storing.ended;
        await budget.acquire(heldBytes);
        try {
          if (current.storing.ended !== undefined) throw current.storing.ended;
          current.cut.stored(await this.#storeBlock(current, next));
        } finally {
          budget.release(heldBytes);
        }
      }
    };
    await Promise.all(Array.from({ length: BLOCKS_IN_FLIGHT }, work));
  }

  async #storeBlock(current: StoredCut, pending: PendingBlock): Promise<BlockPieces> {
    const { subjects, shard, budget } = this.#deps;
    const { block, version } = pending;
    const { parameter, index } = block;
    const drafts = current.cut.release(pending, (slots) =>
      slots.map((bytes, slot) => {
        const fields = { parameter, index, slot, ...version };
        const draft = draftMessage(fields, bytes.length, (size) => budget.pool.take(size));
        draft.data.set(bytes);
        return draft;
      }),
    );
    const slots: PieceRef[] = [];
    for (const [slot, draft] of drafts.entries()) {
      const subject = subjects.piece(shard, parameter, index, slot);
      slots.push(await this.#publish(current.storing, subject, sealMessage(draft)));
      // Only after an acknowledgement is the buffer free: after an error the message may still be on its way.
      budget.pool.giveBack(draft.bytes);
    }
    return { parameter, index, ...version, slots };
  }

  async #storeState(storing: Storing, bytes: Uint8Array): Promise<PieceRef[]> {
    const { subjects, shard, partBytesMax } = this.#deps;
    const refs: PieceRef[] = [];
    for (let start = 0; start < bytes.length; start += partBytesMax) {
      const part = bytes.subarray(start, start + partBytesMax);
      const draft = draftMessage({ part: refs.length }, part.length);
      draft.data.set(part);
      const subject = subjects.snapshotState(shard, refs.length);
      refs.push(await this.#publish(storing, subject, sealMessage(draft)));
    }
    return refs;
  }

  async #publish(storing: Storing, subject: string, bytes: Uint8Array): Promise<PieceRef> {
    if (storing.ended !== undefined) throw storing.ended;
    const ref = await this.#deps.store.publish(subject, bytes);
    storing.unnamed.add(ref.seq);
    return ref;
  }

  /** Removes the messages of a cut that failed, so that attempts do not fill the stream. */
  async #removeLeft(): Promise<void> {
    await this.#deps.store.remove(this.#left);
    this.#left.clear();
  }
}
