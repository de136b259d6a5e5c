import type { JetStreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { type JobSubjects, type Position, PserverError } from "../../protocol/index.ts";
import type { Journal } from "../journal/journal.ts";
import type { StoredManifest } from "../journal/manifest.ts";
import { type LoadedShard, type SnapshotStore } from "../journal/snapshot-store.ts";
import { type Watermark } from "../journal/watermark.ts";
import type { FailedRecord, FoundRest, RecoveryChoice } from "./findings.ts";
import { type InitializedBlock } from "./inspect-snapshots.ts";
/** Dependencies of {@link rebuildFromBroker}. */
export interface RebuildDeps {
    readonly shard: number;
    readonly subjects: JobSubjects;
    readonly store: SnapshotStore;
    readonly journal: Journal;
    /** The last watermark of an owner of the shard. */
    readonly watermark: Watermark | undefined;
    readonly connection: NatsConnection;
    readonly manager: JetStreamManager;
    readonly inboxPrefix: string;
    readonly payloadBytesMax: number;
    readonly onStage?: (stage: "loaded") => void;
}
/** A state that the broker's snapshots and journal give. */
export type WantedState = Pick<RecoveryChoice, "from" | "generation" | "seq" | "without">;
/**
 * Rebuilds a state: loads its snapshot, if it has one, and folds the records of the journal up to the last one of the
 * state, unless the snapshot alone is wanted.
 * @throws SNAPSHOT_DAMAGED; JOURNAL_DAMAGED if a record is missing or has changed; UNKNOWN_RULES, TOO_LARGE,
 * FOLD_FAILED as the fold; TIMEOUT after a minute without a record.
 */
export declare function rebuildFromBroker(deps: RebuildDeps, wanted: WantedState, base: StoredManifest | undefined): Promise<LoadedShard>;
/**
 * Finds out what a journal up to a record gives without `failed`, and without further records that this process
 * cannot fold. To find each of them, the journal is folded from the start again.
 * @throws TIMEOUT and the like if the broker does not answer.
 */
export declare function findRest(deps: RebuildDeps & {
    readonly initialized: readonly InitializedBlock[];
}, failed: FailedRecord, { generation, seq }: Position, base: StoredManifest | undefined): Promise<FoundRest>;
/** Returns the record that an error of a fold names; undefined for another error. */
export declare function failedRecord({ code, details }: PserverError): FailedRecord | undefined;
//# sourceMappingURL=rebuild-from-broker.d.ts.map