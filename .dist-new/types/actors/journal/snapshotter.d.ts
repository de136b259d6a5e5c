import { type JobSubjects, type Position, PserverError } from "../../protocol/index.ts";
import type { BufferPool } from "../../transport/buffers.ts";
import type { Block } from "../fold/block-actor.ts";
import type { FoldState } from "../fold/fold-state.ts";
import type { JournalChecksum } from "../fold/journal-checksum.ts";
import type { Shard } from "../fold/shard.ts";
import type { Manifest, StoredManifest } from "./manifest.ts";
import { type BlockPieces, type SnapshotStore } from "./snapshot-store.ts";
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
export declare class SnapshotCut {
    #private;
    /** The fold at the cut, without values. */
    readonly fold: FoldState;
    /** The last record of the cut, with its checksum. */
    readonly seq: number;
    readonly recordCrc: number;
    /** Checksum of the journal up to that record. */
    readonly checksum: JournalChecksum;
    /**
     * `stored` has the pieces that the newest manifest names, by block. `budget` limits the copies. `onReleased` is
     * called when copies were released.
     */
    constructor(shard: Pick<Shard, "saveState" | "seq" | "lastCrc" | "noted" | "blocks">, stored: ReadonlyMap<string, BlockPieces>, budget: SnapshotBudget, onReleased?: () => void);
    /** Blocks that are neither stored nor being stored. */
    get pending(): readonly PendingBlock[];
    /** Whether a change of the shard may still need a copy. */
    get mayCopy(): boolean;
    /** Copies a pending block; must be called before its bytes change or are freed. */
    beforeChange(block: Block): void;
    /** Notes that a block is gone; a new one may have its epoch and version again. */
    blockRemoved(block: Block): void;
    /**
     * Passes the slots of a pending block, as they were at the cut, to `store`, which must copy them at once. After
     * that the block may change.
     */
    release<Result>(pending: PendingBlock, store: (slots: readonly Uint8Array[]) => Result): Result;
    /** Adds the stored pieces of a block. */
    stored(pieces: BlockPieces): void;
    /** The pieces of all blocks of the cut. @throws INTERNAL if a block has not been stored. */
    get pieces(): BlockPieces[];
    /** Pieces, by block, that the next cut can use once this one is committed. */
    get reusable(): Map<string, BlockPieces>;
    /** Ends the cut: releases all copies. */
    end(): void;
}
/** The part of a manifest that does not come from the fold: who makes the cut, and of which journal. */
export type ManifestHeader = Pick<Manifest, "term" | "host" | "owner" | "generation" | "created" | "fallbacks" | "past" | "rewind">;
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
export declare class Snapshotter {
    #private;
    constructor(deps: SnapshotterDeps);
    /** Whether a change of the shard might need one more copy than the worker may hold. */
    get holdsUp(): boolean;
    /** Must be called before a block's bytes change or are freed. */
    beforeChange(block: Block): void;
    /** Must be called when a block is gone: a new one may have its epoch and version again. */
    blockRemoved(block: Block): void;
    /**
     * Stores a cut of the shard and commits it after the manifest with sequence `previousSeq`. Makes the cut and calls
     * `header` when all earlier cuts of the worker have ended. Calls `onStored` before the next cut, whose header
     * depends on this one.
     * @returns the manifest.
     * @throws NOT_OWNER if another owner has committed since.
     */
    cut(shard: Shard, header: () => ManifestHeader, previousSeq: () => number, onStored: (stored: StoredManifest) => void): Promise<StoredManifest>;
    /**
     * Writes the shard's newest manifest again under the next term, when all earlier cuts of the worker have ended.
     * Only then `newest` is called. Calls `onStored` before the next cut.
     * @returns the sequence of the former manifest.
     * @throws NOT_OWNER if another owner has committed since.
     */
    renew(newest: () => StoredManifest, onStored: (stored: StoredManifest) => void): Promise<number>;
    /** Ends what is being stored: its messages were lost with the connection, and no answers will come. */
    abort(reason: PserverError): void;
}
/**
 * Limits the memory that snapshots take beside the values, for all shards of a worker: their snapshots may all become
 * due at once, as after a burst of updates to a whole model.
 */
export declare class SnapshotBudget {
    #private;
    /** Pool for messages and copies. */
    readonly pool: BufferPool;
    constructor(pool: BufferPool);
    /** Whether records that need more copies have to wait. */
    get isSpent(): boolean;
    /** Bytes held in copies. */
    get copiedBytes(): number;
    /**
     * Runs one cut after the other: a shard that waits until copies are released holds back delivered records, and all
     * shards at once would hold back many.
     */
    runInOrder<Result>(cut: () => Promise<Result>): Promise<Result>;
    /** Waits, in order, until so many more bytes may be sent. More bytes than the limit are sent alone. */
    acquire(bytes: number): Promise<void>;
    /** Releases what {@link acquire} admitted. */
    release(bytes: number): void;
    /** Counts bytes in copies; a negative number when they are released. */
    copied(bytes: number): void;
}
export {};
//# sourceMappingURL=snapshotter.d.ts.map