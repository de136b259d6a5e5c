import { setTimeout as delay } from "node:timers/promises";
import {
  asMap,
  DECLARED_MAX,
  ensureError,
  type Fields,
  flagField,
  type Guard,
  guardText,
  integerField,
  LEASE_MS,
  listField,
  PserverError,
  SHARD_BYTES_MAX,
  SHARDS_DEFAULT,
  SHARDS_MAX,
  type Synchronization,
  synchronizationText,
  textField,
  toGuard,
  toSynchronization,
} from "../../protocol/index.ts";
import { type Position, parsePosition } from "../../protocol/messages/position.ts";
import { CURRENT_RULES, KNOWN_RULES } from "../fold/rules.ts";
import type { JournalSettings } from "../journal/journal.ts";
import { entryDamaged, type KvBucket, type KvEntry } from "../journal/kv-bucket.ts";
import { BucketEntry } from "../lifecycle/lock.ts";
import type { EtcdSpace } from "./etcd-space.ts";
import { tapeBytesBeside } from "./storage-plan.ts";

/** Origin of a job that was made from a point of another job's history; an entry of its settings. */
export interface ForkOrigin {
  /** The other job. */
  readonly of: string;
  /** When it was made, in milliseconds since 1970. */
  readonly madeMs: number;
  /** Position of each shard of the other job from which this job's shards go on. */
  readonly at: readonly Position[];
  /** Token of the run that is making it; absent once it is complete. No host joins it before. */
  readonly pending?: string;
}

const FORK = "fork";

/** Returns settings with a fork's origin, in place of any that they have. */
export function withForkOrigin(settings: object, origin: ForkOrigin): unknown {
  return { ...settings, [FORK]: origin };
}

/**
 * Reads a fork's origin from stored settings; undefined if they have none.
 * @throws BAD_MESSAGE if it is malformed.
 */
export function forkOriginOf(stored: unknown): ForkOrigin | undefined {
  const entry = asMap(stored, "settings")[FORK];
  if (entry === undefined) return undefined;
  const fields = asMap(entry, FORK);
  return {
    of: textField(fields, "of"),
    madeMs: integerField(fields, "madeMs"),
    at: listField(fields, "at", SHARDS_MAX).map((at) => parsePosition(asMap(at, "at"))),
    ...(fields["pending"] === undefined ? {} : { pending: textField(fields, "pending") }),
  };
}

/** Whether stored settings are those of a fork that is being made, or whose making was interrupted. */
export function isPendingFork(stored: unknown): boolean {
  return forkOriginOf(stored)?.pending !== undefined;
}

/** More than the shards of any job can hold, so that by default only the shards limit a job. */
const HELD_BYTES_MAX = 1024 ** 4;

/** Limits of what a job and each of its trainers may declare; fixed when the job is made. */
export interface Quotas {
  /** Names that were ever declared; 65,536 by default. */
  readonly parametersMax: number;
  /** Bytes of values and optimizer state of all declared parameters; 1 TiB by default. */
  readonly heldBytesMax: number;
  /** The same for one trainer; a parameter counts for the trainer that declared it last. 16,384 by default. */
  readonly trainerParametersMax: number;
  /** Three quarters of what the job's shards can hold by default. */
  readonly trainerHeldBytesMax: number;
}

/** The names that one trainer may declare by default: the rest is out of its reach. */
const TRAINER_PARAMETERS_MAX = DECLARED_MAX / 4;

/** The part of what a job's shards can hold that one trainer may declare by default: most jobs have one initializer. */
const TRAINER_HELD_SHARE = 3 / 4;

/** Returns the quotas in settings of a job with so many shards, or the defaults; a trainer's are never above the job's. */
export function quotasOf(
  wanted: Partial<Quotas> & { readonly shards?: number | undefined } = {},
): Quotas {
  const { shards = SHARDS_DEFAULT } = wanted;
  const parametersMax = wanted.parametersMax ?? DECLARED_MAX;
  const heldBytesMax = wanted.heldBytesMax ?? HELD_BYTES_MAX;
  const trainerHeldBytesMax = shards * SHARD_BYTES_MAX * TRAINER_HELD_SHARE;
  return {
    parametersMax,
    heldBytesMax,
    trainerParametersMax:
      wanted.trainerParametersMax ?? Math.min(TRAINER_PARAMETERS_MAX, parametersMax),
    trainerHeldBytesMax: wanted.trainerHeldBytesMax ?? Math.min(trainerHeldBytesMax, heldBytesMax),
  };
}

