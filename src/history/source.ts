import type { NotedChecksum } from "../actors/fold/journal-checksum.ts";
import { type JournalRecord, readable, readRecordMessage } from "../actors/fold/journal-record.ts";
import type { StoredSettings } from "../actors/job/job-settings.ts";
import type { UpdateVerb } from "../actors/journal/describe-record.ts";
import { journalDamaged } from "../actors/journal/journal-check.ts";
import type { PieceRef, StoredManifest } from "../actors/journal/manifest.ts";
import { notedChecksums, type Watermark } from "../actors/journal/watermark.ts";
import {
  comparePositions,
  ensureError,
  type Fields,
  JobSubjects,
  type Message,
  type OwnerVerb,
  type Position,
  PserverError,
  parseRecordHeader,
  type ShardKnowledge,
  type Synchronization,
} from "../protocol/index.ts";
import { showPosition } from "../protocol/messages/position.ts";
import type { EntryProblem } from "../protocol/messages/shard-knowledge.ts";
import type { ConnectionSettings } from "../transport/connection.ts";

/** Where the history of a job is kept: plain data, so that worker threads can open it, too. */
export type HistoryPlace =
  | {
      readonly kind: "broker";
      readonly connection: ConnectionSettings;
      readonly job: string;
      /** Directory of an archive, or a recorded file, that is read together with the broker, as one history. */
      readonly archive?: string;
    }
  | { readonly kind: "archive"; readonly archive: string };

/** A record of a journal with the time at which the broker stored it. */
export interface TimedRecord extends JournalRecord {
  /** Milliseconds since 1970, with fractions. Only reports depend on it; the fold does not. */
  readonly timeMs: number;
}

/** Records of one generation of a journal that can be read one after the other. */
export interface JournalSpan {
  readonly generation: number;
  readonly firstSeq: number;
  /** `firstSeq` − 1 if the span is empty. */
  readonly lastSeq: number;
}

/** A sequence that no journal reaches. */
export const END_SEQ: number = Number.MAX_SAFE_INTEGER;

/** A message of a shard's tape as the broker stored it. */
export interface StoredTapeMessage {
  /** Sequence in the stream of the job's tape. */
  readonly seq: number;
  /** When the broker stored it, in milliseconds since 1970. */
  readonly timeMs: number;
  readonly data: Uint8Array;
}

/** The message with which the reading of a tape begins. */
export type TapeStart =
  /** The first message that was stored at this time or later. */
  | { readonly kind: "time"; readonly timeMs: number }
  /** The message with this sequence, or the next one. */
  | { readonly kind: "message"; readonly seq: number };

/** A committed snapshot; its pieces are read by {@link ShardHistory.piece}. */
export interface KeptSnapshot extends StoredManifest {
  /** When its manifest was stored, in milliseconds since 1970. */
  readonly timeMs: number;
}

/** The history of one shard. */
export interface ShardHistory {
  readonly shard: number;

  /** Lists the records that can be read, by generation, ascending. */
  spans(): Promise<readonly JournalSpan[]>;

  /**
   * Lists the records that are known to be missing, by generation, ascending: those that were trimmed before an
   * archiver had copied them. Absent in a source that has all records between the first and the last one.
   */
  gaps?(): Promise<readonly JournalSpan[]>;

  /** Lists the snapshots whose manifests are kept, by generation and record, ascending. */
  snapshots(): Promise<readonly KeptSnapshot[]>;

  /**
   * Reads the message that a manifest or a snapshot's state refers to.
   * @throws SNAPSHOT_DAMAGED if it is gone or its bytes have changed.
   */
  piece(ref: PieceRef): Promise<Uint8Array>;

  /**
   * Reads the records after `after` up to `toSeq` of the same generation, in order and without a gap, some
   * at a time.
   * @throws JOURNAL_DAMAGED if one is damaged or lost, HISTORY_LOST if one was trimmed; TIMEOUT, NO_BROKER and the like
   * if it cannot be read now; ABORTED.
   */
  read(after: Position, toSeq: number, signal: AbortSignal): AsyncIterable<readonly TimedRecord[]>;

  /**
   * Reads how far its owners have folded it, and what the journal was then; undefined if they have noted nothing yet.
   * Absent in a source that keeps no watermarks.
   * Undefined as well for one that is damaged.
   */
  watermark?(): Promise<Watermark | undefined>;

  /**
   * Reads the messages of the shard's tape from `start` on, oldest first; some of them may repeat lines of others.
   * None if the job has no tape. Absent in a source that keeps none.
   * @throws BAD_ARCHIVE for a damaged file, after the messages in all others; TIMEOUT, NO_BROKER and the like.
   */
  readTape?(start: TapeStart, signal: AbortSignal): AsyncIterable<StoredTapeMessage>;

