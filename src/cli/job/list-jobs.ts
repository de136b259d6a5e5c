import type { CliContext } from "../context.ts";
import type { JobFlags } from "../options/connection-options.ts";
import { withStore } from "./open-broker.ts";

/**
 * The names of the jobs that the broker holds.
 * @throws DENIED for a user who may not use the JetStream API; NO_BROKER, TIMEOUT.
 */
export async function listJobs(context: CliContext, flags: JobFlags): Promise<string[]> {
  // Loaded here, so that the other commands start without it.
  const { jetstream } = await import("@nats-io/jetstream");
  const { listJobStreams } = await import("../../actors/catalog/job-streams.ts");
  return await withStore(context, flags, async (connection) => {
    const client = jetstream(connection, { timeout: flags.timeout });
    const jobs = await listJobStreams(await client.jetstreamManager(false));
    return jobs.map(({ job }) => job);
  });
}
