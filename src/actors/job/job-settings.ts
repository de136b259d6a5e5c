import {
  asMap,
  type Fields,
  flagField,
  integerField,
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
import type { JournalSettings } from "../journal/journal.ts";
import { isPendingFork } from "./fork-mark.ts";
import { parseQuotas, type Quotas, quotasOf } from "./quotas.ts";

/** Settings that are fixed when a job is made; in KV as plain JSON. */
export interface StoredSettings extends Quotas {
  /** 1 of jobs without `rules` in their settings: hosts of that time know no others. */
  readonly format: 1 | 2;
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
  /** Whether hosts write a tape; not those of jobs created before there were tapes. */
  readonly tape: boolean;
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
  "If that etcd has lost its data, put the expected identity back: see docs/operations.md.";

/** The settings of a new job. @throws BAD_VALUE for a number of shards out of range. */
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
    format: 2,
    rules: CURRENT_RULES,
    ...quotasOf(wanted),
    shards,
    journal,
    leaseMs: wanted.leaseMs ?? LEASE_MS,
    leases: wanted.leases,
    journalBytesMax,
    replicas: wanted.replicas ?? 1,
    synchronization: wanted.synchronization ?? { mode: "async" },
    tape: wanted.tape ?? true,
  };
}

/** The settings in a job's bucket; @throws BAD_MESSAGE if they are not valid, UNKNOWN_RULES. */
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
    // Jobs created before `leases` existed omit it and use KV.
    leases: fields["leases"] === undefined ? LEASES_IN_KV : textField(fields, "leases"),
    journalBytesMax: integerField(fields, "journalBytesMax", 1),
    replicas: integerField(fields, "replicas", 1),
    synchronization: toSynchronization(fields["synchronization"]),
    tape: flagField(fields, "tape"),
  };
}

/**
 * Returns the stored settings of an existing job if they agree with those that a host wants.
 * @throws JOB_EXISTS if they differ, or if the job is being removed or is a fork that is not complete.
 */
export function agreeOnSettings(
  job: string,
  stored: unknown,
  wanted: WantedWithLeases,
): StoredSettings {
  if (hasRemovalMark(stored)) {
    throw new PserverError(
      "JOB_EXISTS",
      `job ${job} is being removed: complete that with "pserver remove ${job}", or choose another job name`,
      { job },
    );
  }
  if (isPendingFork(stored)) {
    throw new PserverError(
      "JOB_EXISTS",
      `job ${job} is not complete: repeat the "pserver fork" that makes it, or remove it with "pserver remove ${job}"`,
      { job },
    );
  }
  const settings = parseSettings(stored);
  const present = comparable(settings);
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

/** How the journals of a job are kept, by its settings. */
export function journalSettings(settings: StoredSettings): JournalSettings {
  const { journal: storage, journalBytesMax: bytesMax } = settings;
  const { replicas, rules, synchronization } = settings;
  return { storage, bytesMax, replicas, rules, synchronization };
}

/** {@link StoredSettings.leases} of a job whose leases are in this etcd, or without one in the broker. */
export function leasesIn(etcd: Pick<EtcdSpace, "id"> | undefined): string {
  return etcd === undefined ? LEASES_IN_KV : `etcd ${etcd.id}`;
}

/** Marks the settings of a job that is being removed, so that no host joins it or makes it anew. */
export function withRemovalMark(stored: unknown): unknown {
  return { ...asMap(stored, SETTINGS_KEY), removing: true };
}

/** Whether stored settings bear the mark of {@link withRemovalMark}. */
export function hasRemovalMark(stored: unknown): boolean {
  return asMap(stored, SETTINGS_KEY)["removing"] === true;
}

/** The error for settings that somebody else has written since they were read. */
export function settingsChanged(job: string): PserverError {
  return new PserverError("BUSY", `job ${job}: somebody else is changing its settings`, { job });
}

/** The settings as values that can be compared and shown. */
function comparable({ synchronization, ...settings }: Partial<StoredSettings>): Fields {
  if (synchronization === undefined) return settings;
  return { ...settings, synchronization: synchronizationText(synchronization) };
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
