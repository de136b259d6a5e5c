import {
  asMap,
  integerField,
  listField,
  type Position,
  SHARDS_MAX,
  textField,
} from "../../protocol/index.ts";
import { readable } from "../fold/journal-record.ts";
import type { KvBucket } from "./kv-bucket.ts";
import { ENTRY_FORMAT, readEntry } from "./kv-bucket.ts";

/** Prefix of the keys of all archivers in the job's bucket. */
const ARCHIVER_KEYS = "archiver.";

/** The longest grace time that an archiver may ask for. */
const GRACE_MS_MAX = 86_400_000;

/** What an archiver has copied of a shard: all up to these; generation 0 if there is nothing yet. */
export interface ArchivedShard {
  readonly record: Position;
  readonly snapshot: Position;
}

/** An archiver that follows a job, as it has registered itself. */
export interface ArchiverRecord {
  /** Identity of its archive. */
  readonly archiver: string;
  readonly machine: string;
  readonly pid: number;
  /** When it wrote this by its own clock, in milliseconds since 1970; only to be shown. */
  readonly writtenMs: number;
  /** How long hosts wait for it after it was last heard of. */
  readonly graceMs: number;
  /** By the shard's number. */
  readonly shards: readonly ArchivedShard[];
}

/** Key of an archiver's record. */
export function archiverKey(archiver: string): string {
  return `${ARCHIVER_KEYS}${archiver}`;
}

/** The record as JSON. */
export function toArchiverJson(record: ArchiverRecord): unknown {
  const shards = record.shards.map(({ record: last, snapshot }) => [
    ...[last.generation, last.seq],
    ...[snapshot.generation, snapshot.seq],
  ]);
  return { format: ENTRY_FORMAT, ...record, shards };
}

/**
 * Parses an archiver's record.
 * @throws BAD_VERSION for a record of another format, INTERNAL for a damaged one.
 */
export function parseArchiverRecord(value: unknown, key: string): ArchiverRecord {
  return readEntry(value, key, (fields) => ({
    archiver: textField(fields, "archiver"),
    machine: textField(fields, "machine"),
    pid: integerField(fields, "pid"),
    writtenMs: integerField(fields, "writtenMs"),
    graceMs: integerField(fields, "graceMs", 0, GRACE_MS_MAX),
    shards: listField(fields, "shards", SHARDS_MAX).map(parseShard),
  }));
}

/** A record of an archiver in the job's bucket. */
export interface StoredArchiver {
  readonly key: string;
  readonly revision: number;
  /** Undefined if this version cannot read it. */
  readonly record: ArchiverRecord | undefined;
}

/** The records of all archivers that are registered. @throws the errors of {@link KvBucket}. */
export async function readArchivers(
  records: Pick<KvBucket, "keys" | "read">,
): Promise<StoredArchiver[]> {
  const found: StoredArchiver[] = [];
  for (const key of await records.keys(ARCHIVER_KEYS)) {
    const entry = await records.read(key);
    if (entry === undefined) continue;
    const { revision, value } = entry;
    found.push({ key, revision, record: readable(() => parseArchiverRecord(value, key)) });
  }
  return found;
}

function parseShard(value: unknown): ArchivedShard {
  const numbers = asMap({ ...listField({ value }, "value", 4) }, "shard");
  const position = (at: number): Position => ({
    generation: integerField(numbers, `${at}`),
    seq: integerField(numbers, `${at + 1}`),
  });
  return { record: position(0), snapshot: position(2) };
}

/** Dependencies of {@link ArchiverWatch}. */
export interface ArchiverWatchDeps {
  readonly records: Pick<KvBucket, "keys" | "read" | "remove">;
  /** Milliseconds of a clock that never goes back. */
  readonly nowMs: () => number;
}

/** A version of an archiver's record, and when this host saw it first. */
interface Sighting {
  readonly revision: number;
  readonly sinceMs: number;
}

/**
 * Knows the archivers of a job. One whose record stays the same for longer than its grace time is taken to
 * be gone, and its record removed. Only this host's clock is used for that.
 */
export class ArchiverWatch {
  readonly #deps: ArchiverWatchDeps;
  #sightings: ReadonlyMap<string, Sighting> = new Map();

  constructor(deps: ArchiverWatchDeps) {
    this.#deps = deps;
  }

  /**
   * What each archiver that is alive has copied of a shard.
   * @throws TIMEOUT, JETSTREAM_UNAVAILABLE and the like.
   */
  async copied(shard: number): Promise<ArchivedShard[]> {
    const { records, nowMs } = this.#deps;
    const sightings = new Map<string, Sighting>();
    const copied: ArchivedShard[] = [];
    for (const { key, revision, record } of await readArchivers(records)) {
      const archived = record?.shards[shard];
      if (record === undefined || archived === undefined) continue;
      const before = this.#sightings.get(key);
      const sinceMs = before?.revision === revision ? before.sinceMs : nowMs();
      if (nowMs() - sinceMs > record.graceMs) {
        await records.remove(key, revision);
        continue;
      }
      sightings.set(key, { revision, sinceMs });
      copied.push(archived);
    }
    this.#sightings = sightings;
    return copied;
  }
}
