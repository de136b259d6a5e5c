import type { NatsConnection } from "@nats-io/transport-node";
import type { Command } from "commander";
import type { Permissions } from "../../client/admin/job-admin.ts";
import { type ListedShard } from "../../client/admin/participants.ts";
import { type CliContext } from "../context.ts";
import type { TextFormat } from "../output/colors.ts";
/** Result of a check. `warn`: works, but not as it should; `skip`: this user may not do the check. */
type CheckStatus = "ok" | "warn" | "fail" | "skip";
/** One line of the doctor's report. */
export interface Check {
    readonly name: string;
    readonly status: CheckStatus;
    /** What was found. */
    readonly message: string;
    /** What to do about it; absent when all is well. */
    readonly advice?: string;
}
/** Checks the Node.js that runs this command; `needed` is the version of package.json's `engines`. */
export declare function checkNode(version: string, needed: readonly [number, number]): Check;
/** Reports the broker's version, which is new enough: else there is no connection to it. */
export declare function checkVersion(version: string): Check;
/** Checks the largest message that the broker accepts. */
export declare function checkMaxPayload(maxPayloadBytes: number): Check;
/** Checks whether the disk can still hold what is reserved on it. */
export declare function checkDiskSpace(freeBytes: number, streams: readonly StreamBytes[]): Check;
/** Checks whether every shard is served. */
export declare function checkShards(shards: readonly ListedShard[]): Check;
/**
 * Checks JetStream itself, the account's storage, what the job's journals hold and have reserved, and the
 * disk of the broker's `store` if that is named. The connection's user must be permitted to listen to its inbox.
 */
export declare function checkJetStream(connection: NatsConnection, job: string, timeoutMs: number, store?: string): Promise<Check[]>;
/** The bytes of one kind of storage. */
export interface StorageBytes {
    readonly usedBytes: number;
    /** The sum of all streams' limits. */
    readonly reservedBytes: number;
    /** Limit of the account; -1 if only the server's own limit counts. */
    readonly limitBytes: number;
}
/** Compares used bytes with the account's limit. */
export declare function checkStorage(name: string, bytes: StorageBytes): Check;
/** The bytes of one stream in files; a limit of 0 or less is none. */
interface StreamBytes {
    readonly name: string;
    readonly bytes: number;
    readonly limitBytes: number;
}
/** Checks how full the fullest journal is. */
export declare function checkJournals(job: string, journals: readonly StreamBytes[]): Check;
/**
 * Checks what the permissions allow. One role is enough: a host may have two users, and an observer need not be
 * a trainer. For a user without any, the report names what a trainer would need.
 */
export declare function checkPermissions({ roles, refused }: Permissions, trainer: string): Check[];
/** Adds the command `pserver doctor`, which checks what a job needs, and says what to do about the rest. */
export declare function registerDoctor(program: Command, context: CliContext): void;
/** Writes a check for people: what was found, and below it what to do. */
export declare function describeCheck({ name, status, message, advice }: Check, { paint, width }: TextFormat): string[];
export {};
//# sourceMappingURL=doctor.d.ts.map