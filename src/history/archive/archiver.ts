import type { ArchivedShard } from "../../actors/archivers/archiver-record.ts";
import { mapConcurrently } from "../../actors/concurrent.ts";
import type { PserverError } from "../../protocol/index.ts";
import type { HistorySource } from "../source.ts";
import { type ArchiveFacts, openArchive } from "./archive-facts.ts";
import { ShardArchiver, type ShardProgress } from "./shard-archiver.ts";

/** Bytes of a segment by default. */
const SEGMENT_BYTES: number = 64 * 1024 ** 2;

/** Shards copied at one time. */
const SHARDS_AT_ONCE = 4;

/** How to archive a job. */
export interface ArchiverOptions {
  /** What is copied; it stays the caller's. */
  readonly source: HistorySource;
  /** Directory of the archive, made if it is not there. No other archiver may use it at the same time. */
  readonly directory: string;
  /** Bytes from which on a segment is completed; {@link SEGMENT_BYTES} by default. */
  readonly segmentBytes?: number;
  /** Called when more is on disk. */
  readonly onCopied?: (shard: number, archived: ArchivedShard) => void;
  /** Called for a part that is damaged, in the archive or where it is kept; the rest is copied. */
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

  /** What is archived, by shard. */
  get archived(): ArchivedShard[] {
    return this.#shards.map(({ archived }) => archived);
  }

  /** How far the shards are, by their numbers. */
  get progress(): ShardProgress[] {
    return this.#shards.map(({ progress }) => progress);
  }

  /**
   * Copies what is there now.
   * @throws BAD_ARCHIVE if the archive is of another life of the job; DISK_FULL, IO; what the source
   * throws; the reason of `signal`. What was copied before is in the archive.
   */
  async copy(signal: AbortSignal): Promise<void> {
    await mapConcurrently(this.#shards, (shard) => shard.copy(signal), SHARDS_AT_ONCE);
  }

  /** Completes the segments that are being written. To be called once. @throws DISK_FULL, IO. */
  async close(): Promise<void> {
    await mapConcurrently(this.#shards, (shard) => shard.close());
  }
}
