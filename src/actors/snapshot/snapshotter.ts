import {
  draftMessage,
  type JobSubjects,
  PserverError,
  packValue,
  sealMessage,
} from "../../protocol/index.ts";
import type { Block } from "../fold/block.ts";
import type { Shard } from "../fold/shard.ts";
import type { Manifest, PieceRef, StoredManifest } from "./manifest.ts";
import type { SnapshotBudget } from "./snapshot-budget.ts";
import { type BlockPieces, blockKey, type SnapshotState } from "./state.ts";
import type { SnapshotStore } from "./store.ts";

/** Pieces on their way to the broker at one time. */
const PIECES_IN_FLIGHT = 4;

/** What one cut says beside the fold: who makes it and of which journal. */
export type CutHead = Pick<
  Manifest,
  "term" | "host" | "owner" | "generation" | "created" | "fallbacks"
>;

/** A block of the cut whose pieces are not stored yet; `copies` once it has changed since. */
interface Pending {
  readonly block: Block;
  copies: Uint8Array[] | undefined;
}

/** One cut under way. What is left of a cut that failed must not touch a later one. */
interface Cut {
  readonly pending: Map<string, Pending>;
  /** Blocks removed since the cut: pieces of them say nothing of a block made anew. */
  readonly removed: Set<string>;
  copiedBytes: number;
  /** Why no more may be stored for it, once it has ended. */
  ended: PserverError | undefined;
  /** Ends it at once, whatever it waits for. */
  readonly abort: (reason: PserverError) => void;
}

/** What the bytes of a block were at the moment of a cut. */
type BlockVersion = Pick<Block, "epoch" | "version" | "accumulated">;

/**
 * Makes one cut of a shard while the shard goes on: the blocks that changed since the last cut are
 * stored piece by piece, and a block is copied just before its next update if that comes first.
 */
export class Snapshotter {
  readonly #store: Pick<SnapshotStore, "publish" | "commit">;
  readonly #subjects: JobSubjects;
  readonly #shardNumber: number;
  readonly #partBytesMax: number;
  readonly #budget: SnapshotBudget;
  readonly #onProgress: () => void;
  #stored: Map<string, BlockPieces>;
  #cut: Cut | undefined;

  /**
   * `stored`: the pieces that the newest manifest names; `partBytesMax`: of one message;
   * `onProgress`: called when copies have gone, so that the fold may go on.
   */
  constructor(options: {
    readonly store: Pick<SnapshotStore, "publish" | "commit">;
    readonly subjects: JobSubjects;
    readonly shard: number;
    readonly partBytesMax: number;
    readonly budget: SnapshotBudget;
    readonly onProgress: () => void;
    readonly stored: ReadonlyMap<string, BlockPieces>;
  }) {
    this.#store = options.store;
    this.#subjects = options.subjects;
    this.#shardNumber = options.shard;
    this.#partBytesMax = options.partBytesMax;
    this.#budget = options.budget;
    this.#onProgress = options.onProgress;
    this.#stored = new Map(options.stored);
  }

  /** Whether a change of the shard might need one more copy than the worker may hold. */
  get holdsUp(): boolean {
    return this.#cut !== undefined && this.#cut.pending.size > 0 && this.#budget.isSpent;
  }

