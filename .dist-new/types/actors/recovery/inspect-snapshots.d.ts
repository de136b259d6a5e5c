import { type Position } from "../../protocol/index.ts";
import type { Shard } from "../fold/shard.ts";
import type { KvBucket } from "../journal/kv-bucket.ts";
import type { Manifest } from "../journal/manifest.ts";
import { type SnapshotStore } from "../journal/snapshot-store.ts";
import type { FoundArchive, FoundSnapshot, LackedBlock } from "./findings.ts";
/** A manifest in the snapshot stream; undefined if it cannot be read. */
export interface ManifestEntry {
    readonly seq: number;
    readonly manifest: Manifest | undefined;
}
/** Returns those of the wanted blocks that are not present under the epoch of their initialization. */
export declare function lackedBlocks(wanted: readonly InitializedBlock[], present: Iterable<Pick<InitializedBlock, "parameter" | "index" | "epoch">>): LackedBlock[];
/** Reads all pieces of every snapshot that a manifest names, the newest first. */
export declare function inspectSnapshots(store: SnapshotStore, entries: readonly ManifestEntry[], wanted: readonly InitializedBlock[]): Promise<FoundSnapshot[]>;
/** The newest state of a shard that an archive gives. */
export interface ArchivedState {
    readonly at: Position;
    /** Last record of that generation in the archive itself; those after it are read from the broker. */
    readonly archivedSeq: number;
    /** First record in whose place the broker holds another one, if any. */
    readonly replacedFrom: number | undefined;
    readonly shard: Shard;
}
/** An archive of the job, read together with what the broker still holds. */
export interface RecoveryArchive {
    /** Path of the archive. */
    readonly name: string;
    /**
     * Rebuilds the newest state of a shard that can be rebuilt.
     * @throws BAD_ARCHIVE for an archive of another job, or a damaged one; HISTORY_LOST if it has no state.
     */
    newest(shard: number): Promise<ArchivedState>;
    /** Rebuilds a shard as it was at a position. @throws as `newest`; JOURNAL_DAMAGED, SNAPSHOT_DAMAGED. */
    rebuild(shard: number, at: Position): Promise<Shard>;
}
/**
 * Finds out which state of a shard an archive gives. Throws errors that say nothing about the archive, such as
 * ABORTED.
 */
export declare function inspectArchive(archive: RecoveryArchive, shard: number, initialized: readonly InitializedBlock[]): Promise<FoundArchive>;
/** A block of an initialized parameter: its shard must have it, as nobody will initialize it again. */
export interface InitializedBlock extends LackedBlock {
    readonly epoch: number;
}
/**
 * Returns the blocks of initialized parameters that lie on a shard, as far as the entries of the job's bucket can be
 * read: those that are damaged are written again once all shards are served, from what these have.
 */
export declare function initializedBlocks(bucket: Pick<KvBucket, "keys" | "read">, shard: number): Promise<InitializedBlock[]>;
//# sourceMappingURL=inspect-snapshots.d.ts.map