import { changedRecordsOf } from "../../actors/fold/journal-checksum.ts";
import type { Shard } from "../../actors/fold/shard.ts";
import type { PieceRef } from "../../actors/journal/manifest.ts";
import type { Watermark } from "../../actors/journal/watermark.ts";
import type { ArchivedState, RecoveryArchive } from "../../actors/recovery/inspect-snapshots.ts";
import { ensureError, JobSubjects, type Position, PserverError } from "../../protocol/index.ts";
import type { ConnectionSettings } from "../../transport/connection.ts";
import { BrokerHistory } from "../broker-history.ts";
import { replayShard } from "../replay/replay-shard.ts";
import {
  type HistorySource,
  historyLost,
  type Inventory,
  type JournalSpan,
  type KeptSnapshot,
  rebuildableRanges,
  recordAt,
  type ShardHistory,
  type StoredTapeMessage,
  type TapeStart,
  type TimedRecord,
  takeInventory,
} from "../source.ts";
import { checkSameJob, uniqueSnapshots } from "./archive-layout.ts";
import { ArchiveSource } from "./archive-source.ts";
import { joinSpans, withoutSpans } from "./segment.ts";

/** Number of records that are tried until one can be read on both sides. */
const TRIED_MAX = 8;

/**
 * Checks that two histories of a shard do not contradict each other: where both hold records of a generation, the
 * last one that can be read in both is the same, and so is the journal of which their snapshots were made.
 * @throws BAD_ARCHIVE, which names the archive by `path`; errors of the sides.
 */
export async function checkSameHistory(
  path: string,
  archive: ShardHistory,
  broker: ShardHistory,
  signal: AbortSignal,
): Promise<void> {
  const compare: Compare = async ({ generation, firstSeq, lastSeq }) => {
    for (let seq = lastSeq; seq >= Math.max(firstSeq, lastSeq - TRIED_MAX + 1); seq--) {
      try {
        return await areSameAt(archive, broker, { generation, seq }, signal);
      } catch (error) {
        // A damaged record says nothing about whose history this is.
        if (ensureError(error).code !== "JOURNAL_DAMAGED") throw error;
      }
    }
    return true;
  };
  const range = await contradiction(path, archive, broker, compare);
  if (range === undefined) return;
  throw contradictsBroker(
    path,
    `record ${range.lastSeq} of shard ${archive.shard} is another than in the broker`,
  );
}

/** Whether the last of the records that two histories hold is the same in both. */
type Compare = (range: JournalSpan) => Promise<boolean>;

/**
 * Returns the range of records that both histories of a shard hold if the last one of them differs, as `compare` says;
 * undefined if it does not.
 * @throws BAD_ARCHIVE if their snapshots were made of journals created at different times; errors of the sides.
 */
async function contradiction(
  path: string,
  archive: ShardHistory,
  broker: ShardHistory,
  compare: Compare,
): Promise<JournalSpan | undefined> {
  const [archived, live] = await Promise.all([takeInventory(archive), takeInventory(broker)]);
  const { shard } = archive;
  for (const generation of generationsOf(archived)) {
    const [own, other] = [createdOf(archived, generation), createdOf(live, generation)];
    if (own !== undefined && other !== undefined && own !== other) {
      const what = `the journal of shard ${shard}, generation ${generation}`;
      throw contradictsBroker(
        path,
        `${what}, was created at ${own}; in the broker it was at ${other}`,
      );
    }
    const range = commonRecords(archived, live, generation);
    if (range !== undefined && !(await compare(range))) return range;
  }
  return undefined;
}

/**
 * Returns the first record of a range that differs, given that the last one does: a broker that has cut its journal
 * off gives all later numbers to other records. A record that cannot be read counts as one that differs.
 */
async function firstDifference(
  archive: ShardHistory,
  broker: ShardHistory,
  { generation, firstSeq, lastSeq }: JournalSpan,
  signal: AbortSignal,
): Promise<number> {
  let [low, high] = [firstSeq, lastSeq];
  while (low < high) {
    const seq = Math.floor((low + high) / 2);
    if (await areReadablyTheSame(archive, broker, { generation, seq }, signal)) low = seq + 1;
    else high = seq;
  }
  return low;
}

async function areReadablyTheSame(
  archive: ShardHistory,
  broker: ShardHistory,
  at: Position,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    return await areSameAt(archive, broker, at, signal);
  } catch (error) {
    if (ensureError(error).code !== "JOURNAL_DAMAGED") throw error;
    return false;
  }
}

