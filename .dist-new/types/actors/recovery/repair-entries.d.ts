import type { EntryProblem } from "../../protocol/messages/shard-knowledge.ts";
import type { Owners } from "../job/owners-client.ts";
import { type KvBucket } from "../journal/kv-bucket.ts";
import type { EntryFindings } from "./inspect-entries.ts";
/** Dependencies of {@link repairEntries}. */
export interface RepairDeps {
    readonly bucket: KvBucket;
    readonly owners: Pick<Owners, "check" | "trainers" | "reserveSpace">;
    /** What the job's settings are, or were when they could be read last, as their entry holds them. */
    readonly settingsEntry: unknown;
}
/**
 * Writes the entries again that have problems, from what the shards know: whoever was initialized is so again. An
 * entry that somebody has written since the findings stays as it is. Entries of trainers and archivers, and the plan of
 * a rewind, which no shard knows, are removed; so is the counter of block numbers, which the parameters tell. Shards' marks stay: see `acceptLoss`. No host serves a shard without the
 * job's settings: where these have a problem and shards could not be asked, nothing but these is written.
 * @returns the keys of what was written or removed, in that order.
 * @throws NO_OWNER if a shard could not be asked; NO_SPACE; as {@link requireReadable}.
 */
export declare function repairEntries(deps: RepairDeps, findings: EntryFindings): Promise<string[]>;
/**
 * Removes whatever was written under a key up to a revision, also what cannot be read; returns false if somebody else
 * has written since.
 */
export declare function discard(bucket: Pick<KvBucket, "overwrite" | "remove">, key: string, upToRevision: number): Promise<boolean>;
/**
 * Checks that the broker can read what is stored. It cuts its file off at what it cannot read whenever it builds its
 * index again, and would lose what is written now.
 * @throws JOB_DAMAGED naming the entries, and what to do.
 */
export declare function requireReadable(problems: readonly EntryProblem[]): void;
/** Whether {@link repairEntries} writes or removes this entry. */
export declare function isRepairable(key: string): boolean;
//# sourceMappingURL=repair-entries.d.ts.map