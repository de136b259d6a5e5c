import type { JetStreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { type JobSubjects, PserverError } from "../../protocol/index.ts";
import type { EtcdSpace } from "../etcd/etcd-space.ts";
import { type KvBucket, openBucket } from "../jetstream/kv-bucket.ts";
import { probeStorage } from "../jetstream/storage-probe.ts";
import { BrokerProbe } from "../leases/broker-probe.ts";
import { EtcdLeases } from "../leases/etcd-leases.ts";
import { KvLeases } from "../leases/kv-leases.ts";
import type { Leases } from "../leases/leases.ts";
import { ensureSnapshotStream } from "../snapshot/store.ts";
import { readTapeStorage, type TapeStorage } from "../tape/tape-store.ts";
import { leasesIn, type StoredSettings, type WantedSettings } from "./job-settings.ts";
import { settleSettings } from "./settle-settings.ts";

/** A job's settings, the bucket that holds its records, and its leases. */
export interface OpenedJob {
  readonly settings: StoredSettings;
  readonly bucket: KvBucket;
  /** When the bucket was made. */
  readonly created: string;
  readonly manager: JetStreamManager;
  readonly leases: Leases;
  /** Looks what the job's tape takes in the broker; undefined of a job without one. */
  readonly tapeStorage: () => Promise<TapeStorage | undefined>;
}

/** What a job is opened with. */
export interface JobOpening {
  readonly connection: NatsConnection;
  readonly manager: JetStreamManager;
  readonly subjects: JobSubjects;
  readonly wanted: WantedSettings;
  /** Where the leases are to be; without it in JetStream KV. */
  readonly etcd?: EtcdSpace | undefined;
}

/** The least time that the broker gets for one request about a lease. */
const LEASE_TIMEOUT_MS_MIN = 1_000;

/** The journal limit of a shard where the broker has space for it, and the least worth starting. */
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
    // For an existing job the number is in the settings, which are in the bucket.
    ...(wanted.replicas === undefined ? {} : { replicas: wanted.replicas }),
  });
  const settling = {
    bucket,
    job: subjects.job,
    findJournalBytes: (journal: "file" | "memory", shards: number) =>
      findJournalBytes(manager, subjects, journal, shards),
  };
  const settings = await settleSettings(settling, { ...wanted, leases: leasesIn(etcd) });
  const leases =
    etcd === undefined
      ? await openKvLeases(connection, subjects, settings)
      : openEtcdLeases(connection, etcd, settings.leaseMs);
  await ensureSnapshotStream(manager, subjects, settings.replicas);
  const tapeStorage = async (): Promise<TapeStorage | undefined> =>
    settings.tape ? await readTapeStorage(manager, subjects) : undefined;
  const created = await bucket.created();
  return { settings, bucket, created, manager, leases, tapeStorage };
}

/** How long one request about a lease may take: it must fail in time to be repeated. */
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
 * The largest limit of one journal, halving from the default, for which the broker has space on every shard.
 * @throws NO_SPACE if it has none for the least.
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