/** Whether the records at a position are the same. If one of the two was trimmed, they count as the same. */
async function areSameAt(
  archive: ShardHistory,
  broker: ShardHistory,
  at: Position,
  signal: AbortSignal,
): Promise<boolean> {
  const [ours, theirs] = await Promise.all([
    recordAt(archive, at, signal),
    recordAt(broker, at, signal),
  ]);
  return ours === undefined || theirs === undefined || isSame(ours, theirs);
}

function generationsOf({ spans, snapshots }: Inventory): Set<number> {
  const ofSnapshots = snapshots.map(({ manifest }) => manifest.generation);
  return new Set([...spans.map(({ generation }) => generation), ...ofSnapshots]);
}

/** Returns when the journal of a generation was created, according to snapshots; the first ones may not know it. */
function createdOf({ snapshots }: Inventory, generation: number): string | undefined {
  const newest = snapshots.findLast(
    ({ manifest }) => manifest.generation === generation && manifest.created !== "",
  );
  return newest?.manifest.created;
}

/** Returns the latest records of a generation that both hold. */
function commonRecords(a: Inventory, b: Inventory, generation: number): JournalSpan | undefined {
  const common = a.spans.flatMap((ours) =>
    b.spans.flatMap((theirs) => {
      if (ours.generation !== generation || theirs.generation !== generation) return [];
      const firstSeq = Math.max(ours.firstSeq, theirs.firstSeq, 1);
      const lastSeq = Math.min(ours.lastSeq, theirs.lastSeq);
      return lastSeq < firstSeq ? [] : [{ generation, firstSeq, lastSeq }];
    }),
  );
  return common.sort((one, other) => other.lastSeq - one.lastSeq)[0];
}

function isSame(a: TimedRecord, b: TimedRecord): boolean {
  const isSamePlace = a.seq === b.seq && a.subject === b.subject && a.timeMs === b.timeMs;
  return isSamePlace && Buffer.compare(a.payload, b.payload) === 0;
}

/** Makes the BAD_ARCHIVE for an archive that contradicts the broker. */
export function contradictsBroker(path: string, problem: string): PserverError {
  const text = `${path}: this is the archive of another life of the job: ${problem}`;
  return new PserverError("BAD_ARCHIVE", text, { path });
}

/**
 * Reads the messages of a source's tape after the one that was copied last; all if none was. Where the source has
 * another message in its place, because the end of its tape was lost and written again, reads those stored at that
 * time or later: whoever reads the lines skips those that come twice.
 * @throws errors of the source; the reason of `signal`.
 */
export async function* readTapeAfter(
  history: Pick<ShardHistory, "readTape">,
  last: StoredTapeMessage | undefined,
  signal: AbortSignal,
): AsyncGenerator<StoredTapeMessage, void, undefined> {
  const fromMs = last?.timeMs ?? 0;
  if (last !== undefined) {
    const { seq } = last;
    let isFollowed = false;
    for await (const message of history.readTape?.({ kind: "message", seq }, signal) ?? []) {
      if (isFollowed) yield message;
      else if (isSameMessage(message, last)) isFollowed = true;
      else break;
    }
    if (isFollowed) return;
  }
  yield* history.readTape?.({ kind: "time", timeMs: fromMs }, signal) ?? [];
}

function isSameMessage(a: StoredTapeMessage, b: StoredTapeMessage): boolean {
  return a.seq === b.seq && a.timeMs === b.timeMs && Buffer.compare(a.data, b.data) === 0;
}

/**
 * Reads an archive and what the broker still holds as one history, the archive's part first. Closing it closes both.
 * @throws BAD_ARCHIVE if they are of different jobs.
 */
export function joinHistories(archive: HistorySource, live: HistorySource): HistorySource {
  checkSameJob(archive.name, archive, live);
  const { job, shards, synchronization, settings } = live;
  return {
    ...{ name: `${archive.name} and ${live.name}`, job, shards, synchronization },
    ...(settings && { settings }),
    shard: (shard) => new JoinedShard(archive.name, archive.shard(shard), live.shard(shard)),
    ...(live.askOwner && { askOwner: live.askOwner.bind(live) }),
    close: async () => {
      await Promise.all([archive.close(), live.close()]);
    },
  };
}

