import { hostname } from "node:os";
import { isDeepStrictEqual } from "node:util";
import { mapConcurrently } from "../../actors/concurrent.ts";
import {
  type ArchivedShard,
  type ArchiverEntry,
  archiverKey,
  stoppedArchiverKey,
  toArchiverJson,
} from "../../actors/journal/archivers.ts";
import { type KvBucket, replaceEntry } from "../../actors/journal/kv-bucket.ts";
import { defined } from "../../protocol/fields.ts";
import { ensureError, type PserverError } from "../../protocol/index.ts";
import type { BrokerHistory } from "../broker-history.ts";
import type { HistorySource } from "../source.ts";
import { type ArchiveFacts, openArchive } from "./archive-layout.ts";
import { ShardArchiver, type ShardProgress } from "./shard-archiver.ts";

/** Bytes of a segment by default. */
const SEGMENT_BYTES: number = 64 * 1024 ** 2;

/** Shards copied at one time. */
const SHARDS_AT_ONCE = 4;

/** Options of {@link Archiver}. */
export interface ArchiverOptions {
  /** The history that is copied; it stays the caller's. */
  readonly source: HistorySource;
  /** Directory of the archive, made if it is not there. No other archiver may use it at the same time. */
  readonly directory: string;
  /** Bytes at which a segment is completed; {@link SEGMENT_BYTES} by default. */
  readonly segmentBytes?: number;
  /** Called when more is on disk. */
  readonly onCopied?: (shard: number, archived: ArchivedShard) => void;
  /** Called for a part that is damaged, in the archive or in the source; the rest is copied. */
  readonly onDamaged?: (error: PserverError) => void;
}

/** Copies the history of a job into a directory, again and again, from where it stopped. */
export class Archiver {
  readonly facts: ArchiveFacts;
  readonly #shards: readonly ShardArchiver[];

  private constructor(facts: ArchiveFacts, shards: readonly ShardArchiver[]) {
    this.facts = facts;
    this.#shards = shards;
  }

  /**
   * Opens the archive, or makes it, and tidies up after an archiver that died.
   * @throws BAD_ARCHIVE if the directory holds the archive of another job, BAD_VERSION, DISK_FULL, IO.
   */
  static async open(options: ArchiverOptions): Promise<Archiver> {
    const { source, directory, segmentBytes = SEGMENT_BYTES } = options;
    const { onCopied = () => undefined, onDamaged = () => undefined } = options;
    const facts = await openArchive(directory, source);
    const numbers = Array.from({ length: source.shards }, (_, shard) => shard);
    const shards = await mapConcurrently(
      numbers,
      (shard) => {
        const deps = { directory, facts, segmentBytes, onCopied, onDamaged };
        return ShardArchiver.open({ ...deps, source: source.shard(shard) });
      },
      SHARDS_AT_ONCE,
    );
    return new Archiver(facts, shards);
  }

  /** The newest archived positions, by shard. */
  get archived(): ArchivedShard[] {
    return this.#shards.map(({ archived }) => archived);
  }

  /** Progress of the shards, by their numbers. */
  get progress(): ShardProgress[] {
    return this.#shards.map(({ progress }) => progress);
  }

