import { type ContinueDeps, type ContinuedShard } from "../journal/next-generation.ts";
import type { WatermarkKeeper } from "../journal/watermark-keeper.ts";
import type { RecoveryChoice, ShardFindings } from "./findings.ts";
import { type InitializedBlock, type RecoveryArchive } from "./inspect-snapshots.ts";
import { type RebuildDeps } from "./rebuild-from-broker.ts";
/** Dependencies of {@link acceptLoss}. */
export type AcceptLossDeps = Omit<RebuildDeps & ContinueDeps, "watermark" | "onStage"> & {
    /** Name of whoever accepts the loss, for the manifest. */
    readonly host: string;
    /** Watermark of former owners. */
    readonly watermarks: Pick<WatermarkKeeper, "read">;
    /** The blocks that the shard must have. */
    readonly initialized: readonly InitializedBlock[];
    /** Undefined if none was named. */
    readonly archive: RecoveryArchive | undefined;
    /** Called after each stage. */
    readonly onStage?: (stage: RecoveryStage) => void;
};
/** Completed stage of a recovery. Before `committed`, the shard is unchanged. */
export type RecoveryStage = "loaded" | "folded" | "committed" | "opened";
/**
 * Continues a shard from the chosen state, under a new generation, so that positions stay unambiguous.
 * If an owner or another recovery has written a manifest since the inspection, nothing changes. If it is interrupted
 * once its manifest is stored, a host completes the rest.
 * @throws NOT_OWNER if somebody else has written a manifest since the inspection; SNAPSHOT_DAMAGED,
 * JOURNAL_DAMAGED if the chosen state can no longer be read; INCOMPLETE if blocks of initialized
 * parameters would be missing; NO_SPACE.
 */
export declare function acceptLoss(deps: AcceptLossDeps, findings: ShardFindings, choice: RecoveryChoice): Promise<ContinuedShard>;
//# sourceMappingURL=accept-loss.d.ts.map