/** Version of the settings. */
const FORMAT = 1;

/** Settings that are fixed when a job is made; in KV as plain JSON. */
export interface StoredSettings extends Quotas {
  readonly format: typeof FORMAT;
  /** Version of the rules that all journals begin with. */
  readonly rules: number;
  readonly shards: number;
  readonly journal: "file" | "memory";
  readonly leaseMs: number;
  /** Where the leases are: `kv`, or `etcd` and the identity of the etcd that holds them. */
  readonly leases: string;
  /** The most bytes of one shard's journal. */
  readonly journalBytesMax: number;
  readonly replicas: number;
  /** How the trainers keep step. */
  readonly synchronization: Synchronization;
  /** The guard of the parameters whose configurations name none; absent if they have none. */
  readonly guard?: Guard;
  /** Whether hosts write a tape. */
  readonly tape: boolean;
  /** The most bytes of the tape; by default a quarter of what the journals may have. */
  readonly tapeBytesMax: number;
}

/** Settings of a job that its lifecycle depends on, and the job's name. */
export interface JobSettings
  extends Pick<StoredSettings, "shards" | "journal" | "leaseMs" | "synchronization" | "guard"> {
  readonly job: string;
  /** When the broker made the job's bucket: it tells the job from another one of its name. */
  readonly made: string;
  readonly quotas: Quotas;
}

/** Settings that a host asks for; the job's own settings, or defaults, hold for the rest. */
export type WantedSettings = Partial<Omit<StoredSettings, "format" | "rules" | "leases">>;

/** Wanted settings with the place of the leases, which every host names. */
export type WantedWithLeases = WantedSettings & Pick<StoredSettings, "leases">;

/** {@link StoredSettings.leases} of a job that uses no etcd. */
export const LEASES_IN_KV = "kv";

/** Key of the settings in the job's bucket. */
export const SETTINGS_KEY = "settings";

const SETTING_DIFFERS = "Leave the setting out to join the job, or choose another job name.";

/** Leases in two places would give two answers about who is alive. */
const LEASES_ELSEWHERE =
  "All hosts of a job keep their leases in one place: give --etcd and --etcd-prefix as the others do. " +
  "If that etcd has lost its data, put the expected identity back: see docs/guides/cluster.md.";

/** Makes the settings of a new job. @throws BAD_VALUE for a number of shards out of range. */
export async function newSettings(
  wanted: WantedWithLeases,
  findJournalBytes: (journal: "file" | "memory", shards: number) => Promise<number>,
): Promise<StoredSettings> {
  const { shards = SHARDS_DEFAULT, journal = "file" } = wanted;
  if (!Number.isSafeInteger(shards) || shards < 1 || shards > SHARDS_MAX) {
    throw new PserverError("BAD_VALUE", `shards: expected 1 to ${SHARDS_MAX}; received ${shards}`, {
      expected: SHARDS_MAX,
      received: shards,
    });
  }
  const journalBytesMax = wanted.journalBytesMax ?? (await findJournalBytes(journal, shards));
  return {
    format: FORMAT,
    rules: CURRENT_RULES,
    ...quotasOf(wanted),
    shards,
    journal,
    leaseMs: wanted.leaseMs ?? LEASE_MS,
    leases: wanted.leases,
    journalBytesMax,
    replicas: wanted.replicas ?? 1,
    synchronization: wanted.synchronization ?? { mode: "async" },
    ...(wanted.guard === undefined ? {} : { guard: wanted.guard }),
    tape: wanted.tape ?? true,
    tapeBytesMax: wanted.tapeBytesMax ?? tapeBytesBeside({ journalBytesMax, shards }),
  };
}

