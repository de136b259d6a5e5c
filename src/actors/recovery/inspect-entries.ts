import { ensureError, type ShardKnowledge } from "../../protocol/index.ts";
import type { EntryProblem } from "../../protocol/messages/shard-knowledge.ts";
import { mapConcurrently } from "../concurrent.ts";
import { parseSettings, SETTINGS_KEY, SETTINGS_LOST } from "../job/job-settings.ts";
import type { Owners } from "../job/owners-client.ts";
import { parseArchiverEntry } from "../journal/archivers.ts";
import type { KvBucket, KvEntry } from "../journal/kv-bucket.ts";
import { parseWatermark } from "../journal/watermark.ts";
import { parseLastNumber } from "../lifecycle/block-numbers.ts";
import { contradictions } from "../lifecycle/compare-entries.ts";
import {
  BLOCKS_KEY,
  JOB_KEY,
  MEMBERS_KEY,
  PARAMETER_KEYS,
  parameterOfKey,
  SESSION_KEY,
  SWEPT_KEY,
  TRAINER_KEYS,
} from "../lifecycle/lock.ts";
import { type Lifecycle, parseLifecycleEntry, UNINITIALIZED } from "../lifecycle/machine.ts";
import { type Members, parseMembers } from "../lifecycle/members.ts";
import { type Parameter, parseParameterEntry } from "../lifecycle/parameter.ts";
import { parseNumber, parseTrainer } from "../lifecycle/sessions.ts";

/** The entries of a job's bucket, without those that cannot be read. */
class SoundEntries {
  job: Lifecycle = UNINITIALIZED;
  members: Members = parseMembers(undefined);
  given = 0;
  swept = 0;
  /** The highest session in a trainer's entry. */
  trainersUpTo = 0;
  /** By name. */
  readonly parameters: Map<string, Parameter> = new Map();

  /** Takes an entry. @throws JOB_DAMAGED, BAD_VERSION if it is not one that this program writes. */
  take(key: string, stored: KvEntry): void {
    if (key === JOB_KEY) this.job = parseLifecycleEntry(stored.value, key);
    else if (key === MEMBERS_KEY) this.members = parseMembers(stored);
    else if (key === SESSION_KEY) this.given = parseNumber(stored, key);
    else if (key === SWEPT_KEY) this.swept = parseNumber(stored, key);
    else if (key === BLOCKS_KEY) parseLastNumber(stored);
    else if (key === SETTINGS_KEY) parseSettings(stored.value);
    else if (key.startsWith(TRAINER_KEYS)) {
      const { session } = { session: 0, ...parseTrainer(stored, key) };
      this.trainersUpTo = Math.max(this.trainersUpTo, session);
    } else if (key.startsWith(PARAMETER_KEYS)) {
      const name = parameterOfKey(key);
      const parameter = parseParameterEntry(stored, name);
      if (parameter !== undefined) this.parameters.set(name, parameter);
    } else if (key.startsWith("archiver.")) parseArchiverEntry(stored.value, key);
    else if (key.startsWith("head.")) parseWatermark(stored.value, key);
  }
}

/** What was found out about the entries of a job's bucket. */
export interface EntryFindings {
  /** Entries that are damaged, lost or older than what the shards know; by key. */
  readonly problems: readonly EntryProblem[];
  /** Shards that could not be asked what they know. */
  readonly unasked: readonly number[];
  readonly known: ReadonlyMap<number, ShardKnowledge>;
  readonly sound: SoundEntries;
  /** Revision of the bucket before it was read. */
  readonly revision: number;
}

/**
 * Reads every entry of a job's bucket, and compares them with what the shards know whose owners answer; changes
 * nothing.
 * @throws TIMEOUT, JETSTREAM_UNAVAILABLE and the like if the broker does not answer.
 */
export async function inspectEntries(
  bucket: Pick<KvBucket, "keys" | "read" | "lastRevision">,
  shards: readonly number[],
  ask: (shard: number) => Promise<ShardKnowledge | undefined>,
): Promise<EntryFindings> {
  const known = new Map<number, ShardKnowledge>();
  // Asked first: what a shard knows was in an entry before.
  await mapConcurrently(shards, async (shard) => {
    const knowledge = await ask(shard);
    if (knowledge !== undefined) known.set(shard, knowledge);
  });
  const revision = await bucket.lastRevision();
  const { sound, problems } = await readSound(bucket);
  const { job, members, given, swept, parameters } = sound;
  const compared = {
    ...{ job, given, swept },
    membersRevision: members.revision,
    parameter: (name: string) => parameters.get(name),
  };
  for (const [shard, knowledge] of known) {
    for (const { key, problem } of contradictions(compared, shard, knowledge)) {
      if (!problems.has(key)) problems.set(key, problem);
    }
  }
  if (given < sound.trainersUpTo && !problems.has(SESSION_KEY)) {
    const problem = `a trainer's entry has session ${sound.trainersUpTo}; found session ${given}`;
    problems.set(SESSION_KEY, problem);
  }
  const unasked = shards.filter((shard) => !known.has(shard));
  const listed = [...problems].map(([key, problem]) => ({ key, problem }));
  listed.sort((a, b) => (a.key < b.key ? -1 : 1));
  return { problems: listed, unasked, known, sound, revision };
}

/** Reads the entries one by one; returns those that can be read, and what is wrong with the others by their keys. */
export async function readSound(
  bucket: Pick<KvBucket, "keys" | "read">,
): Promise<{ sound: SoundEntries; problems: Map<string, string> }> {
  const sound = new SoundEntries();
  const problems = new Map<string, string>();
  const keys = await bucket.keys("");
  if (!keys.includes(SETTINGS_KEY)) problems.set(SETTINGS_KEY, SETTINGS_LOST);
  await mapConcurrently(keys, async (key) => {
    try {
      const stored = await bucket.read(key);
      if (stored !== undefined) sound.take(key, stored);
    } catch (error) {
      const { code, details, message } = ensureError(error);
      if (code !== "JOB_DAMAGED") throw error;
      problems.set(key, String(details["problem"] ?? message));
    }
  });
  return { sound, problems };
}

/** Asks the owner of a shard what it knows; undefined if none answers at once, or the shard has stopped. */
export async function askKnown(
  owners: Pick<Owners, "known">,
  shard: number,
): Promise<ShardKnowledge | undefined> {
  try {
    return await owners.known(shard, 0);
  } catch {
    // Whatever its owner says: the shard cannot be asked now.
    return undefined;
  }
}
