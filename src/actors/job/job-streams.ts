import type { JetStreamManager, StreamInfo } from "@nats-io/jetstream";
import { JobSubjects, jobOfStream, PserverError } from "../../protocol/index.ts";
import { brokerCall } from "../jetstream/broker-call.ts";

/** The streams of one job on a broker: journals, snapshots and buckets. */
export interface JobStreams {
  readonly job: string;
  readonly streams: readonly StreamInfo[];
}

/**
 * The jobs on a broker, by name, each with its streams.
 * @throws DENIED for a user who may not list streams; NO_JETSTREAM, TIMEOUT, ….
 */
export async function listJobStreams(manager: JetStreamManager): Promise<JobStreams[]> {
  const found = new Map<string, StreamInfo[]>();
  await brokerCall("listing the streams of the broker", {}, async () => {
    for await (const info of manager.streams.list()) {
      const job = jobOfStream(info.config.name);
      if (job !== undefined) found.set(job, [...(found.get(job) ?? []), info]);
    }
  });
  return [...found]
    .map(([job, streams]) => ({ job, streams }))
    .sort((a, b) => (a.job < b.job ? -1 : 1));
}

/** The streams of one job; none if there is no such job. @throws as {@link listJobStreams}, and BAD_NAME. */
export async function streamsOfJob(manager: JetStreamManager, job: string): Promise<StreamInfo[]> {
  // Throws for a name that no job can have.
  const { job: name } = new JobSubjects(job);
  const jobs = await listJobStreams(manager);
  return [...(jobs.find((listed) => listed.job === name)?.streams ?? [])];
}

/** The error if the broker does not hold a job of this name. */
export function noSuchJob(job: string): PserverError {
  const message = `the broker holds no job ${job}: list its jobs with "pserver jobs"`;
  return new PserverError("BAD_NAME", message, { job });
}
