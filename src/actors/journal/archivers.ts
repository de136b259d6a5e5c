import { errorFromWire, visible } from "../../protocol/errors.ts";
import {
  asMap,
  ensureError,
  integerField,
  listField,
  type Position,
  PserverError,
  SHARDS_MAX,
  textField,
  type WireError,
} from "../../protocol/index.ts";
import { readable } from "../fold/journal-record.ts";
import type { KvBucket, KvEntry } from "./kv-bucket.ts";
import { ENTRY_FORMAT, readEntry, replaceEntry } from "./kv-bucket.ts";

/** Prefix of the keys of all archivers in the job's bucket. */
const ARCHIVER_KEYS = "archiver.";

/** Prefix of the keys of archivers for which hosts wait no more. */
const STOPPED_KEYS = "stopped-archiver.";

/** How long an archiver that has stopped is shown, by its own clock and that of the host that is asked. */
const STOPPED_MS_MAX = 7 * 86_400_000;

/** Archivers that may be registered at one time, and those that have stopped of which hosts keep the entries. */
export const ARCHIVERS_MAX = 64;

/** Limit of the text of a failure. */
const MESSAGE_MAX = 4_096;

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
  /** Identity of the run that has written it: only that may write it again. */
  readonly run: string;
  readonly machine: string;
  readonly pid: number;
  /** When the archiver wrote the entry by its own clock, in milliseconds since 1970; only shown to people. */
  readonly writtenMs: number;
  /** How long hosts wait for the archiver after its entry has last changed. */
  readonly graceMs: number;
  /** By the same clock: what the job had then is archived; absent before that is known of any time. */
  readonly completeMs?: number;
  /** Why the archiver has ended before it was told to; absent while it runs. */
  readonly failure?: Pick<WireError, "code" | "message">;
  /** Its copies, by the shard's number. */
  readonly shards: readonly ArchivedShard[];
}

/** Returns the key of an archiver's entry. */
export function archiverKey(archiver: string): string {
  return `${ARCHIVER_KEYS}${archiver}`;
}