/** Reads the settings in a job's bucket. @throws BAD_MESSAGE if they are not valid, UNKNOWN_RULES. */
export function parseSettings(value: unknown): StoredSettings {
  const fields = asMap(value, SETTINGS_KEY);
  integerField(fields, "format", FORMAT, FORMAT);
  const shards = integerField(fields, "shards", 1, SHARDS_MAX);
  return {
    format: FORMAT,
    rules: requireRules(integerField(fields, "rules", 1)),
    parametersMax: integerField(fields, "parametersMax", 1),
    heldBytesMax: integerField(fields, "heldBytesMax", 1),
    trainerParametersMax: integerField(fields, "trainerParametersMax", 1),
    trainerHeldBytesMax: integerField(fields, "trainerHeldBytesMax", 1),
    shards,
    journal: fields["journal"] === "memory" ? "memory" : "file",
    leaseMs: integerField(fields, "leaseMs", 1),
    leases: textField(fields, "leases"),
    journalBytesMax: integerField(fields, "journalBytesMax", 1),
    replicas: integerField(fields, "replicas", 1),
    synchronization: toSynchronization(fields["synchronization"]),
    ...(fields["guard"] === undefined ? {} : { guard: toGuard(fields["guard"], "guard") }),
    tape: flagField(fields, "tape"),
    tapeBytesMax: integerField(fields, "tapeBytesMax", 1),
  };
}

/**
 * Returns the stored settings of an existing job if they agree with those that a host wants.
 * @throws JOB_EXISTS if they differ, or if the job is being removed or is a fork that is not complete.
 */
