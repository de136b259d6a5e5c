import { changedOf } from "../../actors/fold/journal-checksum.ts";
import type { Shard } from "../../actors/fold/shard.ts";
import type { ArchivedState, RecoveryArchive } from "../../actors/recovery/recovery-archive.ts";
import {
  ensureError,
  JobSubjects,
  type Position,
  type PserverError,
} from "../../protocol/index.ts";
import type { ConnectionSettings } from "../../transport/connection.ts";
import { BrokerHistory } from "../broker/broker-history.ts";
import { historyLost } from "../history-lost.ts";
import { reachOf, takeInventory } from "../reach.ts";
import { replayShard } from "../replay/replay-shard.ts";
import type { JournalSpan, ShardHistory } from "../source.ts";
import { ArchiveSource } from "./archive-source.ts";
import { JoinedSource } from "./joined-source.ts";
import { contradiction, firstDifference } from "./same-history.ts";

/**
 * An archive and the damaged history in the broker, for `pserver recover`. Both are read as one, so that records
 * the broker has lost come from the archive and those after the archive from the broker. Where the broker holds
 * other records in the place of lost ones, the archive is read alone.
 */
export class BrokerAndArchive implements RecoveryArchive {
  readonly #archive: ArchiveSource;
  readonly #broker: BrokerHistory;
  readonly #joined: JoinedSource;
  readonly #signal: AbortSignal;

  private constructor(
    archive: ArchiveSource,
    broker: BrokerHistory,
    joined: JoinedSource,
    signal: AbortSignal,
  ) {
    this.#archive = archive;
    this.#broker = broker;
    this.#joined = joined;
    this.#signal = signal;
  }

  /**
   * Opens the archive in a directory, and the job in the broker; the caller closes it.
   * @throws BAD_ARCHIVE, BAD_VERSION, IO for the archive; NO_BROKER, DENIED, BAD_NAME and the like.
   */
  static async open(
    directory: string,
    reach: ConnectionSettings,
    job: string,
    signal: AbortSignal,
  ): Promise<BrokerAndArchive> {
    const archive = await ArchiveSource.open(directory);
    const broker = await BrokerHistory.open(reach, job);
    try {
      return new BrokerAndArchive(archive, broker, JoinedSource.join(archive, broker), signal);
    } catch (error) {
      await broker.close();
      throw error;
    }
  }

  get name(): string {
    return this.#archive.name;
  }

  async newest(shard: number): Promise<ArchivedState> {
    const { history, replaced } = await this.#historyOf(shard);
    for (const part of reachOf(await takeInventory(history)).reverse()) {
      const { generation, firstSeq, lastSeq } = part;
      for (let seq = lastSeq; seq >= firstSeq; ) {
        const at = { generation, seq };
        const found = await this.#try(history, at);
        if (found.kind === "state") {
          const archivedSeq = await this.#archivedSeq(shard, generation);
          const replacedFrom =
            replaced?.generation === generation
              ? await this.#firstReplaced(shard, replaced)
              : undefined;
          return { at, archivedSeq, replacedFrom, shard: found.shard };
        }
        seq = Math.min(seq - 1, found.beforeSeq);
      }
    }
    throw historyLost(shard, "a state that can be rebuilt", undefined);
  }

  async rebuild(shard: number, at: Position): Promise<Shard> {
    return await this.#replay((await this.#historyOf(shard)).history, at);
  }

  /** Closes the connection. */
  async close(): Promise<void> {
    await this.#joined.close();
  }

  /** What is read of a shard, and the records of which the broker holds others at the end. */
  async #historyOf(shard: number): Promise<{
    readonly history: ShardHistory;
    readonly replaced: JournalSpan | undefined;
  }> {
    const [archive, broker] = [this.#archive.shard(shard), this.#broker.shard(shard)];
    try {
      const replaced = await contradiction(this.name, archive, broker, this.#signal);
      return { history: replaced === undefined ? this.#joined.shard(shard) : archive, replaced };
    } catch (error) {
      // The last record that both should hold cannot be read in the broker.
      if (ensureError(error).code !== "JOURNAL_DAMAGED") throw error;
      return { history: archive, replaced: undefined };
    }
  }

  async #firstReplaced(shard: number, range: JournalSpan): Promise<number> {
    const [archive, broker] = [this.#archive.shard(shard), this.#broker.shard(shard)];
    return await firstDifference(archive, broker, range, this.#signal);
  }

  /** Last record of a generation in the archive; 0 if it has none. */
  async #archivedSeq(shard: number, generation: number): Promise<number> {
    const spans = await this.#archive.shard(shard).spans();
    const own = spans.filter((span) => span.generation === generation);
    return Math.max(0, ...own.map(({ lastSeq }) => lastSeq));
  }

  /** The state at a position, or the last record that can be folded before what is damaged. */
  async #try(
    history: ShardHistory,
    at: Position,
  ): Promise<{ kind: "state"; shard: Shard } | { kind: "damaged"; beforeSeq: number }> {
    try {
      return { kind: "state", shard: await this.#replay(history, at) };
    } catch (error) {
      const beforeSeq = lastBefore(ensureError(error));
      if (beforeSeq === undefined) throw error;
      return { kind: "damaged", beforeSeq };
    }
  }

  async #replay(history: ShardHistory, at: Position): Promise<Shard> {
    const subjects = new JobSubjects(this.#archive.job);
    return await replayShard(history, at, { subjects, signal: this.#signal });
  }
}

/**
 * The last record before the one that a rebuilding has failed at; 0 if no snapshot before it can be loaded, and
 * undefined for an error that says nothing about what is kept.
 */
function lastBefore(error: PserverError): number | undefined {
  const { code } = error;
  if (code === "SNAPSHOT_DAMAGED") return 0;
  if (code !== "JOURNAL_DAMAGED") return undefined;
  const { expected } = error.details;
  const from = changedOf(error)?.from ?? expected;
  return typeof from === "number" ? from - 1 : undefined;
}
