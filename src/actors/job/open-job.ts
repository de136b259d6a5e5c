import type { JetStreamClient, JetStreamManager, StreamInfo } from "@nats-io/jetstream";
import { type NatsConnection, nanos } from "@nats-io/transport-node";
import {
  bucketStream,
  ensureError,
  JobSubjects,
  jobOfStream,
  PserverError,
} from "../../protocol/index.ts";
import { openJetStream } from "../../transport/jetstream.ts";
import { Journal } from "../journal/journal.ts";
import { type KvBucket, openBucket, openExistingBucket } from "../journal/kv-bucket.ts";
import { brokerCall, streamExists, unlessMissing } from "../journal/streams.ts";
import { readTapeStorage, type TapeStorage } from "../journal/tape/tape-store.ts";
import { EtcdLeases } from "./etcd-leases.ts";
import type { EtcdSpace } from "./etcd-space.ts";
import {
  forkIncomplete,
  hasRemovalFlag,
  isPendingFork,
  journalSettings,
  leasesIn,
  parseSettings,
  readSettings,
  requireSettings,
  type StoredSettings,
  settingsLost,
  settleSettings,
  type WantedSettings,
} from "./job-settings.ts";
import { BrokerProbe, KvLeases, type Leases } from "./leases.ts";
import { type ReplicaReport, reportReplicas } from "./replica-report.ts";
import { type UnfinishedRewind, unfinishedRewind } from "./rewind-plan.ts";
import { ensureSnapshots, readSettingsCopy } from "./settings-copy.ts";
import { findJournalBytes, LEASES_BYTES, openEntries } from "./storage-plan.ts";

/** A job's settings, the bucket that holds its entries, and its leases. */
export interface OpenedJob {
  readonly settings: StoredSettings;
  readonly bucket: KvBucket;
  /** When the bucket was made. */
  readonly created: string;
  /** Asks the broker when the bucket was made that it holds now; undefined if it holds none. */
  readonly madeNow: () => Promise<string | undefined>;
  readonly manager: JetStreamManager;
  readonly leases: Leases;
  /** Asks the broker how much the job's tape takes; undefined for a job without one. */
  readonly tapeStorage: () => Promise<TapeStorage | undefined>;
  /** Reads the rewind that is not complete, if there is one. */
  readonly unfinishedRewind: () => Promise<UnfinishedRewind | undefined>;
  /** Asks the broker for the copies of the job's streams; undefined for a job that asks for one. */
  readonly replicas: () => Promise<ReplicaReport | undefined>;
}

/** Options of {@link openJob}. */
export interface JobOpening {
  readonly connection: NatsConnection;
  readonly manager: JetStreamManager;
  readonly subjects: JobSubjects;
  readonly wanted: WantedSettings;
  /** Where the leases are to be; without it in JetStream KV. */
  readonly etcd?: EtcdSpace | undefined;
}

/** The shortest time that the broker gets for one request about a lease. */
const LEASE_TIMEOUT_MS_MIN = 1_000;

/**
 * Opens a job, which is made with the wanted settings if it does not exist.
 * @throws JOB_EXISTS if it exists with other settings than those wanted, NO_SPACE if the broker has no
 * space for it.
 */
export async function openJob(opening: JobOpening): Promise<OpenedJob> {
  const { connection, manager, subjects, wanted, etcd } = opening;
  // The settings of an existing job are in its bucket.
  const bucket = await openEntries(connection, subjects, wanted.replicas);
  const settling = {
    bucket,
    job: subjects.job,
    findJournalBytes: (journal: "file" | "memory", shards: number) =>
      findJournalBytes(manager, subjects, journal, shards),
    hasSnapshots: () => hasSnapshots(manager, subjects),
  };
  const placed = { ...wanted, leases: leasesIn(etcd) };
  const settings = await settleSettings(settling, placed);
  const leases =
    etcd === undefined
      ? await openKvLeases(connection, manager, subjects, settings)
      : openEtcdLeases(connection, etcd, settings.leaseMs);
  await ensureSnapshots(manager, subjects, settings);
  await requireSettings(bucket, subjects.job, placed);
  const tapeStorage = async (): Promise<TapeStorage | undefined> =>
    settings.tape ? await readTapeStorage(manager, subjects) : undefined;
  const replicas = async (): Promise<ReplicaReport | undefined> =>
    settings.replicas > 1
      ? reportReplicas(await streamsOfJob(manager, subjects.job), settings.replicas)
      : undefined;
  const created = await bucket.created();
  return {
    ...{ settings, bucket, created, manager, leases, tapeStorage, replicas },
    madeNow: () => madeNow(manager, bucketStream(subjects.bucket())),
    unfinishedRewind: () => unfinishedRewind(manager, subjects, bucket),
  };
}

async function madeNow(manager: JetStreamManager, stream: string): Promise<string | undefined> {
  return await brokerCall(`looking for the stream ${stream}`, { stream }, async () => {
    return (await unlessMissing(() => manager.streams.info(stream)))?.created;
  });
}

/**
 * Whether the broker holds snapshots of a job. A host that joined a job while it was removed may have left their stream
 * without any.
 */
async function hasSnapshots(manager: JetStreamManager, subjects: JobSubjects): Promise<boolean> {
  const stream = subjects.snapshotStream();
  return await brokerCall(`looking for the stream ${stream}`, { stream }, async () => {
    const info = await unlessMissing(() => manager.streams.info(stream));
    return info !== undefined && info.state.last_seq > 0;
  });
}

/** Returns how long one request about a lease may take: it must fail in time to be repeated. */
export function leaseTimeoutMs(leaseMs: number): number {
  return Math.max(LEASE_TIMEOUT_MS_MIN, leaseMs / 3);
}

