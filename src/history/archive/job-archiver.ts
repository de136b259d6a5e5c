import { mapConcurrently } from "../../actors/concurrent.ts";
import type { ArchivedShard } from "../../actors/journal/archivers.ts";
import type { KvBucket } from "../../actors/journal/kv-bucket.ts";
import { ensureError, type PserverError } from "../../protocol/index.ts";
import type { HistorySource } from "../source.ts";
import { type ArchiveFacts, openArchive } from "./archive-layout.ts";
import { ArchiverRegistration } from "./archiver-registration.ts";
import { NOTHING_ARCHIVED, ShardArchiver, type ShardProgress } from "./shard-archiver.ts";

/** Bytes of a segment by default. */
const SEGMENT_BYTES: number = 64 * 1024 ** 2;

/** Shards copied at one time. */
const SHARDS_AT_ONCE = 4;

/** Options of {@link Archiver}. */
export interface ArchiverOptions {
  /** The history that is copied; it stays the caller's. */
  readonly source: HistorySource;
  /** Directory of the archive, made if it is not there. */
  readonly directory: string;
  /** Bytes at which a segment is completed; {@link SEGMENT_BYTES} by default. */
  readonly segmentBytes?: number;
  /** Number of this run: higher than those of all runs that have archived into the directory before. */
  readonly run: number;
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
   * Opens the archive, or makes it, and tidies up after earlier runs.
   * @throws BAD_ARCHIVE if the directory holds the archive of another job, BAD_VERSION, DISK_FULL, IO.
   */
  static async open(options: ArchiverOptions): Promise<Archiver> {
    const { source, directory, run, segmentBytes = SEGMENT_BYTES } = options;
    const { onCopied = () => undefined, onDamaged = () => undefined } = options;
    const facts = await openArchive(directory, source);
    const numbers = Array.from({ length: source.shards }, (_, shard) => shard);
    const shards = await mapConcurrently(
      numbers,
      (shard) => {
        const deps = { directory, facts, run, segmentBytes, onCopied, onDamaged };
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

  /** Leaves the segments that are being written as they are: a later run completes them. */
  async abandon(): Promise<void> {
    await mapConcurrently(this.#shards, (shard) => shard.abandon());
  }
}

/** Options of {@link JobArchiver}. */
export interface JobArchiverOptions {
  /** The job in the broker; it is closed when the archiver ends, and if it cannot begin. */
  readonly source: HistorySource & { readonly bucket: KvBucket };
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

/** Archives a job from the broker, registered with its hosts. */
export class JobArchiver {
  readonly #options: JobArchiverOptions;
  readonly #registration: ArchiverRegistration;
  #archiver: Archiver | undefined;
  /** Whether the archiver is that of the run that is registered. */
  #hasBegun = false;
  /** When the archive had all that the job had, by the wall clock; undefined before the first complete copy. */
  #completeMs: number | undefined;

  private constructor(options: JobArchiverOptions, { archive }: ArchiveFacts) {
    this.#options = options;
    const { source, graceMs, directory, onUnregistered: onFailure } = options;
    this.#registration = new ArchiverRegistration({
      ...{ bucket: source.bucket, archive, directory, graceMs, onFailure },
      archived: () => this.#archived,
      completeMs: () => this.#completeMs,
    });
  }

  /**
   * Registers, also in place of a run that goes on elsewhere, and opens the archive; needs no host.
   * @throws what `lock` throws; NO_BROKER, DENIED, JETSTREAM_UNAVAILABLE, TIMEOUT; BAD_ARCHIVE if the directory holds
   * the archive of another; BAD_VERSION, DISK_FULL, IO.
   */
  static async open(options: JobArchiverOptions): Promise<JobArchiver> {
    const { source, directory, lock } = options;
    try {
      await lock();
      const opened = new JobArchiver(options, await openArchive(directory, source));
      await opened.#begin();
      return opened;
    } catch (error) {
      await source.close();
      throw error;
    }
  }

  /** Progress of the shards, by their numbers. */
  get progress(): ShardProgress[] {
    return this.#archiver?.progress ?? [];
  }

  /**
   * Copies what is there now. Begins anew if hosts have waited in vain for this archiver.
   * @throws STORE_IN_USE if a later run has taken the archive over; as {@link Archiver.copy}.
   */
  async copy(signal: AbortSignal): Promise<void> {
    for (;;) {
      if (!this.#hasBegun || this.#registration.isForgotten) await this.#begin();
      const beganMs = Date.now();
      try {
        await this.#copyRegistered(signal);
        this.#completeMs = beganMs;
        return;
      } catch (error) {
        if (signal.aborted || !this.#registration.isForgotten) throw error;
      }
    }
  }

  /**
   * Completes the files, takes the registration back and closes the connection.
   * @throws STORE_IN_USE if a later run has taken the archive over; DISK_FULL, IO; NO_BROKER and the like if the
   * registration cannot be taken back.
   */
  async end(): Promise<void> {
    try {
      await this.#registration.renew().catch(async (error: unknown) => {
        if (!this.#registration.isForgotten) throw error;
        await this.#begin();
      });
      await this.#archiver?.close();
      await this.#registration.end();
    } finally {
      await this.#leave();
    }
  }

  /**
   * Says in the registration why the archiver ends, if the broker can be reached, closes the connection and leaves the
   * rest as it is: hosts wait for the grace time.
   */
  async abandon(reason: PserverError): Promise<void> {
    // The reason is reported by whoever ends the archiver, too.
    await this.#registration.fail(reason).catch(() => undefined);
    await this.#leave();
  }

  /** Lets go of the registration, the files and the broker as they are. */
  async #leave(): Promise<void> {
    this.#registration.stop();
    await this.#archiver?.abandon();
    await this.#options.source.close();
  }

  /**
   * Begins a run. It registers before it touches the files: from then on hosts believe no earlier run any more, and this
   * one may take over what those have left.
   */
  async #begin(): Promise<void> {
    this.#hasBegun = false;
    await this.#archiver?.abandon();
    const { source, directory, onDamaged } = this.#options;
    const run = await this.#registration.start();
    try {
      this.#archiver = await Archiver.open({ source, directory, run, onDamaged });
    } catch (error) {
      // The reason is reported by whoever begins.
      await this.#registration.fail(ensureError(error)).catch(() => undefined);
      throw error;
    }
    this.#hasBegun = true;
    await this.#registration.renew();
  }

  /** What hosts are told; nothing before the run knows what the archive has. */
  get #archived(): readonly ArchivedShard[] {
    if (this.#hasBegun && this.#archiver !== undefined) return this.#archiver.archived;
    return Array.from({ length: this.#options.source.shards }, () => NOTHING_ARCHIVED);
  }

  /** Copies until there is no more, or the registration is lost, which is thrown then. */
  async #copyRegistered(signal: AbortSignal): Promise<void> {
    const { lost } = this.#registration;
    const either = new AbortController();
    const abort = (): void => either.abort(lost.aborted ? lost.reason : signal.reason);
    for (const each of [lost, signal]) each.addEventListener("abort", abort);
    if (lost.aborted || signal.aborted) abort();
    try {
      await this.#archiver?.copy(either.signal);
      lost.throwIfAborted();
    } finally {
      for (const each of [lost, signal]) each.removeEventListener("abort", abort);
    }
  }
}
