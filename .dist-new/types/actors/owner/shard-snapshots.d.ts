import { type JobSubjects, type Position, PserverError } from "../../protocol/index.ts";
import type { Block } from "../fold/block-actor.ts";
import type { ArchivedShard, ArchiverWatch } from "../journal/archivers.ts";
import type { Journal, JournalInfo } from "../journal/journal.ts";
import type { StoredManifest } from "../journal/manifest.ts";
import { KeptSnapshots, type SnapshotStore } from "../journal/snapshot-store.ts";
import { type ManifestHeader, type SnapshotBudget } from "../journal/snapshotter.ts";
import type { TapeWriter } from "../journal/tape/tape-writer.ts";
import type { RecoveredShard } from "./recover-shard.ts";
/** Dependencies of {@link Retention}. */
interface RetentionDeps {
    readonly journal: Pick<Journal, "info" | "purgeBelow">;
    readonly store: Pick<SnapshotStore, "list" | "remove">;
    readonly kept: KeptSnapshots;
    /** Returns the most bytes of the snapshots that are kept; the newest two are kept in any case. */
    readonly keptBytesMax: () => number;
    /** Returns what each archiver of the job has copied of the shard. */
    readonly archived: () => Promise<readonly ArchivedShard[]>;
    /** Called for the first records that were removed before an archiver had them, since all had all; up to this one. */
    readonly onLeftBehind: (seq: number) => void;
}
/** Removes the snapshots of a shard that need not be kept, and the journal before the oldest kept. */
export declare class Retention {
    #private;
    constructor({ journal, store, kept, keptBytesMax, archived, onLeftBehind }: RetentionDeps);
    /** Oldest position from which the shard can be rebuilt. */
    get oldestSeq(): number;
    /**
     * Adds a new snapshot and removes what need not be kept any more.
     * @returns the journal's state afterwards; undefined if it is gone.
     */
    committed(snapshot: StoredManifest): Promise<JournalInfo | undefined>;
    /**
     * Does as {@link committed} for a snapshot after a skipped gap: removes all before it, records once the archivers
     * have them.
     */
    committedAcrossGap(snapshot: StoredManifest): Promise<JournalInfo | undefined>;
    /** Notes that the newest snapshot has another manifest, and removes the former one. */
    renewed(newest: StoredManifest, formerSeq: number): Promise<void>;
    /**
     * Removes what need not be kept, including what an owner that died has left. `isFull`: keeps the newest snapshot
     * only, because there was no room for another.
     */
    enforce(isFull?: boolean): Promise<JournalInfo | undefined>;
}
/** Where the snapshots of a shard are stored, and when they are made. */
export interface SnapshotContext {
    readonly shard: number;
    readonly journal: Journal;
    readonly store: SnapshotStore;
    readonly worker: {
        readonly subjects: JobSubjects;
        readonly archivers: Pick<ArchiverWatch, "copied">;
        readonly snapshotBudget: SnapshotBudget;
        readonly settings: SnapshotSettings;
    };
}
/** Limits that decide when snapshots are made and how much is kept. */
export interface SnapshotSettings {
    /** Bytes of the journal between two snapshots. */
    readonly snapshotBytes: number;
    /** Bytes of the journal that are retained before the newest snapshots. */
    readonly retainBytes: number;
    /** Bytes of snapshots that may be kept in addition to twice the values and slots of the shard. */
    readonly olderBytesMax: number;
    /** The most bytes of a shard's state in one message. */
    readonly partBytesMax: number;
}
/** Reports of {@link ShardSnapshots} to whoever owns the shard. */
export interface SnapshotEvents {
    /** Called when copies were released and after each snapshot: the fold may go on. */
    onProgress(): void;
    /** Called when another owner has taken the shard over. */
    onDeposed(error: PserverError): void;
    /**
     * Called when a snapshot has failed; it is retried while the shard goes on. Not called again until one has succeeded,
     * or one fails for another reason.
     */
    onSnapshotFailed(error: PserverError): void;
    /** Called when records were removed before an archiver had copied them. */
    onArchiverBehind(error: PserverError): void;
}
/** State of a recovered shard that its snapshots begin with. */
export interface SnapshotBeginning {
    readonly recovered: RecoveredShard;
    /** All manifests in the store, oldest first. */
    readonly kept: readonly StoredManifest[];
    /** The tape, which must have the lines of all records that a snapshot covers; undefined for none. */
    readonly tape?: Pick<TapeWriter, "flush"> | undefined;
}
/** Makes the snapshots of one shard when they are due. */
export declare class ShardSnapshots {
    #private;
    constructor({ shard, journal, store, worker }: SnapshotContext, { recovered, kept, tape }: SnapshotBeginning, events: SnapshotEvents);
    /** The newest manifest. */
    get newest(): StoredManifest | undefined;
    /** Oldest position from which the shard can be rebuilt. */
    get oldestSeq(): number;
    /** Bytes of the journal: its size when it was last checked, and what was folded since. */
    get journalBytes(): number;
    /** Whether the fold has to wait until copies are released. */
    get holdsUp(): boolean;
    /** Returns what the newest manifest begins with. @throws NOT_OWNER if there is no manifest yet. */
    manifestHeader(): ManifestHeader;
    /** Removes what the former owner has left. A failure is reported; the shard is served all the same. */
    tidy(): Promise<void>;
    /** Notes the size of the journal. */
    journalIs({ bytes, bytesMax }: Pick<JournalInfo, "bytes" | "bytesMax">): void;
    /**
     * Counts folded bytes of the journal, and makes a snapshot if one is due. `isCompared`: whether the records are
     * known to be those that were folded before; no snapshot is made of others.
     */
    advanced(bytes: number, isCompared: boolean): void;
    /** Must be called before a block's bytes change or are freed. */
    beforeChange(block: Block): void;
    /** Must be called when a block is gone. */
    blockRemoved(block: Block): void;
    /** Ends a snapshot or a renewal under way, because its connection was lost. */
    abort(): void;
    /** Starts no further snapshot. */
    close(): void;
    /** Returns the newest snapshot if it is of `at` or later, else makes a new one; waits for one under way. */
    make(at: Position): Promise<StoredManifest>;
    /** Commits the shard as it is when `head` is called, between two records. */
    commit(header: () => ManifestHeader): Promise<StoredManifest>;
    /** Does as {@link commit} for a shard that has skipped a gap: no earlier record is needed then. */
    commitAcrossGap(header: () => ManifestHeader): Promise<void>;
    /**
     * Writes the newest manifest again under the next term. If the broker takes it, no other host has taken the shard
     * over since it was first written.
     * @throws NOT_OWNER if one has.
     */
    renew(): Promise<void>;
}
export {};
//# sourceMappingURL=shard-snapshots.d.ts.map