import {
  asMap,
  ensureError,
  integerField,
  listField,
  type Position,
  SHARDS_MAX,
  textField,
} from "../../protocol/index.ts";
import { readable } from "../fold/journal-record.ts";
import type { KvBucket, KvEntry } from "./kv-bucket.ts";
import { ENTRY_FORMAT, readEntry } from "./kv-bucket.ts";

/** Prefix of the keys of all archivers in the job's bucket. */
const ARCHIVER_KEYS = "archiver.";

/** The longest grace time that an archiver may ask for. */
const GRACE_MS_MAX = 86_400_000;

/**
 * How far an archiver has copied a shard: all records and snapshots up to these. Generation 0 stands for nothing yet.
 */
export interface ArchivedShard {
  readonly record: Position;
  readonly snapshot: Position;
}

/** The entry by which an archiver registers itself with a job. */
export interface ArchiverEntry {
  /** Identity of its archive. */
  readonly archiver: string;
  readonly machine: string;
  readonly pid: number;
  /** When the archiver wrote the entry by its own clock, in milliseconds since 1970; only shown to people. */
  readonly writtenMs: number;
  /** How long hosts wait for the archiver after its entry has last changed. */
  readonly graceMs: number;
  /** Its copies, by the shard's number. */
  readonly shards: readonly ArchivedShard[];
}

/** Returns the key of an archiver's entry. */
export function archiverKey(archiver: string): string {
  return `${ARCHIVER_KEYS}${archiver}`;
}

/** Returns the entry as JSON. */
export function toArchiverJson(entry: ArchiverEntry): unknown {
  const shards = entry.shards.map(({ record: last, snapshot }) => [
    ...[last.generation, last.seq],
    ...[snapshot.generation, snapshot.seq],
  ]);
  return { format: ENTRY_FORMAT, ...entry, shards };
}

/** Parses an archiver's entry. @throws BAD_VERSION for an entry of another format, JOB_DAMAGED for a damaged one. */
export function parseArchiverEntry(value: unknown, key: string): ArchiverEntry {
  return readEntry(value, key, (fields) => ({
    archiver: textField(fields, "archiver"),
    machine: textField(fields, "machine"),
    pid: integerField(fields, "pid"),
    writtenMs: integerField(fields, "writtenMs"),
    graceMs: integerField(fields, "graceMs", 0, GRACE_MS_MAX),
    shards: listField(fields, "shards", SHARDS_MAX).map(parseShard),
  }));
}

/** An archiver's entry in the job's bucket, with its key and revision. */
export interface StoredArchiver {
  readonly key: string;
  readonly revision: number;
  /** Undefined if it is damaged, or this version cannot read it. */
  readonly entry: ArchiverEntry | undefined;
}

/** Reads the entries of all registered archivers. @throws the errors of {@link KvBucket}. */
export async function readArchivers(
  bucket: Pick<KvBucket, "keys" | "read">,
): Promise<StoredArchiver[]> {
  const archivers: StoredArchiver[] = [];
  for (const key of await bucket.keys(ARCHIVER_KEYS)) {
    const entry = await readUnlessDamaged(bucket, key);
    if (entry === undefined) continue;
    const { revision, value } = entry;
    archivers.push({ key, revision, entry: readable(() => parseArchiverEntry(value, key)) });
  }
  return archivers;
}

/** Reads an entry; a damaged one, which must not keep hosts from trimming, counts as none. */
async function readUnlessDamaged(
  bucket: Pick<KvBucket, "read">,
  key: string,
): Promise<KvEntry | undefined> {
  try {
    return await bucket.read(key);
  } catch (error) {
    if (ensureError(error).code !== "JOB_DAMAGED") throw error;
    return undefined;
  }
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
  readonly bucket: Pick<KvBucket, "keys" | "read" | "remove">;
  /** Milliseconds of a clock that never decreases. */
  readonly nowMs: () => number;
}

/** A revision of an archiver's entry, and when this host first saw it. */
interface SeenVersion {
  readonly revision: number;
  readonly sinceMs: number;
}

/**
 * Watches the archivers of a job. An archiver whose entry stays the same for longer than its grace time is taken to
 * be gone, and its entry is removed. Only this host's clock counts.
 */
export class ArchiverWatch {
  readonly #deps: ArchiverWatchDeps;
  #sightings: ReadonlyMap<string, SeenVersion> = new Map();

  constructor(deps: ArchiverWatchDeps) {
    this.#deps = deps;
  }

  /**
   * Returns what each archiver that is alive has copied of a shard.
   * @throws TIMEOUT, JETSTREAM_UNAVAILABLE and the like.
   */
  async copied(shard: number): Promise<ArchivedShard[]> {
    const { bucket, nowMs } = this.#deps;
    const sightings = new Map<string, SeenVersion>();
    const copied: ArchivedShard[] = [];
    for (const { key, revision, entry } of await readArchivers(bucket)) {
      const archived = entry?.shards[shard];
      if (entry === undefined || archived === undefined) continue;
      const before = this.#sightings.get(key);
      const sinceMs = before?.revision === revision ? before.sinceMs : nowMs();
      if (nowMs() - sinceMs > entry.graceMs) {
        await bucket.remove(key, revision);
        continue;
      }
      sightings.set(key, { revision, sinceMs });
      copied.push(archived);
    }
    this.#sightings = sightings;
    return copied;
  }
}