  /**
   * Whether the oldest messages of the tape may have been dropped at its limit: then lines before its first message
   * are not damage. Absent in a source that keeps no tape.
   */
  isTapeTrimmed?(): Promise<boolean>;

  /**
   * Returns the sequence of the last record of a span that was stored up to `timeMs`, in milliseconds since 1970;
   * `firstSeq` − 1 if all were stored later.
   */
  lastUpTo(span: JournalSpan, timeMs: number): Promise<number>;
}

/** Facts of a job that every source knows. */
export interface JobFacts {
  readonly job: string;
  readonly shards: number;
  readonly synchronization: Synchronization;
  /**
   * All settings of the job; absent where they are not kept.
   * @internal
   */
  readonly settings?: StoredSettings;
}

/**
 * The history of a job, wherever it is kept: in the broker, in an archive (a directory or a recorded file), or in
 * an archive whose later part is in the broker. All commands of the debugger read through it.
 */
export interface HistorySource extends JobFacts {
  /** Name for people: `broker`, or the path of the archive. */
  readonly name: string;

  /** Returns the history of a shard. @throws BAD_VALUE for a shard that the job does not have. */
  shard(shard: number): ShardHistory;

  /**
   * Compares the entries of the job's bucket with what shards know, by their numbers, and returns those with problems;
   * absent in a source that keeps none.
   */
  compareEntries?(known: ReadonlyMap<number, ShardKnowledge>): Promise<readonly EntryProblem[]>;

  /**
   * Asks the owner of a shard; absent where no host can be reached.
   * @throws NO_OWNER if none answers, or the error in the reply.
   */
  askOwner?(shard: number, verb: OwnerVerb, fields: Fields): Promise<Message>;

  close(): Promise<void>;
}

/** Sender and contents of a record, in short. */
export interface RecordSummary {
  readonly verb: UpdateVerb;
  /** Sender with session and number; undefined for a host's record. */
  readonly sender:
    | { readonly trainer: string; readonly session: number; readonly n: number }
    | undefined;
}

/** Summarizes a record of a job; undefined if its subject is not that of a record. */
export function summarizeRecord(
  job: string,
  { subject, payload }: TimedRecord,
): RecordSummary | undefined {
  const parsed = readable(() => new JobSubjects(job).parseLog(subject));
  if (parsed === undefined) return undefined;
  if (parsed.by === "host") return { verb: parsed.verb, sender: undefined };
  const message = readRecordMessage(payload);
  const head = message && readable(() => parseRecordHeader(message.fields));
  const { trainer } = parsed;
  const sender = head && { trainer, session: head.session, n: head.n };
  return { verb: parsed.by === "trainer" ? parsed.verb : parsed.by, sender };
}

/** Checks the number of a shard. @throws BAD_VALUE for a shard that the job does not have. */
export function checkShard({ job, shards }: JobFacts, shard: number): void {
  if (Number.isSafeInteger(shard) && shard >= 0 && shard < shards) return;
  throw new PserverError(
    "BAD_VALUE",
    `shard: job ${job} has shards 0 to ${shards - 1}; received ${shard}`,
    { expected: shards - 1, received: shard },
  );
}

/**
 * Makes the error for a position of a shard that the kept history does not reach back to. `oldest`: the first
 * position that it does reach, if any, which was stored at `oldestMs`, if that is known.
 */
export function historyLost(
  shard: number,
  wanted: string,
  oldest: Position | undefined,
  oldestMs?: number,
): PserverError {
  const time = oldestMs === undefined ? undefined : new Date(oldestMs).toISOString();
  const at = time === undefined ? "" : `, stored at ${time}`;
  const from =
    oldest === undefined
      ? "nothing of it is left"
      : `it begins at ${showPosition(shard, oldest)}${at}`;
  return new PserverError(
    "HISTORY_LOST",
    `the kept history of shard ${shard} does not reach back to ${wanted}: ${from}`,
    { shard, received: wanted, ...(oldest && { expected: oldest }), ...(time && { time }) },
  );
}

/** Makes the error for a record that is one of a shard's known {@link ShardHistory.gaps}. */
export function recordsNotKept(
  shard: number,
  { generation, firstSeq: from, lastSeq: to }: JournalSpan,
): PserverError {
  const place = showPosition(shard, { generation, seq: from });
  const what = to >= END_SEQ ? `records from ${place} on` : `records ${place} to ${to}`;
  const text = `${what} are not kept: they were trimmed, or not archived yet`;
  return new PserverError("HISTORY_LOST", text, { shard, generation, from, to });
}

