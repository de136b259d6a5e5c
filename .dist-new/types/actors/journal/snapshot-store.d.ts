import type { JetStreamClient, JetStreamManager } from "@nats-io/jetstream";
import { type JobSubjects, PserverError } from "../../protocol/index.ts";
import type { StreamPublisher } from "../../transport/jetstream.ts";
import { type BlockHeader } from "../fold/block-actor.ts";
import { Shard } from "../fold/shard.ts";
import type { ArchivedShard } from "./archivers.ts";
import type { JournalInfo } from "./journal.ts";
import { type Manifest, type PieceRef, type StoredManifest } from "./manifest.ts";
/** The stored pieces of one block at one epoch and version: its values, then slots 1, 2, … */
export interface BlockPieces {
    readonly parameter: string;
    readonly index: number;
    readonly epoch: number;
    readonly version: number;
    /** How many gradients are added up in its open step. */
    readonly accumulated: number;
    readonly slots: readonly PieceRef[];
}
/** The content of a snapshot's state: the fold without values, and references to the values. */
export interface SnapshotState {
    readonly fold: unknown;
    readonly pieces: readonly BlockPieces[];
}
/** Returns the key of a block in tables. It is unambiguous, because the index comes first and has no colon. */
export declare function blockKey(parameter: string, index: number): string;
/**
 * Reads the state that a manifest names.
 * @throws SNAPSHOT_DAMAGED if a part is lost or has changed.
 */
export declare function readSnapshotState(store: Pick<SnapshotReader, "read">, manifest: Manifest): Promise<SnapshotState>;
/** A shard restored from a snapshot, or an empty one. */
export interface LoadedShard {
    readonly shard: Shard;
    /** Its stored pieces, by block. */
    readonly stored: ReadonlyMap<string, BlockPieces>;
}
/** Where a snapshot is loaded from, and into what. */
export interface SnapshotPlace {
    readonly subjects: JobSubjects;
    readonly shard: number;
    readonly store: Pick<SnapshotReader, "read">;
    /** Reserves memory for the values of these blocks. @throws NO_MEMORY. */
    readonly reserve?: (valueBytes: number, blocks: readonly BlockHeader[]) => void;
}
/**
 * Restores the shard from a manifest's snapshot.
 * @throws SNAPSHOT_DAMAGED if a piece of it is lost or has changed; the errors of `reserve`.
 */
