import type { JetStreamClient, JetStreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { bucketStream, JobSubjects } from "../../protocol/index.ts";
import { openJetStream } from "../../transport/jetstream.ts";
import { brokerCall } from "../jetstream/broker-call.ts";
import { type KvBucket, openExistingBucket } from "../jetstream/kv-bucket.ts";
import { streamExists } from "../jetstream/streams.ts";
import { Journal } from "../journal/journal.ts";
import {
  hasRemovalMark,
  journalSettings,
  parseSettings,
  SETTINGS_KEY,
  type StoredSettings,
} from "./job-settings.ts";
import { noSuchJob } from "./job-streams.ts";

/** A job that the broker holds, whether hosts serve it or not. */
export interface StoredJob {
  readonly subjects: JobSubjects;
  readonly client: JetStreamClient;
  readonly manager: JetStreamManager;
  readonly records: KvBucket;
  readonly settings: StoredSettings;
  readonly journalOf: (shard: number) => Journal;
}

/**
 * Opens a job that exists, without joining it; the connection stays the caller's.
 * @throws BAD_NAME if the broker holds no such job; NO_JETSTREAM, JETSTREAM_UNAVAILABLE, DENIED, TIMEOUT.
 */
export async function openStoredJob(connection: NatsConnection, job: string): Promise<StoredJob> {
  const subjects = new JobSubjects(job);
  const client = openJetStream(connection);
  const manager = await client.jetstreamManager(false);
  const bucket = subjects.bucket();
  const stream = bucketStream(bucket);
  const exists = await brokerCall(`looking for the stream ${stream}`, { stream }, () =>
    streamExists(manager, stream),
  );
  if (!exists) throw noSuchJob(job);
  const records = await openExistingBucket(connection, bucket);
  const stored = (await records.read(SETTINGS_KEY))?.value;
  if (stored === undefined || hasRemovalMark(stored)) throw noSuchJob(job);
  const settings = parseSettings(stored);
  const journalOf = (shard: number): Journal =>
    new Journal({ manager, client, subjects, settings: journalSettings(settings), shard });
  return { subjects, client, manager, records, settings, journalOf };
}
