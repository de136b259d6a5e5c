import type { NatsConnection } from "@nats-io/transport-node";
import { type AdminConnectionOptions, type JobAdmin } from "../client/admin/job-admin.ts";
import type { Client } from "../client/client.ts";
import type { CliContext } from "./context.ts";
import { type JobFlags, type TrainerFlags } from "./options/connection-options.ts";
/**
 * Default of `--timeout` in commands that change what the broker stores of a job: the longest wait for one
 * answer.
 */
export declare const STORE_TIMEOUT_MS = 30000;
/**
 * Runs `use` with a connection as hosts of the job have one, for the JetStream API, and the id of its inbox.
 * @throws NO_BROKER or DENIED if the broker cannot be used, NO_JETSTREAM if it has none; what `use` throws.
 */
export declare function withStore<T>(context: CliContext, flags: JobFlags, use: (connection: NatsConnection, host: string) => Promise<T>): Promise<T>;
/** Returns the settings with which a command connects to the broker of its job. */
export declare function adminConnection(context: CliContext, flags: JobFlags): AdminConnectionOptions;
/** Returns how long a command waits for the broker, in milliseconds. */
export declare function connectTimeoutMsOf({ environment }: CliContext, flags: JobFlags): number;
/** Makes an id that no other process of this machine has now; cuts a long name of the machine. */
export declare function commandId(machine?: string): string;
type JobStreams = import("../actors/job/open-job.ts").JobStreams;
/**
 * Runs `use` with the jobs that the broker holds.
 * @throws DENIED for a user who may not use the JetStream API; NO_BROKER, TIMEOUT; what `use` throws.
 */
export declare function withJobs<T>(context: CliContext, flags: JobFlags, use: (jobs: readonly JobStreams[], connection: NatsConnection) => T | Promise<T>): Promise<T>;
/**
 * Lists the names of the jobs that the broker holds.
 * @throws as {@link withJobs}.
 */
export declare function listJobs(context: CliContext, flags: JobFlags): Promise<string[]>;
/**
 * Runs `use` with questions to the hosts of a job, without joining it.
 * @throws NO_BROKER or DENIED if the broker cannot be used; what `use` throws.
 */
export declare function withAdmin<T>(context: CliContext, flags: TrainerFlags, use: (admin: JobAdmin) => Promise<T>): Promise<T>;
/**
 * Runs `use` with a client that has joined the job as a trainer.
 * @throws as `connect` does; what `use` throws.
 */
export declare function withTrainer<T>(context: CliContext, flags: TrainerFlags, use: (client: Client) => Promise<T>): Promise<T>;
export {};
//# sourceMappingURL=open-job.d.ts.map