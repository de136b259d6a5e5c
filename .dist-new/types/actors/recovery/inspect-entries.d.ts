import { type ShardKnowledge } from "../../protocol/index.ts";
import type { EntryProblem } from "../../protocol/messages/shard-knowledge.ts";
import type { Owners } from "../job/owners-client.ts";
import type { KvBucket, KvEntry } from "../journal/kv-bucket.ts";
import { type Lifecycle } from "../lifecycle/machine.ts";
import { type Members } from "../lifecycle/members.ts";
import { type Parameter } from "../lifecycle/parameter.ts";
/** The entries of a job's bucket, without those that cannot be read. */
declare class SoundEntries {
    job: Lifecycle;
    members: Members;
    given: number;
    swept: number;
    /** The highest session in a trainer's entry. */
    trainersUpTo: number;
    /** By name. */
    readonly parameters: Map<string, Parameter>;
    /** Takes an entry. @throws JOB_DAMAGED, BAD_VERSION if it is not one that this program writes. */
    take(key: string, stored: KvEntry): void;
}
/** What was found out about the entries of a job's bucket. */
export interface EntryFindings {
    /** Entries that are damaged, lost or older than what the shards know; by key. */
    readonly problems: readonly EntryProblem[];
    /** Shards that could not be asked what they know. */
    readonly unasked: readonly number[];
    readonly known: ReadonlyMap<number, ShardKnowledge>;
    readonly sound: SoundEntries;
    /** Revision of the bucket before it was read. */
    readonly revision: number;
}
/**
 * Reads every entry of a job's bucket, and compares them with what the shards know whose owners answer; changes
 * nothing.
 * @throws TIMEOUT, JETSTREAM_UNAVAILABLE and the like if the broker does not answer.
 */
export declare function inspectEntries(bucket: Pick<KvBucket, "keys" | "read" | "lastRevision">, shards: readonly number[], ask: (shard: number) => Promise<ShardKnowledge | undefined>): Promise<EntryFindings>;
/** Reads the entries one by one; returns those that can be read, and what is wrong with the others by their keys. */
export declare function readSound(bucket: Pick<KvBucket, "keys" | "read">): Promise<{
    sound: SoundEntries;
    problems: Map<string, string>;
}>;
/** Asks the owner of a shard what it knows; undefined if none answers at once, or the shard has stopped. */
export declare function askKnown(owners: Pick<Owners, "known">, shard: number): Promise<ShardKnowledge | undefined>;
export {};
//# sourceMappingURL=inspect-entries.d.ts.map