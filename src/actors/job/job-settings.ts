import type { JetStreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import {
  asMap,
  integerField,
  type JobSubjects,
  LEASE_MS,
  PserverError,
  SHARDS_DEFAULT,
  SHARDS_MAX,
  type Synchronization,
  synchronizationText,
  textField,
  toSynchronization,
} from "../../protocol/index.ts";
import type { EtcdSpace } from "../etcd/etcd-space.ts";
import { CURRENT_RULES, KNOWN_RULES } from "../fold/rules.ts";
import { openRecords, type Records } from "../jetstream/kv-bucket.ts";
import { hasRoom } from "../jetstream/storage-probe.ts";
import type { JournalSettings } from "../journal/journal.ts";
import { BrokerBoundLeases, BrokerProbe } from "../leases/broker-bound-leases.ts";
import { EtcdLeases } from "../leases/etcd-leases.ts";
import { type Leases, RecordLeases } from "../leases/leases.ts";
import { ensureSnapshotStream } from "../snapshot/store.ts";
import { newQuotas, parseQuotas, type Quotas } from "./quotas.ts";

/** What is settled when a job is made and never changes; in KV as plain JSON. */
export interface StoredSettings extends Quotas {
  /** 1 of jobs that have no rules in their settings: hosts of before do not know those of others. */
  readonly format: 1 | 2;
  /** Version of the rules that all journals begin with. */
  readonly rules: number;
  readonly shards: number;
  readonly journal: "file" | "memory";
  readonly leaseMs: number;
  /** Where the leases are: `kv`, or `etcd` and the identity of the one that holds them. */
  readonly leases: string;
  /** The most bytes of one shard's journal. */
  readonly journalBytesMax: number;
  readonly replicas: number;
  /** How the trainers keep step. */
  readonly synchronization: Synchronization;
}

/** What a host asks for; where it asks for nothing, the job's settings or defaults hold. */
export type WantedSettings = Partial<Omit<StoredSettings, "format" | "rules" | "leases">>;

/** What is asked for with where the leases are, which no host leaves open. */
type Wanted = WantedSettings & Pick<StoredSettings, "leases">;

/** A job's settings, the bucket that holds its records, and its leases. */
export interface OpenedJob {
  readonly settings: StoredSettings;
  readonly records: Records;
  readonly leases: Leases;
}

/** The least time that the broker gets for one request about a lease. */
const LEASE_TIMEOUT_MS_MIN = 1_000;

/** The leases of a job that uses no etcd. */
export const LEASES_IN_KV = "kv";

/** Key of the settings in the job's bucket. */
export const SETTINGS_KEY = "settings";

/** The journal limit of a shard where the broker has room for it, and the least worth starting. */
const JOURNAL_BYTES_MAX = { file: 2 * 1024 ** 3, memory: 256 * 1024 ** 2 } as const;
const JOURNAL_BYTES_MIN = 16 * 1024 ** 2;

/** The share of the broker's room that journals may take; snapshots need the rest. */
const JOURNAL_SHARE = 0.6;

/**
 * Opens a job, which is made with the wanted settings if it does not exist.
 * @throws JOB_EXISTS if it exists with other settings than those asked for, NO_SPACE if the
 * broker has no room for it.
 */
export async function openJob(options: {
  readonly connection: NatsConnection;
  readonly manager: JetStreamManager;
  readonly subjects: JobSubjects;
  readonly wanted: WantedSettings;
  /** Where the leases are to be; without it in JetStream KV. */
  readonly etcd?: EtcdSpace | undefined;
}): Promise<OpenedJob> {
  const { connection, manager, subjects, etcd } = options;
  const wanted: Wanted = { ...options.wanted, leases: leasesIn(etcd) };
  const records = await openRecords({
    connection,
    bucket: subjects.bucket(),
    storage: "file",
    // Of a job that exists the settings in the bucket say how many.
    ...(wanted.replicas === undefined ? {} : { replicas: wanted.replicas }),
  });
  const settings = await settle(records, manager, subjects, wanted);
  const leases =
    etcd === undefined
      ? await openKvLeases(connection, subjects, settings)
      : openEtcdLeases(connection, etcd, settings.leaseMs);
  await ensureSnapshotStream(manager, subjects, settings.replicas);
  return { settings, records, leases };
}

/** How the journals of a job are kept, as its settings say. */
export function journalSettings(settings: StoredSettings): JournalSettings {
  const {
    journal: storage,
    journalBytesMax: bytesMax,
    replicas,
    rules,
    synchronization,
  } = settings;
  return { storage, bytesMax, replicas, rules, synchronization };
}

/** Where a job keeps its leases, as its settings say it: in an etcd, or without one in the broker. */
export function leasesIn(etcd: Pick<EtcdSpace, "id"> | undefined): string {
  return etcd === undefined ? LEASES_IN_KV : `etcd ${etcd.id}`;
}

/** How long one question about a lease may take: it must be given up in time to ask again. */
export function leaseTimeoutMs(leaseMs: number): number {
  return Math.max(LEASE_TIMEOUT_MS_MIN, leaseMs / 3);
}

function openEtcdLeases(connection: NatsConnection, etcd: EtcdSpace, leaseMs: number): Leases {
  const timeoutMs = leaseTimeoutMs(leaseMs);
  etcd.client.limit(timeoutMs);
  const leases = new EtcdLeases(etcd.client, etcd.keys.leases, leaseMs);
  return new BrokerBoundLeases(leases, new BrokerProbe(connection, timeoutMs));
}

async function openKvLeases(
  connection: NatsConnection,
  subjects: JobSubjects,
  settings: StoredSettings,
): Promise<Leases> {
  const records = await openRecords({
    connection,
    bucket: subjects.leaseBucket(),
    storage: "file",
    replicas: settings.replicas,
    ttlMs: settings.leaseMs,
    timeoutMs: leaseTimeoutMs(settings.leaseMs),
  });
  return new RecordLeases(records);
}

async function settle(
  records: Records,
  manager: JetStreamManager,
  subjects: JobSubjects,
  wanted: Wanted,
): Promise<StoredSettings> {
  const stored = await records.read(SETTINGS_KEY);
  if (stored !== undefined) return join(subjects.job, stored.value, wanted);
  const shards = wanted.shards ?? SHARDS_DEFAULT;
  if (!Number.isSafeInteger(shards) || shards < 1 || shards > SHARDS_MAX) {
    throw new PserverError("BAD_VALUE", `shards: expected 1 to ${SHARDS_MAX}; received ${shards}`, {
      expected: SHARDS_MAX,
      received: shards,
    });
  }
  const journal = wanted.journal ?? "file";
  const journalBytesMax =
    wanted.journalBytesMax ?? (await findJournalBytes(manager, subjects, journal, shards));
  const settings: StoredSettings = {
    format: 2,
    rules: CURRENT_RULES,
    ...newQuotas(wanted),
    shards,
    journal,
    leaseMs: wanted.leaseMs ?? LEASE_MS,
    leases: wanted.leases,
    journalBytesMax,
    replicas: wanted.replicas ?? 1,
    synchronization: wanted.synchronization ?? { mode: "async" },
  };
  if ((await records.create(SETTINGS_KEY, settings)) !== undefined) return settings;
  const other = await records.read(SETTINGS_KEY);
  return join(subjects.job, other?.value, wanted);
}

/** @throws JOB_EXISTS as `openJob`, also for a job that is being removed. */
function join(job: string, stored: unknown, wanted: Wanted): StoredSettings {
  if (!hasRemovalMark(stored)) return agree(job, parseSettings(stored), wanted);
  throw new PserverError(
    "JOB_EXISTS",
    `job ${job} is being removed: end that with "pserver remove ${job}", or choose another job name`,
    { job },
  );
}

/** The settings of an existing job, if they are those that are wanted. */
function agree(job: string, settings: StoredSettings, wanted: Wanted): StoredSettings {
  const present = inWords(settings);
  for (const [name, received] of Object.entries(inWords(wanted))) {
    const expected = present[name];
    if (received === undefined || received === expected) continue;
    throw new PserverError(
      "JOB_EXISTS",
      `job ${job} exists with ${name} ${expected}; received ${name} ${received}. ` +
        (name === "leases" ? LEASES_ELSEWHERE : SETTING_DIFFERS),
      { job, setting: name, expected, received },
    );
  }
  return settings;
}

const SETTING_DIFFERS = "Leave the setting out to join the job, or choose another job name.";

/** Two places would be two truths about who is alive. */
const LEASES_ELSEWHERE =
  "All hosts of a job keep their leases in one place: give --etcd and --etcd-prefix as the others do. " +
  "If that etcd has lost its data, put the expected identity back: see docs/operations.md.";

/** The settings as values that can be compared and shown. */
function inWords({
  synchronization,
  ...settings
}: Partial<StoredSettings>): Record<string, unknown> {
  if (synchronization === undefined) return settings;
  return { ...settings, synchronization: synchronizationText(synchronization) };
}

/**
 * Marks the settings of a job that is being removed: no host joins it any more, and none takes what is
 * left of it for a new job.
 */
export function withRemovalMark(stored: unknown): unknown {
  return { ...asMap(stored, SETTINGS_KEY), removing: true };
}

/** Whether stored settings bear the mark of {@link withRemovalMark}. */
export function hasRemovalMark(stored: unknown): boolean {
  return asMap(stored, SETTINGS_KEY)["removing"] === true;
}

/** The settings in a job's bucket; @throws BAD_MESSAGE if they are none. */
export function parseSettings(value: unknown): StoredSettings {
  const fields = asMap(value, SETTINGS_KEY);
  const format = integerField(fields, "format", 1, 2) === 1 ? 1 : 2;
  const shards = integerField(fields, "shards", 1, SHARDS_MAX);
  return {
    format,
    rules: requireRules(format === 1 ? 1 : integerField(fields, "rules", 1)),
    ...parseQuotas(fields),
    shards,
    journal: fields["journal"] === "memory" ? "memory" : "file",
    leaseMs: integerField(fields, "leaseMs", 1),
    // Jobs of before there was a choice say nothing.
    leases: fields["leases"] === undefined ? LEASES_IN_KV : textField(fields, "leases"),
    journalBytesMax: integerField(fields, "journalBytesMax", 1),
    replicas: integerField(fields, "replicas", 1),
    synchronization: toSynchronization(fields["synchronization"]),
  };
}

/** @throws UNKNOWN_RULES for a job of a version that this program lacks. */
function requireRules(version: number): number {
  if (KNOWN_RULES.has(version)) return version;
  const known = [...KNOWN_RULES.keys()];
  throw new PserverError(
    "UNKNOWN_RULES",
    `the job's journals: expected rules ${known.join(", ")}; found ${version}`,
    { expected: known, found: version },
  );
}

/** The largest limit, halving from the default, that the broker has room for on every shard. */
async function findJournalBytes(
  manager: JetStreamManager,
  subjects: JobSubjects,
  storage: "file" | "memory",
  shards: number,
): Promise<number> {
  for (let bytes: number = JOURNAL_BYTES_MAX[storage]; bytes >= JOURNAL_BYTES_MIN; bytes /= 2) {
    if (await hasRoom(manager, subjects, storage, Math.ceil((bytes * shards) / JOURNAL_SHARE))) {
      return bytes;
    }
  }
  throw new PserverError(
    "NO_SPACE",
    `the broker has no room for ${shards} journals of ${JOURNAL_BYTES_MIN} bytes`,
    { expected: shards * JOURNAL_BYTES_MIN },
  );
}