  /**
   * Copies what is in the source and not yet in the archive. After an error, everything copied before it is in the
   * archive.
   * @throws BAD_ARCHIVE if the archive is of another life of the job; DISK_FULL, IO; errors of the source; the reason
   * of `signal`.
   */
  async copy(signal: AbortSignal): Promise<void> {
    await mapConcurrently(this.#shards, (shard) => shard.copy(signal), SHARDS_AT_ONCE);
  }

  /** Completes the segments that are being written. To be called once. @throws DISK_FULL, IO. */
  async close(): Promise<void> {
    await mapConcurrently(this.#shards, (shard) => shard.close());
  }
}

/** How often an archiver renews its registration, at least in its grace time. */
const RENEWALS_PER_GRACE = 10;

/** The longest time between two renewals. */
const RENEW_MS_MAX = 2_000;

/** Dependencies of {@link ArchiverRegistration}. */
export interface RegistrationDeps {
  readonly bucket: Pick<KvBucket, "read" | "create" | "update" | "remove">;
  /** Identity of the archive: whoever archives into it again takes its registration over. */
  readonly archive: string;
  readonly graceMs: number;
  /** Returns the newest archived positions, by shard. */
  readonly archived: () => readonly ArchivedShard[];
  /** Returns when the archive had all that the job had, by the wall clock; undefined before that is known. */
  readonly completeMs: () => number | undefined;
  /** Called after each renewal that failed; the next one comes in its time. */
  readonly onFailure: (error: PserverError) => void;
}

/** Tells the hosts of a job how much an archiver has copied, so that they do not trim the rest. */
export class ArchiverRegistration {
  readonly #deps: RegistrationDeps;
  readonly #key: string;
  #timer: NodeJS.Timeout | undefined;
  /** The renewal that is under way: with a slow broker only one must be. */
  #writing: Promise<void> | undefined;
  #revision: number | undefined;
  /** The entry as this archiver has written it last. */
  #written: unknown;
  #failure: PserverError | undefined;

  constructor(deps: RegistrationDeps) {
    this.#deps = deps;
    this.#key = archiverKey(deps.archive);
  }

  /** Registers, and renews the registration from then on. @throws the errors of {@link KvBucket}. */
  async start(): Promise<void> {
    await this.#write();
    const renewMs = Math.min(RENEW_MS_MAX, this.#deps.graceMs / RENEWALS_PER_GRACE);
    this.#timer = setInterval(() => this.#renew(), renewMs);
  }

  /** Ends the renewals; the registration stays until hosts have waited for its grace time. */
  stop(): void {
    clearInterval(this.#timer);
  }

  /**
   * Ends the renewals, and says why the archiver has ended; hosts wait for its grace time.
   * @throws the errors of {@link KvBucket}.
   */
  async fail(error: PserverError): Promise<void> {
    this.stop();
    await this.#writing;
    this.#failure = error;
    await this.#write();
  }

  /**
   * Removes the registration, unless another archiver of the archive has taken it over.
   * @throws the errors of {@link KvBucket}.
   */
  async end(): Promise<void> {
    this.stop();
    await this.#writing;
    const stored = await this.#deps.bucket.read(this.#key);
    if (stored === undefined || !isDeepStrictEqual(stored.value, this.#written)) return;
    await this.#deps.bucket.remove(this.#key, stored.revision);
  }

  #renew(): void {
    this.#writing ??= this.#write()
      .catch((error: unknown) => {
        this.#revision = undefined;
        this.#deps.onFailure(ensureError(error));
      })
      .finally(() => {
        this.#writing = undefined;
      });
  }

  /** Writes the entry over whatever is there; hosts may have removed it. */
  async #write(): Promise<void> {
    const { bucket, archive, graceMs, archived, completeMs } = this.#deps;
    const { code, message } = this.#failure ?? {};
    const record: ArchiverEntry = {
      ...{ archiver: archive, machine: hostname(), pid: process.pid, graceMs },
      writtenMs: Date.now(),
      ...defined({ completeMs: completeMs() }),
      ...(code !== undefined && message !== undefined && { failure: { code, message } }),
      shards: archived(),
    };
    const json = toArchiverJson(record);
    this.#written = json;
    for (let isKnown = this.#revision !== undefined; ; isKnown = false) {
      this.#revision = await replaceEntry(bucket, this.#key, json, this.#revision);
      if (this.#revision !== undefined) {
        // Whoever has written the former entry may have stopped.
        if (!isKnown) await this.#forgetStopped();
        return;
      }
      this.#revision = (await bucket.read(this.#key))?.revision;
    }
  }

  async #forgetStopped(): Promise<void> {
    const { bucket, archive } = this.#deps;
    const key = stoppedArchiverKey(archive);
    const stored = await bucket.read(key);
    if (stored !== undefined) await bucket.remove(key, stored.revision);
  }
}

/** Options of {@link JobArchiver}. */
export interface JobArchiverOptions {
  /** The job in the broker; it is closed when the archiver ends, and if it cannot begin. */
  readonly source: BrokerHistory;
  /** Directory of the archive. */
  readonly directory: string;
  /** Called before the directory is used: keeps other archivers out of it. */
  readonly lock: () => Promise<void>;
  /** How long hosts keep what is not copied after the last renewal by this archiver. */
  readonly graceMs: number;
  /** Called for a part that is damaged, in the archive or in the broker; the rest is copied. */
  readonly onDamaged: (error: PserverError) => void;
  /** Called after each renewal that failed; the next one comes in its time. */
  readonly onUnregistered: (error: PserverError) => void;
}

/** When the archive had all that the job had, by the wall clock; undefined before the first complete copy. */
interface CompleteCopy {
  atMs: number | undefined;
}

/** Archives a job from the broker, registered with its hosts. */
export class JobArchiver {
  readonly #source: BrokerHistory;
  readonly #archiver: Archiver;
  readonly #registration: ArchiverRegistration;
  readonly #complete: CompleteCopy;

  private constructor(
    source: BrokerHistory,
    archiver: Archiver,
    registration: ArchiverRegistration,
    complete: CompleteCopy,
  ) {
    this.#source = source;
    this.#archiver = archiver;
    this.#registration = registration;
    this.#complete = complete;
  }

  /**
   * Opens the archive and registers; needs no host.
   * @throws what `lock` throws; NO_BROKER, DENIED, JETSTREAM_UNAVAILABLE, TIMEOUT; BAD_ARCHIVE if the directory holds the archive of another; BAD_VERSION, DISK_FULL, IO.
   */
  static async open(options: JobArchiverOptions): Promise<JobArchiver> {
    const { source, directory, graceMs, onDamaged, onUnregistered: onFailure } = options;
    try {
      await options.lock();
      const archiver = await Archiver.open({ source, directory, onDamaged });
      const complete: CompleteCopy = { atMs: undefined };
      const registration = new ArchiverRegistration({
        ...{ bucket: source.bucket, archive: archiver.facts.archive, graceMs, onFailure },
        archived: () => archiver.archived,
        completeMs: () => complete.atMs,
      });
      await registration.start();
      return new JobArchiver(source, archiver, registration, complete);
    } catch (error) {
      await source.close();
      throw error;
    }
  }

  /** Progress of the shards, by their numbers. */
  get progress(): ShardProgress[] {
    return this.#archiver.progress;
  }

  /** Copies what is there now. @throws as {@link Archiver.copy}. */
  async copy(signal: AbortSignal): Promise<void> {
    const beganMs = Date.now();
    await this.#archiver.copy(signal);
    this.#complete.atMs = beganMs;
  }

  /**
   * Completes the files, takes the registration back and closes the connection.
   * @throws DISK_FULL, IO; NO_BROKER and the like if the registration cannot be taken back.
   */
  async end(): Promise<void> {
    try {
      await this.#archiver.close();
      await this.#registration.end();
    } finally {
      this.#registration.stop();
      await this.#source.close();
    }
  }

  /**
   * Says in the registration why the archiver ends, if the broker can be reached, closes the connection and leaves the
   * rest as it is: hosts wait for the grace time.
   */
  async abandon(reason: PserverError): Promise<void> {
    // The reason is reported by whoever ends the archiver, too.
    await this.#registration.fail(reason).catch(() => undefined);
    await this.#source.close();
  }
}
