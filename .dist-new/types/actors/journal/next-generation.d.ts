import { type Fallback, type JobSubjects, type Position } from "../../protocol/index.ts";
import type { Shard } from "../fold/shard.ts";
import type { Journal, JournalInfo } from "./journal.ts";
import type { PassedRewind, StoredManifest } from "./manifest.ts";
import { type BlockPieces, type SnapshotStore } from "./snapshot-store.ts";
import { type ManifestHeader, type SnapshotterDeps } from "./snapshotter.ts";
/** What {@link openGeneration} needs: the journal and the shard, and how manifests are written. */
export interface GenerationWriter {
    readonly journal: Pick<Journal, "rules" | "setAside" | "open" | "remove">;
    readonly storage: "file" | "memory";
    readonly shard: Pick<Shard, "rules">;
    /** Returns the header of this writer's newest manifest. */
    readonly manifestHeader: () => ManifestHeader;
    /**
     * Stores the shard, and a manifest after the newest one.
     * @throws NOT_OWNER if somebody else has written one since.
     */
    readonly commit: (header: () => ManifestHeader) => Promise<unknown>;
}
/**
 * Makes or completes the stream of the generation that the newest manifest announces, and commits its creation time:
 * steps 3 to 5 above. Removes abandoned journals if the broker has no storage for the stream.
 * @returns the state of the stream.
 * @throws NO_SPACE; NOT_OWNER.
 */
export declare function openGeneration(writer: GenerationWriter): Promise<JournalInfo>;
/**
 * Returns the losses that a manifest names, as they are to be named by the manifest of a later generation. If what it
 * announces was interrupted before step 5, its abandoned journals hold records that it does not name, and may take
 * more: then they are set aside first. The later generation removes the older ones of them, and with them all knowledge
 * of where they ended.
 */
export declare function finalFallbacks(journal: Pick<Journal, "setAside">, { created, fallbacks }: Pick<ManifestHeader, "created" | "fallbacks">): Promise<readonly Fallback[]>;
/** Dependencies of {@link continueShard}. */
export interface ContinueDeps extends Pick<GenerationWriter, "journal" | "storage"> {
    readonly shard: number;
    readonly subjects: JobSubjects;
    readonly store: SnapshotterDeps["store"];
    /** Limit of the state's bytes in one message. */
    readonly partBytesMax: number;
    /** Called after each stage. `committed`: the deciding manifest is stored; `opened`: the shard can be taken over. */
    readonly onStage?: ((stage: "committed" | "opened") => void) | undefined;
}
/** The state from which a shard goes on, and the manifest and journal that it replaces. */
export interface Continuation {
    readonly shard: Shard;
    /** Pieces of the state that are stored already, by block. */
    readonly stored: ReadonlyMap<string, BlockPieces>;
    /** Host and token of the run, as its manifests name them. */
    readonly host: string;
    readonly owner: string;
    /** Sequence and term of the manifest to replace, the newest when the run read it; 0 without one. */
    readonly replaced: {
        readonly seq: number;
        readonly term: number;
    };
    /** Generation of the abandoned journal; 0 for none. */
    readonly generation: number;
    /**
     * Records lost with journals that were replaced before, of the replaced manifest by {@link finalFallbacks}, and with
     * this one, oldest first.
     */
    readonly fallbacks: readonly Fallback[];
    /** The last rewind that the state has gone through; that of the run itself if it is one. */
    readonly rewind?: PassedRewind | undefined;
    /** Whether the abandoned journal stays readable, with its snapshots. A journal in memory never does. */
    readonly keepsPast: boolean;
}
/** A shard that goes on under a new generation. */
export interface ContinuedShard {
    readonly shard: number;
    /** The new generation. */
    readonly generation: number;
    /** Records lost with each journal that was abandoned, the newest journal last. */
    readonly fallbacks: readonly Fallback[];
}
/**
 * Lets a shard go on from a state under the next generation, as described above. Removes no snapshot: the owner that
 * takes the shard over removes those that are not needed any more.
 * @throws NOT_OWNER if somebody else has written a manifest since; nothing has changed then; NO_SPACE.
 */
export declare function continueShard(deps: ContinueDeps, to: Continuation): Promise<ContinuedShard>;
/**
 * Completes a continuation that was interrupted once its deciding manifest was stored: steps 3 to 5, for which the
 * state need not be in memory. Until then the abandoned journals take records, unless a host takes the shard over.
 * @returns the newest manifest; `newest` itself if the continuation is complete.
 * @throws NOT_OWNER if somebody else has written a manifest since; SNAPSHOT_DAMAGED; NO_SPACE.
 */
export declare function completeContinuation(deps: Pick<ContinueDeps, "journal" | "storage"> & {
    readonly store: Pick<SnapshotStore, "read" | "commit">;
}, newest: StoredManifest, by: Pick<ManifestHeader, "host" | "owner">): Promise<StoredManifest>;
/**
 * Computes the records lost with each journal, from the one of a state to the newest. `from` is the state's position,
 * `lastSeq` the last record known of the newest journal.
 */
export declare function journalLosses(from: Position, newest: {
    readonly generation: number;
    readonly fallbacks: readonly Fallback[];
} | undefined, { generation, lastSeq }: {
    readonly generation: number;
    readonly lastSeq: number;
}): Fallback[];
//# sourceMappingURL=next-generation.d.ts.map