import { type JobSubjects, PserverError } from "../../protocol/index.ts";
import type { BlockHeader } from "../fold/block-actor.ts";
import type { Journal } from "../journal/journal.ts";
import type { StoredManifest } from "../journal/manifest.ts";
import { type LoadedShard, type SnapshotStore } from "../journal/snapshot-store.ts";
import type { WatermarkKeeper } from "../journal/watermark-keeper.ts";
/** A shard restored from its newest snapshot, whose manifest fences off former owners. */
export interface RecoveredShard extends LoadedShard {
    /** The newest manifest, written again under this owner's term; undefined for a new shard. */
    readonly manifest: StoredManifest | undefined;
}
/** Dependencies of {@link recoverShard}. */
interface RecoverDeps {
    readonly subjects: JobSubjects;
    readonly shard: number;
    readonly host: string;
    /** Token unique to this take-over. */
    readonly owner: string;
    readonly store: SnapshotStore;
    readonly journal: Pick<Journal, "shard" | "lastSeq" | "newestGeneration">;
    readonly watermarks: Pick<WatermarkKeeper, "read">;
    /** Reserves memory for the values of these blocks. @throws NO_MEMORY. */
    readonly reserve: (valueBytes: number, blocks: readonly BlockHeader[]) => void;
}
/**
 * Takes a shard over: writes its newest manifest again under the next term, so that the broker refuses
 * the former owner's next write, and loads the snapshot that it names, or, if that one is damaged, an
 * older one: the journal reaches back to it.
 * @throws NOT_OWNER if somebody else takes it over at the same time; SNAPSHOT_DAMAGED if no snapshot
 * can be loaded, or none is left of a shard that has a journal; JOURNAL_LOST if neither is left of a
 * shard that was folded; NO_MEMORY, before allocating, if the host lacks the memory.
 */
export declare function recoverShard(deps: RecoverDeps): Promise<RecoveredShard>;
/**
 * Whether an apparent loss follows from another owner's take-over: an owner that was paused misses records of
 * journals that its successor has purged or replaced.
 */
export declare function isDeposed({ code }: PserverError, store: Pick<SnapshotStore, "lastManifest">, owner: string | undefined): Promise<boolean>;
export {};
//# sourceMappingURL=recover-shard.d.ts.map