function agreeOnSettings(job: string, stored: unknown, wanted: WantedWithLeases): StoredSettings {
  if (hasRemovalFlag(stored)) {
    throw new PserverError(
      "JOB_EXISTS",
      `job ${job} is being removed: complete that with "pserver remove ${job}", or choose another job name`,
      { job },
    );
  }
  if (isPendingFork(stored)) throw forkIncomplete(job);
  const settings = parseSettings(stored);
  const present: Fields = { guard: "none", ...comparable(settings) };
  for (const [name, received] of Object.entries(comparable(wanted))) {
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

/** Returns how the journals of a job are kept, by its settings. */
export function journalSettings(settings: StoredSettings): JournalSettings {
  const { journal: storage, journalBytesMax: bytesMax } = settings;
  const { replicas, rules, synchronization } = settings;
  return { storage, bytesMax, replicas, rules, synchronization };
}

/** Returns {@link StoredSettings.leases} of a job whose leases are in this etcd, or without one in the broker. */
export function leasesIn(etcd: Pick<EtcdSpace, "id"> | undefined): string {
  return etcd === undefined ? LEASES_IN_KV : `etcd ${etcd.id}`;
}

/** Returns the settings of a job with a flag that it is being removed, so that no host joins it or makes it again. */
export function withRemovalFlag(stored: unknown): unknown {
  return { ...asMap(stored, SETTINGS_KEY), removing: true };
}

/** Whether stored settings have the flag of {@link withRemovalFlag}. */
export function hasRemovalFlag(stored: unknown): boolean {
  return asMap(stored, SETTINGS_KEY)["removing"] === true;
}

/** Makes the error for a job that a fork is making, or has left incomplete. */
export function forkIncomplete(job: string): PserverError {
  return new PserverError(
    "JOB_EXISTS",
    `job ${job} is not complete: repeat the "pserver fork" or "restore" that makes it, or remove it with "pserver remove ${job}"`,
    { job },
  );
}

/** Makes the error for settings that somebody else has written since they were read. */
export function settingsChanged(job: string): PserverError {
  return new PserverError("BUSY", `job ${job}: somebody else is changing its settings`, { job });
}

/** What is wrong with settings that are not there. */
export const SETTINGS_LOST = "it is lost, though the broker holds snapshots of the job";

/** Makes the error for a job whose snapshots are there, but not its settings. */
export function settingsLost(job: string): PserverError {
  return entryDamaged(SETTINGS_KEY, SETTINGS_LOST, { job });
}

/** Returns the settings as values that can be compared and shown. */
function comparable({ synchronization, guard, ...settings }: Partial<StoredSettings>): Fields {
  return {
    ...settings,
    ...(synchronization && { synchronization: synchronizationText(synchronization) }),
    ...(guard && { guard: guardText(guard) }),
  };
}

/** Returns the version. @throws UNKNOWN_RULES for one that this program lacks. */
function requireRules(version: number): number {
  if (KNOWN_RULES.has(version)) return version;
  const known = [...KNOWN_RULES.keys()];
  throw new PserverError(
    "UNKNOWN_RULES",
    `the job's journals: expected rules ${known.join(", ")}; found ${version}`,
    { expected: known, found: version },
  );
}

/**
 * Tries to write the settings. With the pauses in between they take about 10 s: enough to outlast an election in a
 * cluster.
 */
const TRIES_MAX = 500;

/** Dependencies of {@link settleSettings}. */
export interface SettlingDeps {
  readonly bucket: KvBucket;
  readonly job: string;
  readonly findJournalBytes: (journal: "file" | "memory", shards: number) => Promise<number>;
  /** Whether the broker holds snapshots of the job, which are made after its settings and removed before them. */
  readonly hasSnapshots: () => Promise<boolean>;
  /** Waits between tries. */
  readonly pause?: (delayMs: number) => Promise<void>;
}

/**
 * Reads a job's settings, or writes them if this host is the first. Of hosts that begin at one time one writes
 * them. In a cluster the others' writes are refused before that one can be read, or even if it never will be
 * because the leader dies: they look and try again.
 * @throws as `agreeOnSettings` and `newSettings`; JOB_DAMAGED if the settings of a job with snapshots are lost;
 * JETSTREAM_UNAVAILABLE if the settings can be neither read nor
 * written for 10 s; TIMEOUT as {@link BucketEntry.change} does.
 */
export async function settleSettings(
  { bucket, job, findJournalBytes, hasSnapshots, pause = delay }: SettlingDeps,
  wanted: WantedWithLeases,
): Promise<StoredSettings> {
  const record = new BucketEntry<StoredSettings | undefined, StoredSettings>(
    SETTINGS_KEY,
    (stored) => stored && agreeOnSettings(job, stored.value, wanted),
    (settings) => settings,
    TRIES_MAX,
  );
  let made: StoredSettings | undefined;
  const decide = async (stored: StoredSettings | undefined): Promise<StoredSettings> => {
    if (stored !== undefined) return stored;
    // Another host may have made the job in between: then the write below is refused.
    if ((await hasSnapshots()) && (await bucket.read(SETTINGS_KEY)) === undefined)
      throw settingsLost(job);
    made ??= await newSettings(wanted, findJournalBytes);
    return made;
  };
  try {
    return (await record.change({ bucket, pause }, decide)).result;
  } catch (error) {
    if (ensureError(error).code !== "BUSY") throw error;
    const text = `the settings of job ${job} can be neither read nor written: a write of another host is under way`;
    throw new PserverError("JETSTREAM_UNAVAILABLE", text, { job });
  }
}

/**
 * Checks that a job that a host has joined is still there, after the host has made its streams: a removal that has begun
 * before may not know of those.
 * @throws JOB_EXISTS if it is being removed, or was removed.
 */
export async function requireSettings(
  bucket: Pick<KvBucket, "read">,
  job: string,
  wanted: WantedWithLeases,
): Promise<void> {
  const stored = await bucket.read(SETTINGS_KEY);
  if (stored !== undefined) agreeOnSettings(job, stored.value, wanted);
  else {
    const text = `job ${job} was removed while this host joined it: start the host again`;
    throw new PserverError("JOB_EXISTS", text, { job });
  }
}

/** Settings as a job's bucket holds them, or why they cannot be read. */
export type FoundSettings =
  | (KvEntry & { readonly problem?: never })
  | { readonly problem: PserverError; readonly value?: never };

/** Reads the settings in a job's bucket, also damaged ones; undefined if there are none. @throws TIMEOUT, …. */
export async function readSettings(
  bucket: Pick<KvBucket, "read">,
): Promise<FoundSettings | undefined> {
  try {
    return await bucket.read(SETTINGS_KEY);
  } catch (error) {
    const problem = ensureError(error);
    if (problem.code !== "JOB_DAMAGED") throw error;
    return { problem };
  }
}