/**
 * Reads the record at a position; undefined if the source has none there, or has trimmed it.
 * @throws as `ShardHistory.read` does, but HISTORY_LOST.
 */
export async function recordAt(
  history: Pick<ShardHistory, "read">,
  { generation, seq }: Position,
  signal: AbortSignal,
): Promise<TimedRecord | undefined> {
  try {
    for await (const [record] of history.read({ generation, seq: seq - 1 }, seq, signal)) {
      if (record !== undefined) return record;
    }
  } catch (error) {
    if (ensureError(error).code !== "HISTORY_LOST") throw error;
  }
  return undefined;
}

/** Positions of one generation that a shard can be rebuilt at: all from `firstSeq` to `lastSeq`. */
export interface RebuildableRange {
  readonly generation: number;
  readonly firstSeq: number;
  readonly lastSeq: number;
}

/** A place from which a shard can be rebuilt: a snapshot, or the empty shard before record 1. */
export interface ReplayBase extends Position {
  /** The snapshot; undefined for the empty shard. */
  readonly snapshot: KeptSnapshot | undefined;
}

/** A list of what a source holds of a shard. */
export interface Inventory {
  readonly shard: number;
  readonly spans: readonly JournalSpan[];
  /** Records that are known to be missing, by generation, ascending. */
  readonly gaps: readonly JournalSpan[];
  readonly snapshots: readonly KeptSnapshot[];
}

/** Lists what a source holds of a shard. @throws TIMEOUT, DENIED and the like. */
export async function takeInventory(history: ShardHistory): Promise<Inventory> {
  const { shard } = history;
  // The spans are listed first: a snapshot that is listed later reaches back no less far.
  const spans = await history.spans();
  const gaps = (await history.gaps?.()) ?? [];
  return { shard, spans, gaps, snapshots: await history.snapshots() };
}

/**
 * Returns the last position up to a time; undefined if it is before all that is kept, or among records that are
 * missing.
 * @throws errors of the source.
 */
export async function positionAt(
  history: Pick<ShardHistory, "lastUpTo">,
  inventory: Pick<Inventory, "spans" | "snapshots">,
  timeMs: number,
): Promise<Position | undefined> {
  const generations = new Set(inventory.spans.map(({ generation }) => generation));
  for (const { manifest } of inventory.snapshots) generations.add(manifest.generation);
  for (const generation of [...generations].sort((a, b) => b - a)) {
    const all = inventory.snapshots.filter(({ manifest }) => manifest.generation === generation);
    const spans = inventory.spans.filter((span) => span.generation === generation);
    // A record that was trimmed was stored before the manifest that covers it.
    const seqs = all
      .filter((snapshot) => snapshot.timeMs <= timeMs)
      .map(({ manifest }) => manifest.seq);
    const recordSeq = await lastRecord(history, spans, timeMs);
    if (recordSeq !== undefined) seqs.push(recordSeq);
    const seq = Math.max(...seqs);
    const laterSeqs = [
      ...spans.map((span) => span.firstSeq),
      ...all.map(({ manifest }) => manifest.seq),
    ];
    const isFollowed = spans.some((span) => span.firstSeq <= seq + 1 && seq < span.lastSeq);
    // It is not known which of the missing records were stored before.
    if (seqs.length > 0 && !isFollowed && laterSeqs.some((later) => later > seq)) return undefined;
    if (seqs.length > 0) return { generation, seq };
    if (spans[0] !== undefined && spans[0].firstSeq > 1) return undefined;
  }
  return undefined;
}

/** Returns the last record of one generation up to a time; undefined if all are later. */
async function lastRecord(
  history: Pick<ShardHistory, "lastUpTo">,
  spans: readonly JournalSpan[],
  timeMs: number,
): Promise<number | undefined> {
  for (const span of [...spans].reverse()) {
    const seq = await history.lastUpTo(span, timeMs);
    if (seq >= span.firstSeq) return seq;
  }
  return undefined;
}

/** Returns all places from which a shard can be rebuilt, by generation and sequence, ascending. */
export function basesOf({ spans, snapshots }: Inventory): ReplayBase[] {
  const bases: ReplayBase[] = snapshots.map((snapshot) => {
    const { generation, seq } = snapshot.manifest;
    return { generation, seq, snapshot };
  });
  const isWhole = spans.some(({ generation, firstSeq }) => generation === 1 && firstSeq === 1);
  if (isWhole) bases.unshift({ generation: 1, seq: 0, snapshot: undefined });
  return bases.sort(comparePositions);
}

/**
 * Returns the checksums of a generation that were noted when it was folded before, ascending: by its snapshots, and
 * by the watermark of its owners.
 */