function openEtcdLeases(connection: NatsConnection, etcd: EtcdSpace, leaseMs: number): Leases {
  const timeoutMs = leaseTimeoutMs(leaseMs);
  etcd.client.limit(timeoutMs);
  const probe = new BrokerProbe(connection, timeoutMs);
  return new EtcdLeases(etcd.client, etcd.keys.leases, leaseMs, probe);
}

/**
 * Opens the bucket of leases. One that a host has left which joined a former job of the name is kept as that job said:
 * then it is kept from now on as this one says.
 */
async function openKvLeases(
  connection: NatsConnection,
  manager: JetStreamManager,
  subjects: JobSubjects,
  { leaseMs, replicas }: StoredSettings,
): Promise<Leases> {
  const bucket = subjects.leaseBucket();
  const timeoutMs = leaseTimeoutMs(leaseMs);
  const open = (): Promise<KvBucket> =>
    openBucket({
      ...{ connection, bucket, storage: "file", replicas, ttlMs: leaseMs, timeoutMs },
      bytesMax: LEASES_BYTES,
    });
  try {
    return new KvLeases(await open());
  } catch (error) {
    if (ensureError(error).code !== "JOB_EXISTS") throw error;
  }
  const stream = bucketStream(bucket);
  await brokerCall(`configuring the stream ${stream}`, { stream }, () =>
    manager.streams.update(stream, { max_age: nanos(leaseMs), num_replicas: replicas }),
  );
  return new KvLeases(await open());
}

/** The streams of one job on a broker: journals, snapshots and buckets. */
export interface JobStreams {
  readonly job: string;
  readonly streams: readonly StreamInfo[];
}

/**
 * Lists the jobs on a broker, by name, each with its streams.
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

/** Lists the streams of one job; none if there is no such job. @throws as {@link listJobStreams}, and BAD_NAME. */
export async function streamsOfJob(manager: JetStreamManager, job: string): Promise<StreamInfo[]> {
  // Throws for a name that no job can have.
  const { job: name } = new JobSubjects(job);
  const jobs = await listJobStreams(manager);
  return [...(jobs.find((listed) => listed.job === name)?.streams ?? [])];
}

/** Makes the error for a broker that holds no job of this name. */
export function noSuchJob(job: string): PserverError {
  const message = `the broker holds no job ${job}: list its jobs with "pserver jobs"`;
  return new PserverError("BAD_NAME", message, { job });
}

/** A job that the broker holds, whether hosts serve it or not. */
export interface StoredJob {
  readonly subjects: JobSubjects;
  readonly client: JetStreamClient;
  readonly manager: JetStreamManager;
  readonly bucket: KvBucket;
  readonly settings: StoredSettings;
  readonly journalOf: (shard: number) => Journal;
}

/**
 * Opens a job that exists, without joining it; the connection stays the caller's.
 * @throws BAD_NAME if the broker holds no such job, JOB_DAMAGED if its settings are damaged or lost, JOB_EXISTS if it is
 * a fork that is not complete; NO_JETSTREAM, JETSTREAM_UNAVAILABLE, DENIED, TIMEOUT if an answer takes longer than
 * `timeoutMs`, 5 s by default.
 */
export async function openStoredJob(
  connection: NatsConnection,
  job: string,
  timeoutMs?: number,
): Promise<StoredJob> {
  const stored = await openAnyJob(connection, job, timeoutMs);
  if (stored.problem !== undefined) throw stored.problem;
  return stored;
}

/** A job whose settings may be damaged or lost. */
export interface AnyStoredJob extends StoredJob {
  /** What is wrong with its settings, in place of which it has those of their copy; undefined if nothing is. */
  readonly problem?: PserverError;
  /** Its settings, or their copy, as the entry holds them. */
  readonly settingsEntry: unknown;
  /** Whether it has no bucket: then every method of `bucket` throws JETSTREAM_UNAVAILABLE. */
  readonly lacksBucket: boolean;
}

/**
 * Opens a job as {@link openStoredJob} does, also one whose settings are damaged or lost.
 * @throws as {@link openStoredJob}; JOB_DAMAGED only if there is no copy of the settings that can be read, either.
 */
export async function openAnyJob(
  connection: NatsConnection,
  job: string,
  timeoutMs?: number,
): Promise<AnyStoredJob> {
  const subjects = new JobSubjects(job);
  const client = openJetStream(connection, timeoutMs);
  const manager = await client.jetstreamManager(false);
  const name = subjects.bucket();
  const stream = bucketStream(name);
  const exists = await brokerCall(`looking for the stream ${stream}`, { stream }, () =>
    streamExists(manager, stream),
  );
  const bucket = await openExistingBucket(connection, name, timeoutMs);
  const found = exists ? await readSettings(bucket) : undefined;
  if (found === undefined && !(await hasSnapshots(manager, subjects))) throw noSuchJob(job);
  const problem = found === undefined ? settingsLost(job) : found.problem;
  const stored = problem === undefined ? found?.value : await readSettingsCopy(manager, subjects);
  if (stored === undefined) throw problem ?? settingsLost(job);
  if (hasRemovalFlag(stored)) throw noSuchJob(job);
  if (isPendingFork(stored)) throw forkIncomplete(job);
  const settings = parseSettings(stored);
  const journalOf = (shard: number): Journal =>
    new Journal({ manager, client, subjects, settings: journalSettings(settings), shard });
  const opened = { subjects, client, manager, bucket, settings, journalOf };
  return { ...opened, settingsEntry: stored, lacksBucket: !exists, ...(problem && { problem }) };
}
