import type { HeadMark } from "../../actors/owner/head-mark.ts";
import type { PieceRef } from "../../actors/snapshot/manifest.ts";
import {
  ensureError,
  type Fields,
  type Message,
  type OwnerVerb,
  type Position,
  PserverError,
  type Synchronization,
} from "../../protocol/index.ts";
import type {
  HistorySource,
  JournalSpan,
  KeptSnapshot,
  ShardHistory,
  StoredTapeMessage,
  TapeStart,
  TimedRecord,
} from "../source.ts";
import { checkSameJob } from "./archive-facts.ts";
import { joinSpans } from "./join-spans.ts";
import { checkSameHistory } from "./same-history.ts";
import { readTapeAfter } from "./tape-after.ts";
import { uniqueSnapshots } from "./unique-snapshots.ts";

/** An archive and what the broker still holds, read as one: the archive's part first. */
export class JoinedSource implements HistorySource {
  readonly name: string;
  readonly #archive: HistorySource;
  readonly #live: HistorySource;

  private constructor(archive: HistorySource, live: HistorySource) {
    this.name = `${archive.name} and ${live.name}`;
    this.#archive = archive;
    this.#live = live;
  }

  /**
   * Joins two sources, which are closed with it.
   * @throws BAD_ARCHIVE if they are of different jobs.
   */
  static join(archive: HistorySource, live: HistorySource): JoinedSource {
    checkSameJob(archive.name, archive, live);
    return new JoinedSource(archive, live);
  }

  get job(): string {
    return this.#live.job;
  }

  get shards(): number {
    return this.#live.shards;
  }

  get synchronization(): Synchronization {
    return this.#live.synchronization;
  }

  shard(shard: number): ShardHistory {
    return new JoinedShard(this.#archive.name, this.#archive.shard(shard), this.#live.shard(shard));
  }

  async askOwner(shard: number, verb: OwnerVerb, fields: Fields): Promise<Message> {
    const reply = await this.#live.askOwner?.(shard, verb, fields);
    if (reply !== undefined) return reply;
    throw new PserverError("NO_OWNER", `${this.#live.name}: no host can be asked`, { shard });
  }

  async close(): Promise<void> {
    await Promise.all([this.#archive.close(), this.#live.close()]);
  }
}

/** One shard of an archive and a broker. Before anything is read, the two are compared. */
class JoinedShard implements ShardHistory {
  readonly shard: number;
  readonly #path: string;
  readonly #archive: ShardHistory;
  readonly #live: ShardHistory;
  #checked: Promise<void> | undefined;

  constructor(path: string, archive: ShardHistory, live: ShardHistory) {
    this.shard = live.shard;
    this.#path = path;
    this.#archive = archive;
    this.#live = live;
  }

  async spans(): Promise<JournalSpan[]> {
    await this.#check();
    // The broker first: what it trims meanwhile is in the archive by then.
    const live = await this.#live.spans();
    return joinSpans([...(await this.#archive.spans()), ...live]);
  }

  async snapshots(): Promise<KeptSnapshot[]> {
    await this.#check();
    const live = await this.#live.snapshots();
    return uniqueSnapshots([...(await this.#archive.snapshots()), ...live]);
  }

  async piece(ref: PieceRef): Promise<Uint8Array> {
    try {
      return await this.#archive.piece(ref);
    } catch (error) {
      if (ensureError(error).code !== "SNAPSHOT_DAMAGED") throw error;
      return await this.#live.piece(ref);
    }
  }

  async *read(
    { generation, seq }: Position,
    toSeq: number,
    signal: AbortSignal,
  ): AsyncGenerator<readonly TimedRecord[]> {
    await this.#check();
    let lastSeq = seq;
    let isLost = false;
    while (lastSeq < toSeq) {
      const { source, partTo } = await this.#partAfter({ generation, seq: lastSeq }, toSeq);
      try {
        for await (const batch of source.read({ generation, seq: lastSeq }, partTo, signal)) {
          lastSeq = batch.at(-1)?.seq ?? lastSeq;
          isLost = false;
          yield batch;
        }
      } catch (error) {
        // What the broker has trimmed meanwhile may be in the archive by now.
        if (isLost || ensureError(error).code !== "HISTORY_LOST") throw error;
        isLost = true;
      }
    }
  }

  async mark(): Promise<HeadMark | undefined> {
    return await this.#live.mark?.();
  }

  async *readTape(start: TapeStart, signal: AbortSignal): AsyncGenerator<StoredTapeMessage> {
    await this.#check();
    let last: StoredTapeMessage | undefined;
    for await (const message of this.#archive.readTape?.(start, signal) ?? []) {
      last = message;
      yield message;
    }
    if (last === undefined) yield* this.#live.readTape?.(start, signal) ?? [];
    else yield* readTapeAfter(this.#live, last, signal);
  }

  async positionAt(timeMs: number): Promise<Position | undefined> {
    await this.#check();
    const live = await this.#live.positionAt(timeMs);
    if (live !== undefined) return live;
    const position = await this.#archive.positionAt(timeMs);
    if (position === undefined) return undefined;
    const { generation, seq } = position;
    const spans = (await this.spans()).filter((span) => span.generation === generation);
    const isLast = spans.every(({ lastSeq }) => lastSeq <= seq);
    const isFollowed = spans.some(({ firstSeq, lastSeq }) => firstSeq <= seq + 1 && seq < lastSeq);
    // Which of the records that both lack were stored before is not known.
    return isLast || isFollowed ? position : undefined;
  }

  /** Who has the record after a position, and up to which one it is read there. */
  async #partAfter(
    { generation, seq }: Position,
    toSeq: number,
  ): Promise<{ source: ShardHistory; partTo: number }> {
    const spans = (await this.#archive.spans()).filter((span) => span.generation === generation);
    const held = spans.find(({ firstSeq, lastSeq }) => firstSeq <= seq + 1 && seq < lastSeq);
    if (held !== undefined) return { source: this.#archive, partTo: Math.min(toSeq, held.lastSeq) };
    const next = spans.find(({ firstSeq }) => firstSeq > seq + 1);
    return { source: this.#live, partTo: Math.min(toSeq, (next?.firstSeq ?? toSeq + 1) - 1) };
  }

  #check(): Promise<void> {
    const { signal } = new AbortController();
    this.#checked ??= checkSameHistory(this.#path, this.#archive, this.#live, signal).catch(
      (error: unknown) => {
        this.#checked = undefined;
        throw error;
      },
    );
    return this.#checked;
  }
}
