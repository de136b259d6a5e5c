import type { NatsConnection } from "@nats-io/transport-node";
import type { StoredSettings } from "../../actors/job/job-settings.ts";
import { openStoredJob } from "../../actors/job/stored-job.ts";
import { ensureError } from "../../protocol/index.ts";

/** Settings of the other job that a fork takes over where they are known. */
export type KnownSettings = Partial<
  Omit<StoredSettings, "format" | "rules" | "leases" | "shards" | "synchronization">
>;

/** The settings of a job that the broker holds; none if it holds no such job. @throws DENIED, TIMEOUT, …. */
export async function knownSettings(
  connection: NatsConnection,
  job: string,
): Promise<KnownSettings> {
  try {
    const { settings } = await openStoredJob(connection, job);
    const { format: _format, rules: _rules, leases: _leases, ...rest } = settings;
    const { shards: _shards, synchronization: _synchronization, ...known } = rest;
    return known;
  } catch (error) {
    // A history may be all that is left of a job.
    if (ensureError(error).code === "BAD_NAME") return {};
    throw error;
  }
}
