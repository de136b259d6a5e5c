import { PserverError } from "../../protocol/index.ts";
import { type ConnectionSettings } from "../../transport/connection.ts";
import { type StoredSettings } from "../job/job-settings.ts";
import { OwnersClient } from "../job/owners-client.ts";
import type { ContinuedShard } from "../journal/next-generation.ts";
import { type RecoveryStage } from "./accept-loss.ts";
import type { RecoveryChoice, ShardFindings } from "./findings.ts";
import { type EntryFindings } from "./inspect-entries.ts";
import { type RecoveryArchive } from "./inspect-snapshots.ts";
/** A shard as its next owner must serve it. */
interface ExpectedOwner {
    readonly shard: number;
    /** The lowest generation that counts. */
    readonly generation: number;
    /** Whether a host answered for the shard before, if only with an error. */
    readonly hadHost: boolean;
    readonly leaseMs: number;
    readonly signal: AbortSignal;
}
/** Returns how long running hosts may take to serve a shard again that goes on under a new generation. */
export declare function takeOverMs(leaseMs: number): number;
/**
 * Waits until a host serves a shard under a generation: hosts that run take it over again by themselves. Returns
 * undefined when one does, else why none does: NO_OWNER, soon, if no host answers for the shard at first and none did
 * before; the last error of its owner once no take-over has made progress for
 * {@link takeOverMs}.
 * @throws the reason of `signal`.
 */
export declare function awaitOwner(owners: Pick<OwnersClient, "ask">, expected: ExpectedOwner): Promise<PserverError | undefined>;
/** Options of {@link Recovery.open}. */
interface RecoveryOptions {
    /** Another source of states; the caller closes it. */
    readonly archive?: RecoveryArchive | undefined;
    /** Whether to make the job's bucket again if it is lost. */
    readonly makesBucket?: boolean;
}
/** Inspects the shards of a job and lets stopped ones go on without what is lost; see `pserver recover`. */
export declare class Recovery {
    #private;
    readonly settings: StoredSettings;
    private constructor();
    /**
     * Connects as a host does, without joining the job, which may have lost its settings.
     * @throws NO_BROKER, DENIED, NO_JETSTREAM, JETSTREAM_UNAVAILABLE, TIMEOUT; BAD_NAME if the broker holds no such
     * job; JOB_DAMAGED if its settings and their copy are lost, or if its bucket is lost and not to be made again.
     */
    static open(reach: ConnectionSettings, job: string, { archive, makesBucket }?: RecoveryOptions): Promise<Recovery>;
    /** Inspects the entries of the job's bucket; changes nothing. @throws as `inspectEntries`. */
    inspectEntries(): Promise<EntryFindings>;
    /** Writes entries again that have problems, and returns their keys. @throws as `repairEntries`. */
    repairEntries(findings: EntryFindings): Promise<string[]>;
    /** Inspects a shard; changes nothing. */
    inspect(shard: number): Promise<ShardFindings>;
    /** Continues a shard from a choice of the findings. @throws the errors of `acceptLoss`. */
    recover(findings: ShardFindings, choice: RecoveryChoice, onStage?: (stage: RecoveryStage) => void): Promise<ContinuedShard>;
    /**
     * Waits until a host serves a shard that was recovered; returns why none does, or undefined. Hosts count as
     * running if one answered for the shard when it was inspected: while it takes the shard over, none does.
     * @throws the reason of `signal`.
     */
    awaitOwner({ shard, generation }: ContinuedShard, signal: AbortSignal): Promise<PserverError | undefined>;
    /** Closes the connection. */
    close(): Promise<void>;
}
/** Returns the numbers of all shards of a job. */
export declare function allShards({ shards }: StoredSettings): number[];
export {};
//# sourceMappingURL=recovery.d.ts.map