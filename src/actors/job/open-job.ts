import type { JetStreamClient, JetStreamManager, StreamInfo } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { bucketStream, JobSubjects, jobOfStream, PserverError } from "../../protocol/index.ts";
import { openJetStream } from "../../transport/jetstream.ts";
import { Journal } from "../journal/journal.ts";
import { type KvBucket, openBucket, openExistingBucket } from "../journal/kv-bucket.ts";
import { ensureSnapshotStream } from "../journal/snapshot-store.ts";
import { brokerCall, probeStorage, streamExists } from "../journal/streams.ts";
import { readTapeStorage, type TapeStorage } from "../journal/tape/tape-writer.ts";
import { EtcdLeases } from "./etcd-leases.ts";
import type { EtcdSpace } from "./etcd-space.ts";
import {
  forkIncomplete,
  hasRemovalFlag,
  isPendingFork,
  journalSettings,
  leasesIn,
  parseSettings,
  SETTINGS_KEY,
  type StoredSettings,
  settingsLost,
  settleSettings,
  type WantedSettings,
} from "./job-settings.ts";
import { BrokerProbe, KvLeases, type Leases } from "./leases.ts";
import { type ReplicaReport, reportReplicas } from "./replica-report.ts";
import { type UnfinishedRewind, unfinishedRewind } from "./rewind-plan.ts";

/** A job's settings, the bucket that holds its entries, and its leases. */
export interface OpenedJob {
  readonly settings: StoredSettings;
  readonly bucket: KvBucket;
  /** When the bucket was made. */
  readonly created: string;
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

/** The journal limit of a shard where the broker has space for it, and the lowest with which a job is made. */
const JOURNAL_BYTES_MAX = { file: 2 * 1024 ** 3, memory: 256 * 1024 ** 2 } as const;
const JOURNAL_BYTES_MIN = 16 * 1024 ** 2;

/** The share of the broker's space that journals may take; snapshots need the rest. */
const JOURNAL_SHARE = 0.6;

/**
 * Opens a job, which is made with the wanted settings if it does not exist.
 * @throws JOB_EXISTS if it exists with other settings than those wanted, NO_SPACE if the broker has no
 * space for it.
 */
export async function openJob(opening: JobOpening): Promise<OpenedJob> {
  const { connection, manager, subjects, wanted, etcd } = opening;
  const bucket = await openBucket({
    connection,
    bucket: subjects.bucket(),
    storage: "file",
    // The number of shards of an existing job is in its settings, which are in the bucket.
    ...(wanted.replicas === undefined ? {} : { replicas: wanted.replicas }),
  });
  const settling = {
    bucket,
    job: subjects.job,
    findJournalBytes: (journal: "file" | "memory", shards: number) =>
      findJournalBytes(manager, subjects, journal, shards),
    hasSnapshots: () => hasSnapshots(manager, subjects),
  };
  const settings = await settleSettings(settling, { ...wanted, leases: leasesIn(etcd) });
  const leases =
    etcd === undefined
      ? await openKvLeases(connection, subjects, settings)
      : openEtcdLeases(connection, etcd, settings.leaseMs);
  await ensureSnapshotStream(manager, subjects, settings.replicas);
  const tapeStorage = async (): Promise<TapeStorage | undefined> =>
    settings.tape ? await readTapeStorage(manager, subjects) : undefined;
  const replicas = async (): Promise<ReplicaReport | undefined> =>
    settings.replicas > 1
      ? reportReplicas(await streamsOfJob(manager, subjects.job), settings.replicas)
      : undefined;
  const created = await bucket.created();
  return {
    ...{ settings, bucket, created, manager, leases, tapeStorage, replicas },
    unfinishedRewind: () => unfinishedRewind(manager, subjects, bucket),
  };
}

/** Whether the broker holds the stream of a job's snapshots. */
async function hasSnapshots(manager: JetStreamManager, subjects: JobSubjects): Promise<boolean> {
  const stream = subjects.snapshotStream();
  return await brokerCall(`looking for the stream ${stream}`, { stream }, () =>
    streamExists(manager, stream),
  );
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

async function openKvLeases(
  connection: NatsConnection,
  subjects: JobSubjects,
  { leaseMs, replicas }: StoredSettings,
): Promise<Leases> {
  const bucket = await openBucket({
    connection,
    bucket: subjects.leaseBucket(),
    storage: "file",
    replicas,
    ttlMs: leaseMs,
    timeoutMs: leaseTimeoutMs(leaseMs),
  });
  return new KvLeases(bucket);
}

/**
 * Returns the largest limit of one journal, halving from the default, for which the broker has space on every shard.
 * @throws NO_SPACE if it has none for the lowest.
 */
export async function findJournalBytes(
  manager: JetStreamManager,
  subjects: JobSubjects,
  storage: "file" | "memory",
  shards: number,
): Promise<number> {
  for (let bytes: number = JOURNAL_BYTES_MAX[storage]; bytes >= JOURNAL_BYTES_MIN; bytes /= 2) {
    const needed = Math.ceil((bytes * shards) / JOURNAL_SHARE);
    if (await probeStorage(manager, subjects, storage, needed)) return bytes;
  }
  throw new PserverError(
    "NO_SPACE",
    `the broker has no space for ${shards} journals of ${JOURNAL_BYTES_MIN} bytes`,
    { expected: shards * JOURNAL_BYTES_MIN },
  );
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
 * @throws BAD_NAME if the broker holds no such job, JOB_DAMAGED if its settings are lost, JOB_EXISTS if it is a fork that
 * is not complete; NO_JETSTREAM, JETSTREAM_UNAVAILABLE, DENIED, TIMEOUT.
 */
export async function openStoredJob(connection: NatsConnection, job: string): Promise<StoredJob> {
  const subjects = new JobSubjects(job);
  const client = openJetStream(connection);
  const manager = await client.jetstreamManager(false);
  const name = subjects.bucket();
  const stream = bucketStream(name);
  const exists = await brokerCall(`looking for the stream ${stream}`, { stream }, () =>
    streamExists(manager, stream),
  );
  const absent = async (): Promise<PserverError> =>
    (await hasSnapshots(manager, subjects)) ? settingsLost(job) : noSuchJob(job);
  if (!exists) throw await absent();
  const bucket = await openExistingBucket(connection, name);
  const stored = (await bucket.read(SETTINGS_KEY))?.value;
  if (stored === undefined) throw await absent();
  if (hasRemovalFlag(stored)) throw noSuchJob(job);
  if (isPendingFork(stored)) throw forkIncomplete(job);
  const settings = parseSettings(stored);
  const journalOf = (shard: number): Journal =>
    new Journal({ manager, client, subjects, settings: journalSettings(settings), shard });
  return { subjects, client, manager, bucket, settings, journalOf };
}