export declare function loadSnapshot({ subjects, shard: number, store, reserve }: SnapshotPlace, { manifest }: Pick<StoredManifest, "manifest">): Promise<LoadedShard>;
/** Dependencies of {@link SnapshotReader}. */
export interface SnapshotReaderDeps {
    readonly manager: JetStreamManager;
    readonly subjects: JobSubjects;
    readonly shard: number;
}
/** A message of the snapshot stream. */
interface StoredMessage {
    readonly seq: number;
    readonly data: Uint8Array;
    /** When the broker stored it, in milliseconds since 1970. */
    readonly timeMs: number;
}
/** A manifest in the stream: its sequence, when it was stored, and its content; undefined if it cannot be read. */
export interface DatedManifest extends Omit<StoredMessage, "data"> {
    readonly manifest: Manifest | undefined;
}
/** Reads one shard's part of the snapshot stream of a job. */
export declare class SnapshotReader {
    #private;
    constructor(deps: SnapshotReaderDeps);
    /**
     * Reads the message that a reference names into a buffer of its own.
     * @throws SNAPSHOT_DAMAGED if it is gone or its bytes have changed.
     */
    read(piece: PieceRef): Promise<Uint8Array>;
    /** Reads the newest manifest from the leader; undefined without one. */
    lastManifest(): Promise<StoredManifest | undefined>;
    /** Reads all kept manifests, oldest first. @throws SNAPSHOT_DAMAGED if one cannot be read. */
    manifests(): Promise<StoredManifest[]>;
    /** Reads like {@link manifests}, with the times, and with undefined for a manifest that cannot be read. */
    manifestEntries(): Promise<DatedManifest[]>;
    /** Reads one message from the leader; undefined if there is none. */
    protected message(query: {
        seq: number;
        next_by_subj?: string;
    } | {
        last_by_subj: string;
    }): Promise<StoredMessage | undefined>;
}
/** Dependencies of {@link SnapshotStore}. */
export interface SnapshotStoreDeps extends SnapshotReaderDeps {
    readonly client: JetStreamClient;
    readonly publisher: StreamPublisher;
}
/** One shard's part of the snapshot stream of a job, for its owner. */
export declare class SnapshotStore extends SnapshotReader {
    #private;
    constructor(deps: SnapshotStoreDeps);
    /** How many messages this store has stored, manifests not counted. */
    get stored(): number;
    /** Stores one message; returns the reference to it. */
    publish(subject: string, bytes: Uint8Array): Promise<PieceRef>;
    /**
     * Writes a manifest after the one with sequence `previousSeq` (0: the first of the shard). Recognizes a write whose
     * answer was lost: this one, or an earlier one of the same owner.
     * @param ended asked before the write is repeated: returns why nothing may be written any more, because the owner
     * may have stored a later manifest.
     * @returns its sequence.
     * @throws NOT_OWNER if another owner has written since and so deposed this one; what `ended` returns.
     */
    commit(manifest: Manifest, previousSeq: number, ended?: () => PserverError | undefined): Promise<number>;
    /** Lists the sequences of all messages of the shard. */
    list(): Promise<number[]>;
    /** Deletes messages, without overwriting their bytes; those that are gone already count as deleted. */
    remove(sequences: Iterable<number>): Promise<void>;
}
/** Creates the snapshot stream of a job unless it exists. */
export declare function ensureSnapshotStream(manager: JetStreamManager, subjects: JobSubjects, replicas: number): Promise<void>;
/** The size of a journal and its limit. */
type JournalBytes = Pick<JournalInfo, "bytes" | "bytesMax">;
/**
 * Decides which snapshots of a shard are kept: the newest, older ones while the journal back to them fits into the
 * bytes to retain, and all of an abandoned journal that is kept as history. Does no I/O.
 */
export declare class KeptSnapshots {
    #private;
    /** `kept` are all manifests in the store, oldest first. */
    constructor(retainBytes: number, kept: readonly StoredManifest[]);
    /** Generation of the newest snapshot; undefined without one. */
    get generation(): number | undefined;
    /** Sequence of the oldest state that can be restored and folded on; 0 without a snapshot. */
    get oldestSeq(): number;
    /**
     * Adds the newest snapshot. Drops those of an earlier generation, as no records follow them any more, unless the
     * snapshot says that their journal is kept.
     */
    add(snapshot: StoredManifest): void;
    /** Replaces the manifest of the newest snapshot. */
    renew(newest: StoredManifest): void;
    /** Keeps only this snapshot of the journal: it lies after a gap, and no older state can be folded across that. */
    restartAt(snapshot: StoredManifest): void;
    /** Drops the snapshots of journals that were replaced and are not kept. */
    dropEarlierGenerations(): void;
    /**
     * Drops the oldest snapshot if the journal back to it is too large, and returns whether it did. Keeps what an
     * archiver has not copied yet, as long as the journal has at most twice the bytes to retain.
     */
    dropOldest(journal: JournalBytes, archived: readonly ArchivedShard[]): boolean;
    /**
     * Whether the records before the oldest snapshot stay because an archiver has not copied them; up to a journal of
     * the same size.
     */
    holdsBefore(journal: JournalBytes, archived: readonly ArchivedShard[]): boolean;
    /** Finds the shard's stored messages that are older than the newest snapshot and that no kept snapshot needs. */
    unneeded(stored: readonly number[]): number[];
}
export {};
//# sourceMappingURL=snapshot-store.d.ts.map