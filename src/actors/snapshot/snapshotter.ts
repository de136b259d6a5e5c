import {
  draftMessage,
  type JobSubjects,
  type Position,
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

/** Something being stored. The rest of what failed must not affect what is stored later. */
interface Storing {
  /** Why nothing may be stored for it any more; undefined while it goes on. */
  ended: PserverError | undefined;
  /** Ends it at once, whatever it waits for. */
  readonly abort: (reason: PserverError) => void;
}

/** A cut being stored. */
interface StoredCut {
  readonly cut: SnapshotCut;
  readonly storing: Storing;
}

/** Dependencies of {@link Snapshotter}. */
export interface SnapshotterDeps {
  readonly store: Pick<SnapshotStore, "publish" | "commit">;
  readonly subjects: JobSubjects;
  readonly shard: number;
  /** Limit of the state's bytes in one message. */
  readonly partBytesMax: number;
  readonly budget: SnapshotBudget;
  /** What must be done before a cut of this position is committed. */
  readonly beforeCommit?: (position: Position) => Promise<void>;
  /** Called when copies were released: the fold may go on. */
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

  /**
   * Writes a manifest again under the next term, when all earlier cuts of the worker have ended. `newest`, the
   * shard's newest manifest, is asked for then; `onStored` is called before the next cut.
   * @returns the sequence of the former manifest.
   * @throws NOT_OWNER if another owner has committed since.
   */
  renew(newest: () => StoredManifest, onStored: (stored: StoredManifest) => void): Promise<number> {
    return this.#deps.budget.turn(async () => {
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

  async #makeCut(shard: Shard, head: CutHead, previousSeq: number): Promise<StoredManifest> {
    const { budget, onProgress } = this.#deps;
    const cut = new SnapshotCut(shard, this.#stored, budget, onProgress);
    this.#cut = cut;
    try {
      return await this.#run((storing) => this.#storeCut({ cut, storing }, head, previousSeq));
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
    const storing: Storing = { ended: undefined, abort };
    this.#storing = storing;
    try {
      return await Promise.race([store(storing), aborted]);
    } finally {
      storing.ended = new PserverError("CLOSED", "the snapshot has ended");
      this.#storing = undefined;
    }
  }

  async #storeCut(current: StoredCut, head: CutHead, previousSeq: number): Promise<StoredManifest> {
    const { cut, storing } = current;
    await this.#storePending(current);
    const { fold, seq: cutSeq, recordCrc, checksum, pieces } = cut;
    const state: SnapshotState = { fold, pieces };
    const manifest: Manifest = {
      ...head,
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
      // Only after an acknowledgement: after an error the message may still be on its way.
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
    return await this.#deps.store.publish(subject, bytes);
  }
}
