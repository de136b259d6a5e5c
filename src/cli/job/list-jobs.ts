import type { NatsConnection } from "@nats-io/transport-node";
import type { CliContext } from "../context.ts";
import type { JobFlags } from "../options/connection-options.ts";
import { withStore } from "./open-broker.ts";

type JobStreams = import("../../actors/job/job-streams.ts").JobStreams;

/**
 * Runs `use` with the jobs that the broker holds.
 * @throws DENIED for a user who may not use the JetStream API; NO_BROKER, TIMEOUT; what `use` throws.
 */
export async function withJobs<T>(
  context: CliContext,
  flags: JobFlags,
  use: (jobs: readonly JobStreams[], connection: NatsConnection) => T | Promise<T>,
): Promise<T> {
  // Loaded here, so that other commands start faster.
  const { openJetStream } = await import("../../transport/jetstream.ts");
  const { listJobStreams } = await import("../../actors/job/job-streams.ts");
  return await withStore(context, flags, async (connection) => {
    const client = openJetStream(connection, flags.timeout);
    return await use(await listJobStreams(await client.jetstreamManager(false)), connection);
  });
}

/** The names of the jobs that the broker holds; @throws as {@link withJobs}. */
export async function listJobs(context: CliContext, flags: JobFlags): Promise<string[]> {
  return await withJobs(context, flags, (jobs) => jobs.map(({ job }) => job));
}
