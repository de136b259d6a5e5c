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
import { type PendingBlock, SnapshotCut } from "./snapshot-cut.ts";
import { type BlockPieces, blockKey, type SnapshotState } from "./state.ts";
import type { SnapshotStore } from "./store.ts";

/** Blocks being stored at one time. */
const BLOCKS_IN_FLIGHT = 4;

/** Part of a manifest that does not come from the fold: who makes the cut, and of which journal. */
export type CutHead = Pick<
  Manifest,
  "term" | "host" | "owner" | "generation" | "created" | "fallbacks" | "past"
>;

/** A cut being stored. The rest of one that failed must not affect a later one. */
interface StoredCut {
  readonly cut: SnapshotCut;
  /** Why nothing may be stored for it any more; undefined while it goes on. */
  ended: PserverError | undefined;
  /** Ends it at once, whatever it waits for. */
  readonly abort: (reason: PserverError) => void;
}

/** Dependencies of {@link Snapshotter}. */
export interface SnapshotterDeps {
  readonly store: Pick<SnapshotStore, "publish" | "commit">;
  readonly subjects: JobSubjects;
  readonly shard: number;
  /** Limit of the state's bytes in one message. */
  readonly partBytesMax: number;
  readonly budget: SnapshotBudget;
  /** Called when copies were released: the fold may go on. */
  readonly onProgress: () => void;
  /** Pieces that the newest manifest names, by block. */
  readonly stored: ReadonlyMap<string, BlockPieces>;
}

/** Stores cuts of a shard, one at a time, while the shard goes on. */
export class Snapshotter {
  readonly #deps: SnapshotterDeps;
  #stored: Map<string, BlockPieces>;
  #current: StoredCut | undefined;

  constructor(deps: SnapshotterDeps) {
    this.#deps = deps;
    this.#stored = new Map(deps.stored);
  }

  /** Whether a change of the shard might need one more copy than the worker may hold. */
  get holdsUp(): boolean {
    return this.#current?.cut.mayCopy === true && this.#deps.budget.isSpent;
  }

  /** Must be called before a block's bytes change or are freed. */
  beforeChange(block: Block): void {
    this.#current?.cut.beforeChange(block);
  }

  /** Must be called when a block is gone: a new one may have its epoch and version again. */
  blockRemoved(block: Block): void {
    this.#stored.delete(blockKey(block.parameter, block.index));
    this.#current?.cut.blockRemoved(block);
  }

  /**
   * Stores a cut of the shard and commits it after the manifest with sequence `previousSeq`. The cut
   * is made, and `head` called, when all earlier cuts of the worker have ended. `onStored` is called
   * before the next cut, whose head depends on this one.
   * @returns the manifest.
   * @throws NOT_OWNER if another owner has committed since.
   */
  cut(
    shard: Shard,
    head: () => CutHead,
    previousSeq: () => number,
    onStored: (stored: StoredManifest) => void,
  ): Promise<StoredManifest> {
    return this.#deps.budget.turn(async () => {
      const stored = await this.#makeCut(shard, head(), previousSeq());
      onStored(stored);
      return stored;
    });
  }

  /** Ends a cut under way: its messages were lost with the connection, and no answers will come. */
  abort(reason: PserverError): void {
    this.#current?.abort(reason);
  }

  async #makeCut(shard: Shard, head: CutHead, previousSeq: number): Promise<StoredManifest> {
    let abort: (reason: PserverError) => void = () => undefined;
    const aborted = new Promise<never>((_resolve, reject) => {
      abort = reject;
    });
    const { budget, onProgress } = this.#deps;
    const cut = new SnapshotCut(shard, this.#stored, budget, onProgress);
    const current: StoredCut = { cut, ended: undefined, abort };
    this.#current = current;
    try {
      return await Promise.race([this.#storeCut(current, head, previousSeq), aborted]);
    } finally {
      current.ended = new PserverError("CLOSED", "the snapshot has ended");
      this.#current = undefined;
      cut.end();
    }
  }

  async #storeCut(current: StoredCut, head: CutHead, previousSeq: number): Promise<StoredManifest> {
    const { cut } = current;
    await this.#storePending(current);
    const { fold, seq: cutSeq, recordCrc, pieces } = cut;
    const state: SnapshotState = { fold, pieces };
    const manifest: Manifest = {
      ...head,
      seq: cutSeq,
      recordCrc,
      state: await this.#storeState(current, packValue(state)),
      pieces: pieces.flatMap((entry) => entry.slots.map((slot) => slot.seq)),
    };
    if (current.ended !== undefined) throw current.ended;
    const seq = await this.#deps.store.commit(manifest, previousSeq);
    if (current.ended !== undefined) throw current.ended;
    this.#stored = cut.reusable;
    return { seq, manifest };
  }

  async #storePending(current: StoredCut): Promise<void> {
    const { budget } = this.#deps;
    const queue = [...current.cut.pending];
    const work = async (): Promise<void> => {
      for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
        const { heldBytes } = next.block;
        await budget.acquire(heldBytes);
        try {
          if (current.ended !== undefined) throw current.ended;
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
      slots.push(await this.#publish(current, subject, sealMessage(draft)));
      // Only after an acknowledgement: after an error the message may still be on its way.
      budget.pool.giveBack(draft.bytes);
    }
    return { parameter, index, ...version, slots };
  }

  async #storeState(current: StoredCut, bytes: Uint8Array): Promise<PieceRef[]> {
    const { subjects, shard, partBytesMax } = this.#deps;
    const refs: PieceRef[] = [];
    for (let start = 0; start < bytes.length; start += partBytesMax) {
      const part = bytes.subarray(start, start + partBytesMax);
      const draft = draftMessage({ part: refs.length }, part.length);
      draft.data.set(part);
      const subject = subjects.snapshotState(shard, refs.length);
      refs.push(await this.#publish(current, subject, sealMessage(draft)));
    }
    return refs;
  }

  async #publish(current: StoredCut, subject: string, bytes: Uint8Array): Promise<PieceRef> {
    if (current.ended !== undefined) throw current.ended;
    return await this.#deps.store.publish(subject, bytes);
  }
}
