import type { JobAdmin } from "../../client/admin/job-admin.ts";
import { openAdmin } from "../../client/admin/open-admin.ts";
import type { Client } from "../../client/client.ts";
import { connect } from "../../client/wire/connect.ts";
import { PserverError } from "../../protocol/errors.ts";
import type { CliContext } from "../context.ts";
import { type JobFlags, type TrainerFlags, toOverrides } from "../options/connection-options.ts";
import { listJobs } from "./list-jobs.ts";
import { adminConnection, commandId, connectTimeoutMsOf } from "./open-broker.ts";

/** Time for the broker to list its jobs, which only adds to an error message. */
const CATALOG_TIMEOUT_MS = 2_000;

/**
 * Runs `use` with questions to the hosts of a job, without joining it.
 * @throws NO_BROKER or DENIED if the broker cannot be used; what `use` throws.
 */
export async function withAdmin<T>(
  context: CliContext,
  flags: TrainerFlags,
  use: (admin: JobAdmin) => Promise<T>,
): Promise<T> {
  try {
    const admin = await openAdmin({
      ...adminConnection(context, flags),
      trainer: flags.trainer ?? commandId(),
      timeoutMs: flags.timeout,
    });
    return await use(admin).finally(() => admin.close());
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
    timeoutMs: connectTimeoutMsOf(context, flags),
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

/** The error; for NO_HOST with the jobs that the broker holds added. */
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
    // A user who may not use the JetStream API gets the error as it was.
    return error;
  }
}
