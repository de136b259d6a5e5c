import type { NatsConnection } from "@nats-io/transport-node";
import type { Client } from "../../client/client.ts";
import { connect } from "../../client/connect.ts";
import { PserverError } from "../../protocol/errors.ts";
import { JobSubjects } from "../../protocol/subjects.ts";
import type { CliContext } from "../context.ts";
import { type JobFlags, type TrainerFlags, toOverrides } from "../options/connection-options.ts";
import { HostRequests } from "./host-requests.ts";
import { listJobs } from "./list-jobs.ts";
import { commandId, connectTimeoutMs, withBroker } from "./open-broker.ts";

/** Time for the broker to list jobs where that is only to help after an error. */
const CATALOG_TIMEOUT_MS = 2_000;

/** What a command asks with before it joins a job, if it does. */
export interface OpenJob {
  readonly connection: NatsConnection;
  readonly requests: HostRequests;
  /** The id that the command appears under. */
  readonly trainer: string;
}

/**
 * Runs `use` with questions to the hosts of a job, without joining it.
 * @throws NO_BROKER or DENIED if the broker cannot be used; what `use` throws.
 */
export async function withHosts<T>(
  context: CliContext,
  flags: TrainerFlags,
  use: (job: OpenJob) => Promise<T>,
): Promise<T> {
  const { signal } = context;
  const { job, timeout: timeoutMs } = flags;
  const trainer = flags.trainer ?? commandId();
  const inboxPrefix = new JobSubjects(job).inbox(trainer);
  try {
    return await withBroker(context, flags, { name: trainer, inboxPrefix }, async (connection) => {
      const requests = new HostRequests({ connection, job, trainer, timeoutMs, signal });
      return await use({ connection, requests, trainer });
    });
  } catch (error) {
    throw await namingOtherJobs(context, flags, error);
  }
}

/**
 * Runs `use` with a client that has joined the job as a trainer.
 * @throws as `connect` does; what `use` throws.
 */
export async function withTrainer<T>(
  context: CliContext,
  flags: TrainerFlags,
  use: (client: Client) => Promise<T>,
): Promise<T> {
  const client = await connect({
    ...toOverrides(flags),
    job: flags.job,
    trainer: flags.trainer ?? commandId(),
    timeoutMs: connectTimeoutMs(context, flags),
    signal: context.signal,
  }).catch(async (error: unknown) => {
    throw await namingOtherJobs(context, flags, error);
  });
  try {
    return await use(client);
  } finally {
    await client.close();
  }
}

/** The error, with the jobs that the broker holds if no host of the one that is meant answers. */
async function namingOtherJobs(
  context: CliContext,
  flags: JobFlags,
  error: unknown,
): Promise<unknown> {
  if (!(error instanceof PserverError) || error.code !== "NO_HOST") return error;
  try {
    const jobs = await listJobs(context, { ...flags, timeout: CATALOG_TIMEOUT_MS });
    const held = jobs.includes(flags.job)
      ? `the broker holds job ${flags.job}, but no host of it runs`
      : `the broker holds ${jobs.length === 0 ? "no job" : `these jobs: ${jobs.join(", ")}`}`;
    const details = { ...error.details, jobs };
    return new PserverError("NO_HOST", `${error.message}; ${held}`, details, { cause: error });
  } catch {
    // Users who may not use the JetStream API are told what they were told anyway.
    return error;
  }
}