/** One shard of an archive and a broker. The two are compared before anything is read. */
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
    // The broker first: what it trims in between is in the archive when that is listed.
    const live = await this.#live.spans();
    return joinSpans([...(await this.#archive.spans()), ...live]);
  }

  async gaps(): Promise<JournalSpan[]> {
    await this.#check();
    const live = await this.#live.spans();
    const gaps = (await this.#archive.gaps?.()) ?? [];
    const trimmed = gaps.map((gap) => {
      const [first] = live.filter(({ generation }) => generation === gap.generation);
      // From its first record on, the broker has all of them.
      const lastSeq = first === undefined ? gap.lastSeq : Math.min(gap.lastSeq, first.firstSeq - 1);
      return { ...gap, lastSeq };
    });
    return withoutSpans(trimmed, live);
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
        // What the broker has trimmed since may be in the archive now.
        if (isLost || ensureError(error).code !== "HISTORY_LOST") throw error;
        isLost = true;
      }
    }
  }

  async watermark(): Promise<Watermark | undefined> {
    return await this.#live.watermark?.();
  }

  async *readTape(start: TapeStart, signal: AbortSignal): AsyncGenerator<StoredTapeMessage> {
    await this.#check();
    let last: StoredTapeMessage | undefined;
    let damage: PserverError | undefined;
    try {
      for await (const message of this.#archive.readTape?.(start, signal) ?? []) {
        last = message;
        yield message;
      }
    } catch (error) {
      damage = ensureError(error);
      if (damage.code !== "BAD_ARCHIVE") throw error;
    }
    if (last === undefined) yield* this.#live.readTape?.(start, signal) ?? [];
    else yield* readTapeAfter(this.#live, last, signal);
    if (damage !== undefined) throw damage;
  }

  async isTapeTrimmed(): Promise<boolean> {
    for (const source of [this.#archive, this.#live]) {
      if (await source.isTapeTrimmed?.()) return true;
    }
    return false;
  }

  async lastUpTo(span: JournalSpan, timeMs: number): Promise<number> {
    const { generation, firstSeq, lastSeq } = span;
    const held: { source: ShardHistory; part: JournalSpan }[] = [];
    for (const source of [this.#live, this.#archive]) {
      for (const own of await source.spans()) {
        if (own.generation !== generation) continue;
        const part = {
          generation,
          firstSeq: Math.max(firstSeq, own.firstSeq),
          lastSeq: Math.min(lastSeq, own.lastSeq),
        };
        if (part.firstSeq <= part.lastSeq) held.push({ source, part });
      }
    }
    // Of parts that end alike the broker's is first: it searches without reading.
    for (const { source, part } of held.sort((a, b) => b.part.lastSeq - a.part.lastSeq)) {
      const seq = await source.lastUpTo(part, timeMs);
      if (seq >= part.firstSeq) return seq;
    }
    return firstSeq - 1;
  }

  /** Returns the side that has the record after a position, and the record up to which it is read there. */
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

/**
 * An archive and the damaged history in the broker, for `pserver recover`. Both are read as one, so that records
 * the broker has lost come from the archive and those after the archive from the broker. Where the broker holds
 * other records in the place of lost ones, the archive is read alone.
 */
export class BrokerAndArchive implements RecoveryArchive {
  readonly #archive: ArchiveSource;
  readonly #broker: BrokerHistory;
  readonly #joined: HistorySource;
  readonly #signal: AbortSignal;

  private constructor(
    archive: ArchiveSource,
    broker: BrokerHistory,
    joined: HistorySource,
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
      return new BrokerAndArchive(archive, broker, joinHistories(archive, broker), signal);
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
    for (const part of rebuildableRanges(await takeInventory(history)).reverse()) {
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

  /**
   * Returns the history of a shard that is read, and the range of records of which the broker holds others at the
   * end.
   */
  async #historyOf(shard: number): Promise<{
    readonly history: ShardHistory;
    readonly replaced: JournalSpan | undefined;
  }> {
    const [archive, broker] = [this.#archive.shard(shard), this.#broker.shard(shard)];
    try {
      const compare: Compare = ({ generation, lastSeq: seq }) =>
        areSameAt(archive, broker, { generation, seq }, this.#signal);
      const replaced = await contradiction(this.name, archive, broker, compare);
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

  /** Returns the last record of a generation in the archive; 0 if it has none. */
  async #archivedSeq(shard: number, generation: number): Promise<number> {
    const spans = await this.#archive.shard(shard).spans();
    const own = spans.filter((span) => span.generation === generation);
    return Math.max(0, ...own.map(({ lastSeq }) => lastSeq));
  }

  /** Rebuilds the state at a position; returns the last record that can be folded if what follows it is damaged. */
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
 * Returns the last record before the one at which a rebuilding has failed; 0 if no snapshot before it can be loaded;
 * undefined for an error that says nothing about what is kept.
 */
function lastBefore(error: PserverError): number | undefined {
  const { code } = error;
  if (code === "SNAPSHOT_DAMAGED") return 0;
  if (code !== "JOURNAL_DAMAGED") return undefined;
  const { expected } = error.details;
  const from = changedRecordsOf(error)?.from ?? expected;
  return typeof from === "number" ? from - 1 : undefined;
}