  /** To be called before a block's bytes change or go: copies them if a running cut needs them. */
  beforeChange(block: Block): void {
    const cut = this.#cut;
    const pending = cut?.pending.get(blockKey(block.parameter, block.index));
    if (cut === undefined || pending?.block !== block || pending.copies !== undefined) return;
    pending.copies = slotsOf(block).map((slot) => this.#copy(block.slotBytes(slot)));
    this.#copied(cut, block.heldBytes);
  }

  /** To be called when a block is gone: one made anew may have its epoch and version again. */
  blockRemoved(block: Block): void {
    const key = blockKey(block.parameter, block.index);
    this.#stored.delete(key);
    this.#cut?.removed.add(key);
  }

  /**
   * Stores one cut of the shard and commits it after the manifest that `previousSeq` names. The cut
   * is of the shard as it is when its turn among the shards of the worker has come. `onStored` gets the
   * manifest and its sequence before the next turn: the head of the next one follows from it.
   * @returns the same.
   * @throws NOT_OWNER if another owner has committed since.
   */
  cut(
    shard: Shard,
    head: () => CutHead,
    previousSeq: () => number,
    onStored: (stored: StoredManifest) => void,
  ): Promise<StoredManifest> {
    return this.#budget.turn(async () => {
      const stored = await this.#makeCut(shard, head(), previousSeq());
      onStored(stored);
      return stored;
    });
  }

  /**
   * Ends a cut that is under way: what it has sent to the broker was lost with the connection, and
   * to wait for the answers would hold up the next.
   */
  abort(reason: PserverError): void {
    this.#cut?.abort(reason);
  }

  async #makeCut(shard: Shard, head: CutHead, previousSeq: number): Promise<StoredManifest> {
    let abort: (reason: PserverError) => void = () => undefined;
    const aborted = new Promise<never>((_resolve, reject) => {
      abort = reject;
    });
    const cut: Cut = {
      pending: new Map(),
      removed: new Set(),
      copiedBytes: 0,
      ended: undefined,
      abort,
    };
    this.#cut = cut;
    try {
      return await Promise.race([this.#storeCut(cut, shard, head, previousSeq), aborted]);
    } finally {
      cut.ended = new PserverError("CLOSED", "the snapshot has ended");
      this.#cut = undefined;
      cut.pending.clear();
      this.#copied(cut, -cut.copiedBytes);
    }
  }

  async #storeCut(
    cut: Cut,
    shard: Shard,
    head: CutHead,
    previousSeq: number,
  ): Promise<StoredManifest> {
    // Everything up to the first await happens between two records: that is the cut.
    const stored = new Map(this.#stored);
    const fold = shard.saveState();
    const cutSeq = { seq: shard.seq, recordCrc: shard.lastCrc };
    const versions = new Map<string, BlockVersion>();
    for (const block of shard.blocks()) {
      const { epoch, version, accumulated } = block;
      const key = blockKey(block.parameter, block.index);
      versions.set(key, { epoch, version, accumulated });
      if (!isOf(stored.get(key), block)) {
        cut.pending.set(key, { block, copies: undefined });
      }
    }
    const fresh = await this.#storePending(cut, versions);
    const pieces = [...versions].map(([key, version]) => {
      const entry = fresh.get(key) ?? stored.get(key);
      if (entry !== undefined && isOf(entry, version)) return entry;
      throw new PserverError("INTERNAL", `snapshot: block ${key} was not stored`);
    });
    const state: SnapshotState = { fold, pieces };
    const manifest: Manifest = {
      ...head,
      ...cutSeq,
      state: await this.#storeState(cut, packValue(state)),
      pieces: pieces.flatMap((entry) => entry.slots.map((slot) => slot.seq)),
    };
    if (cut.ended !== undefined) throw cut.ended;
    const seq = await this.#store.commit(manifest, previousSeq);
    if (cut.ended !== undefined) throw cut.ended;
    const named = pieces.map((entry) => [blockKey(entry.parameter, entry.index), entry] as const);
    this.#stored = new Map(named.filter(([key]) => !cut.removed.has(key)));
    return { seq, manifest };
  }

  async #storePending(
    cut: Cut,
    versions: ReadonlyMap<string, BlockVersion>,
  ): Promise<Map<string, BlockPieces>> {
    const fresh = new Map<string, BlockPieces>();
    const queue = [...cut.pending];
    const work = async (): Promise<void> => {
      for (let item = queue.shift(); item !== undefined; item = queue.shift()) {
        const [key, pending] = item;
        const version = versions.get(key);
        if (version === undefined) continue;
        await this.#budget.acquire(pending.block.heldBytes);
        try {
          if (cut.ended !== undefined) throw cut.ended;
          fresh.set(key, await this.#storeBlock(cut, pending, version));
        } finally {
          this.#budget.release(pending.block.heldBytes);
        }
      }
    };
    await Promise.all(Array.from({ length: PIECES_IN_FLIGHT }, work));
    return fresh;
  }

  async #storeBlock(cut: Cut, pending: Pending, version: BlockVersion): Promise<BlockPieces> {
    const { block } = pending;
    const { parameter, index } = block;
    // All messages are drafted at once, before the block can change under us.
    const drafts = slotsOf(block).map((slot) => {
      const bytes = pending.copies?.[slot] ?? block.slotBytes(slot);
      const fields = { parameter, index, slot, ...version };
      const draft = draftMessage(fields, bytes.length, (size) => this.#budget.pool.take(size));
      draft.data.set(bytes);
      return draft;
    });
    for (const copy of pending.copies ?? []) this.#budget.pool.giveBack(copy);
    cut.pending.delete(blockKey(parameter, index));
    if (pending.copies !== undefined) this.#copied(cut, -block.heldBytes);
    const slots: PieceRef[] = [];
    for (const [slot, draft] of drafts.entries()) {
      const subject = this.#subjects.piece(this.#shardNumber, parameter, index, slot);
      slots.push(await this.#publish(cut, subject, sealMessage(draft)));
      // Only what the broker has taken: after an error it may still be on its way.
      this.#budget.pool.giveBack(draft.bytes);
    }
    return { parameter, index, ...version, slots };
  }

  #copy(bytes: Uint8Array): Uint8Array {
    const copy = this.#budget.pool.take(bytes.length);
    copy.set(bytes);
    return copy;
  }

  #copied(cut: Cut, bytes: number): void {
    cut.copiedBytes += bytes;
    this.#budget.copied(bytes);
    if (bytes < 0) this.#onProgress();
  }

  async #storeState(cut: Cut, bytes: Uint8Array): Promise<PieceRef[]> {
    const refs: PieceRef[] = [];
    for (let start = 0; start < bytes.length; start += this.#partBytesMax) {
      const part = bytes.subarray(start, start + this.#partBytesMax);
      const draft = draftMessage({ part: refs.length }, part.length);
      draft.data.set(part);
      const subject = this.#subjects.snapshotState(this.#shardNumber, refs.length);
      refs.push(await this.#publish(cut, subject, sealMessage(draft)));
    }
    return refs;
  }

  async #publish(cut: Cut, subject: string, bytes: Uint8Array): Promise<PieceRef> {
    if (cut.ended !== undefined) throw cut.ended;
    return await this.#store.publish(subject, bytes);
  }
}

function isOf(pieces: BlockPieces | undefined, version: BlockVersion): boolean {
  return (
    pieces?.epoch === version.epoch &&
    pieces.version === version.version &&
    pieces.accumulated === version.accumulated
  );
}

function slotsOf(block: Block): number[] {
  return Array.from({ length: 1 + block.slots }, (_, slot) => slot);
}