export function notedIn(
  { snapshots }: Inventory,
  watermark: Watermark | undefined,
  generation: number,
): NotedChecksum[] {
  const own = snapshots.filter(({ manifest }) => manifest.generation === generation);
  const noted = own.map(({ manifest: { seq, checksum } }) => ({ seq, checksum }));
  return [...noted, ...notedChecksums(watermark, generation)].sort((a, b) => a.seq - b.seq);
}

/** Returns the span that holds the record at a position; undefined if none does. */
export function spanWith(
  spans: readonly JournalSpan[],
  { generation, seq }: Position,
): JournalSpan | undefined {
  return spans.find(
    (each) => each.generation === generation && each.firstSeq <= seq && seq <= each.lastSeq,
  );
}

/** Returns the last record that follows a position without a gap; that of the position if none does. */
export function connectedUpTo({ spans }: Inventory, { generation, seq }: Position): number {
  return spanWith(spans, { generation, seq: seq + 1 })?.lastSeq ?? seq;
}

/**
 * Whether a position is the end of the gap after a record: hosts skip records that were never written, and make a
 * snapshot right after them.
 */
export function isEndOfGap(
  spans: readonly JournalSpan[],
  { generation, seq }: Position,
  endSeq: number,
): boolean {
  const next = spans.find((each) => each.generation === generation && each.firstSeq > endSeq + 1);
  return next !== undefined && next.firstSeq === seq + 1;
}

/** Returns the positions that can be rebuilt, by generation and sequence, ascending; the ranges do not overlap. */
export function rebuildableRanges(inventory: Inventory): RebuildableRange[] {
  const parts: RebuildableRange[] = [];
  for (const { generation, seq } of basesOf(inventory)) {
    const last = parts.at(-1);
    if (last?.generation === generation && seq <= last.lastSeq) continue;
    const lastSeq = connectedUpTo(inventory, { generation, seq });
    parts.push({ generation, firstSeq: seq, lastSeq });
  }
  return parts;
}

/**
 * Returns the places from which a position can be rebuilt, the nearest first.
 * @throws HISTORY_LOST if all are later, or a record between is known to be missing; JOURNAL_DAMAGED if one is missing
 * for another reason.
 */
export function basesBefore(inventory: Inventory, to: Position): [ReplayBase, ...ReplayBase[]] {
  const { shard, spans, gaps } = inventory;
  const leadsTo = ({ generation, seq }: ReplayBase): boolean => {
    if (generation !== to.generation || seq > to.seq) return false;
    const holds = (span: JournalSpan): boolean =>
      span.generation === generation && span.firstSeq <= seq + 1 && to.seq <= span.lastSeq;
    return seq === to.seq || spans.some(holds);
  };
  const [nearest, ...others] = basesOf(inventory).filter(leadsTo).reverse();
  if (nearest !== undefined) return [nearest, ...others];
  const gapSeq = gapBefore(inventory, to);
  if (gapSeq !== undefined) {
    const gap = spanWith(gaps, { generation: to.generation, seq: gapSeq });
    throw gap === undefined ? journalDamaged(shard, gapSeq, undefined) : recordsNotKept(shard, gap);
  }
  throw historyLost(shard, showPosition(shard, to), oldestOf(inventory));
}

/** Returns the first missing record between the places from which a shard can be rebuilt and a position. */
function gapBefore(inventory: Inventory, to: Position): number | undefined {
  const before = rebuildableRanges(inventory).findLast(
    ({ generation, firstSeq }) => generation === to.generation && firstSeq <= to.seq,
  );
  return before && before.lastSeq + 1;
}

/** Returns the oldest position that can be rebuilt; undefined if none can. */
export function oldestOf(inventory: Inventory): Position | undefined {
  const first = rebuildableRanges(inventory)[0];
  return first && { generation: first.generation, seq: first.firstSeq };
}

/** Returns the newest position that is kept, whether or not it can be rebuilt; undefined if nothing is kept. */
export function newestOf({ spans, snapshots }: Inventory): Position | undefined {
  const ends = [
    ...spans.map(({ generation, lastSeq: seq }) => ({ generation, seq })),
    ...snapshots.map(({ manifest: { generation, seq } }) => ({ generation, seq })),
  ];
  return ends.sort((a, b) => b.generation - a.generation || b.seq - a.seq)[0];
}

/**
 * Returns the oldest position from which records lead to another one of its generation; that one itself if none do.
 */
export function startOf(inventory: Inventory, to: Position): Position {
  const part = rebuildableRanges(inventory).find(
    ({ generation, firstSeq, lastSeq }) =>
      generation === to.generation && firstSeq <= to.seq && to.seq <= lastSeq,
  );
  return part === undefined ? to : { generation: to.generation, seq: part.firstSeq };
}
