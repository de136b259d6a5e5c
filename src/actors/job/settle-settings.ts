import { setTimeout as delay } from "node:timers/promises";
import { PserverError } from "../../protocol/index.ts";
import type { KvBucket } from "../jetstream/kv-bucket.ts";
import {
  agreeOnSettings,
  newSettings,
  SETTINGS_KEY,
  type StoredSettings,
  type WantedWithLeases,
} from "./job-settings.ts";

/** How often settings are looked for that another host is writing, and the pause in between. */
const TRIES_MAX = 200;
const PAUSE_MS = 50;

/** What settling the settings of a job depends on. */
export interface SettlingDeps {
  readonly bucket: Pick<KvBucket, "read" | "create">;
  readonly job: string;
  readonly findJournalBytes: (journal: "file" | "memory", shards: number) => Promise<number>;
  /** Waits; a test need not. */
  readonly pause?: (delayMs: number) => Promise<unknown>;
}

/**
 * Reads a job's settings, or writes them if this host is the first. Of hosts that begin at one time one writes
 * them. In a cluster the others' writes are refused before that one can be read, or even if it never will be
 * because the leader dies: they look and try again.
 * @throws as `agreeOnSettings` and `newSettings`; JETSTREAM_UNAVAILABLE if the settings can be neither read nor
 * written for 10 s.
 */
export async function settleSettings(
  { bucket, job, findJournalBytes, pause = delay }: SettlingDeps,
  wanted: WantedWithLeases,
): Promise<StoredSettings> {
  let settings: StoredSettings | undefined;
  for (let tries = 1; tries <= TRIES_MAX; tries++) {
    const stored = await bucket.read(SETTINGS_KEY);
    if (stored !== undefined) return agreeOnSettings(job, stored.value, wanted);
    settings ??= await newSettings(wanted, findJournalBytes);
    if ((await bucket.create(SETTINGS_KEY, settings)) !== undefined) return settings;
    await pause(PAUSE_MS);
  }
  const text = `the settings of job ${job} can be neither read nor written: a write of another host is under way`;
  throw new PserverError("JETSTREAM_UNAVAILABLE", text, { job });
}
