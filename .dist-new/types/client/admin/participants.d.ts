import type { Fields } from "../../protocol/codec.ts";
import { type Synchronization } from "../../protocol/config/index.ts";
import type { MembersRecord } from "../../protocol/messages/host-records.ts";
import { type Fallback, type Position } from "../../protocol/messages/position.ts";
/** A host that is alive, with everything else that it reports of itself. */
interface ListedHost {
    readonly id: string;
    readonly shards: readonly number[];
    readonly [more: string]: unknown;
}
/**
 * A shard as its owner sees it, with everything else that the owner reports; `unowned` if no owner answers.
 * The functions below read the rest of the report.
 */
export interface ListedShard {
    readonly shard: number;
    readonly state: string;
    readonly [more: string]: unknown;
}
/** What a job's trainers have declared, and the quotas. */
export interface Declared {
    readonly parameters: number;
    /** Bytes of values and optimizer state. */
    readonly heldBytes: number;
    readonly [more: string]: unknown;
}
/** An archiver that follows a job, with everything else that it reports of itself. */
export interface ListedArchiver {
    readonly machine: string;
    readonly pid: number;
    /** Time of its last report, by its own clock, in milliseconds since 1970. */
    readonly writtenMs: number;
    /** By the shard's number, the last record that it has copied. */
    readonly shards: readonly {
        readonly record: Position;
    }[];
    readonly [more: string]: unknown;
}
/** Size of a job's tape in the broker. */
export interface ListedTape {
    readonly messages: number;
    readonly bytes: number;
}
/** Who takes part in a job. */
export interface Participants {
    readonly hosts: readonly ListedHost[];
    readonly trainers: readonly string[];
    readonly shards: readonly ListedShard[];
    readonly declared: Declared;
    /** Archivers that have registered themselves. */
    readonly archivers: readonly ListedArchiver[];
    /** Absent if the job has no tape, or the broker does not say. */
    readonly tape?: ListedTape;
    /** How the job's trainers keep step. */
    readonly synchronization: Synchronization;
    /** The members of steps; absent in a job whose trainers do not keep step. */
    readonly members?: ListedMembers;
}
/** The members of a job's steps. */
type ListedMembers = Omit<MembersRecord, "verb">;
/** @throws BAD_MESSAGE if the fields are not a valid reply to `hosts`. */
export declare function parseParticipants(fields: Fields): Participants;
/** Records of one trainer that changed nothing, in all shards together. */
export interface TrainerRejections {
    readonly trainer: string;
    /** Rejected records of its present session, less the applied ones. */
    readonly rejected: number;
    readonly unreadable: number;
}
/** What became of the records that change blocks. */
export interface UpdateCounts {
    /** Changes of blocks since their `init`, in all shards that report them. */
    readonly applied: number;
    /** Records rejected since the present owners serve their shards. */
    readonly rejected: number;
    /** Shards that do not serve or do not report: what was applied there is not known. */
    readonly silent: readonly number[];
}
/** Groups the shards that do not serve at the moment by their state. */
export declare function idleShards(shards: readonly ListedShard[]): Map<string, number[]>;
/** Lists the shards that lost records when their journal was replaced, with what they lost. */
export declare function fallenBack(shards: readonly ListedShard[]): {
    readonly shard: number;
    readonly fallbacks: readonly Fallback[];
}[];
/**
 * Lists the shards whose owners could not write the tape as they should, with their counts of such records.
 */
export declare function tapeGaps(shards: readonly ListedShard[]): {
    readonly shard: number;
    readonly undescribed: number;
    readonly leftOut: number;
}[];
/**
 * Returns the last step that has closed in every shard, and the last one that has closed in any: each shard
 * closes a step by itself. Undefined if no shard reports steps.
 */
export declare function closedSteps(shards: readonly ListedShard[]): {
    readonly everywhere: number;
    readonly anywhere: number;
} | undefined;
/** Adds up the updates of a job, as its shards report them; @throws BAD_MESSAGE if one is malformed. */
export declare function updatesOf(shards: readonly ListedShard[]): UpdateCounts;
/**
 * Adds up, for each trainer, the records that changed nothing, the most first. Each shard names only its
 * worst trainers.
 */
export declare function rejectionsByTrainer(shards: readonly ListedShard[]): TrainerRejections[];
/**
 * Counts the records that an archiver has not copied, of the shards that are served. Of a shard with a new
 * generation, only the records of that generation count.
 */
export declare function archiverLag({ shards: archived }: ListedArchiver, shards: readonly ListedShard[]): number;
export {};
//# sourceMappingURL=participants.d.ts.map