/** Returns the key of the entry of an archiver for which hosts wait no more. */
export function stoppedArchiverKey(archiver: string): string {
  return `${STOPPED_KEYS}${archiver}`;
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
    run: textField(fields, "run"),
    machine: textField(fields, "machine"),
    pid: integerField(fields, "pid"),
    writtenMs: integerField(fields, "writtenMs"),
    graceMs: integerField(fields, "graceMs", 0, GRACE_MS_MAX),
    ...(fields["completeMs"] !== undefined && { completeMs: integerField(fields, "completeMs") }),
    ...(fields["failure"] !== undefined && { failure: parseFailure(fields["failure"]) }),
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

/**
 * Checks that a job has a place for an archiver that is not registered.
 * @throws QUOTA; the errors of {@link KvBucket}.
 */
export async function requireArchiverPlace(
  bucket: Pick<KvBucket, "keys">,
  archiver: string,
): Promise<void> {
  const others = (await bucket.keys(ARCHIVER_KEYS)).filter((key) => key !== archiverKey(archiver));
  if (others.length < ARCHIVERS_MAX) return;
  throw new PserverError(
    "QUOTA",
    `expected at most ${ARCHIVERS_MAX} archivers of the job; received one more. No setting raises that: end one, or ` +
      "wait until hosts have forgotten one that is gone, after the --grace that it was started with",
    { expected: ARCHIVERS_MAX, received: others.length + 1 },
  );
}

/** Reads the entries of all registered archivers. @throws the errors of {@link KvBucket}. */
export async function readArchivers(
  bucket: Pick<KvBucket, "keys" | "read">,
): Promise<StoredArchiver[]> {
  return await readEntries(bucket, ARCHIVER_KEYS);
}

/**
 * Reads the entries of archivers that have stopped in the last days, and were neither started again nor ended in order
 * since; those that this version cannot read are left out.
 * @throws the errors of {@link KvBucket}.
 */
export async function readStoppedArchivers(
  bucket: Pick<KvBucket, "keys" | "read">,
  nowMs: number,
): Promise<ArchiverEntry[]> {
  const stored = await readEntries(bucket, STOPPED_KEYS);
  return stored.flatMap(({ entry }) =>
    entry !== undefined && nowMs - entry.writtenMs < STOPPED_MS_MAX ? [entry] : [],
  );
}

async function readEntries(
  bucket: Pick<KvBucket, "keys" | "read">,
  prefix: string,
): Promise<StoredArchiver[]> {
  const archivers: StoredArchiver[] = [];
  for (const key of await bucket.keys(prefix)) {
    const entry = await readUnlessDamaged(bucket, key);
    if (entry === undefined) continue;
    const { revision, value } = entry;
    archivers.push({ key, revision, entry: readable(() => parseArchiverEntry(value, key)) });
  }
  return archivers;
}

function parseFailure(value: unknown): Pick<WireError, "code" | "message"> {
  const fields = asMap(value, "failure");
  return { code: textField(fields, "code"), message: textField(fields, "message", MESSAGE_MAX) };
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
  readonly bucket: Pick<KvBucket, "keys" | "read" | "create" | "update" | "remove">;
  /** Milliseconds of a clock that never decreases. */
  readonly nowMs: () => number;
  /** Called when this host has given an archiver up, on behalf of a shard; the error says why the archiver stopped. */
  readonly onStopped: (shard: number, error: PserverError) => void;
}

/** A revision of an archiver's entry, and when this host first saw it. */
interface SeenVersion {
  readonly revision: number;
  readonly sinceMs: number;
}

/**
 * Watches the archivers of a job. An archiver whose entry stays the same for longer than its grace time is taken to
 * be gone: its entry is removed, and kept under another key for people. Only this host's clock counts.
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
        if (await giveUp(bucket, key, revision, entry)) {
          this.#deps.onStopped(shard, stoppedError(entry));
        }
        continue;
      }
      sightings.set(key, { revision, sinceMs });
      copied.push(archived);
    }
    this.#sightings = sightings;
    return copied;
  }
}

/** Removes the entry of an archiver that is gone, and keeps it as one that has stopped; returns whether this host did. */
async function giveUp(
  bucket: ArchiverWatchDeps["bucket"],
  key: string,
  revision: number,
  entry: ArchiverEntry,
): Promise<boolean> {
  const stoppedKey = stoppedArchiverKey(entry.archiver);
  const former = await bucket.read(stoppedKey);
  const kept = await replaceEntry(bucket, stoppedKey, toArchiverJson(entry), former?.revision);
  if (await bucket.remove(key, revision)) {
    await forgetStopped(bucket);
    return true;
  }
  // The archiver is there again, or another host was faster.
  if (kept !== undefined && (await bucket.read(key)) !== undefined) {
    await bucket.remove(stoppedKey, kept);
  }
  return false;
}

/** Removes the oldest entries of stopped archivers beyond {@link ARCHIVERS_MAX}. */
async function forgetStopped(bucket: Pick<KvBucket, "keys" | "read" | "remove">): Promise<void> {
  if ((await bucket.keys(STOPPED_KEYS)).length <= ARCHIVERS_MAX) return;
  const stored = await readEntries(bucket, STOPPED_KEYS);
  const newestFirst = stored.sort((a, b) => b.revision - a.revision);
  for (const { key, revision } of newestFirst.slice(ARCHIVERS_MAX)) {
    await bucket.remove(key, revision);
  }
}

/** Makes the error that says why an archiver has stopped. */
function stoppedError({ machine, pid, graceMs, failure }: ArchiverEntry): PserverError {
  const text = `the archiver, process ${pid} on ${visible(machine)},`;
  if (failure === undefined) {
    return new PserverError("TIMEOUT", `${text} has said nothing for ${graceMs} ms`, { pid });
  }
  return errorFromWire({ ...failure, message: `${text} has ended: ${failure.message}` });
}
