import { setTimeout as delay } from "node:timers/promises";
import { ensureError, PserverError } from "../../protocol/index.ts";
import type { KvBucket } from "../jetstream/kv-bucket.ts";
import { BucketRecord } from "../lifecycle/bucket-record.ts";
import {
  agreeOnSettings,
  newSettings,
  SETTINGS_KEY,
  type StoredSettings,
  type WantedWithLeases,
} from "./job-settings.ts";

/** With the pauses in between about 10 s: enough to outlast an election in a cluster. */
const TRIES_MAX = 500;

/** Dependencies of {@link settleSettings}. */
export interface SettlingDeps {
  readonly bucket: KvBucket;
  readonly job: string;
  readonly findJournalBytes: (journal: "file" | "memory", shards: number) => Promise<number>;
  /** Waits; a test need not. */
  readonly pause?: (delayMs: number) => Promise<void>;
}

/**
 * Reads a job's settings, or writes them if this host is the first. Of hosts that begin at one time one writes
 * them. In a cluster the others' writes are refused before that one can be read, or even if it never will be
 * because the leader dies: they look and try again.
 * @throws as `agreeOnSettings` and `newSettings`; JETSTREAM_UNAVAILABLE if the settings can be neither read nor
 * written for 10 s; TIMEOUT as {@link BucketRecord.change} does.
 */
export async function settleSettings(
  { bucket, job, findJournalBytes, pause = delay }: SettlingDeps,
  wanted: WantedWithLeases,
): Promise<StoredSettings> {
  const record = new BucketRecord<StoredSettings | undefined, StoredSettings>(
    SETTINGS_KEY,
    (stored) => stored && agreeOnSettings(job, stored.value, wanted),
    (settings) => settings,
    TRIES_MAX,
  );
  let made: StoredSettings | undefined;
  const decide = async (stored: StoredSettings | undefined): Promise<StoredSettings> => {
    if (stored !== undefined) return stored;
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
