import { readdir, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { ArchivedShard } from "../../actors/journal/archivers.ts";
import type { Manifest } from "../../actors/journal/manifest.ts";
import { FILE_MODES, syncDirectory, writeFileAtomically } from "../../model-files/atomic-write.ts";
import { isTemporaryName } from "../../model-files/temporary-files.ts";
import { isSealed } from "../../protocol/codec.ts";
import { ensureError, type Position, type PserverError } from "../../protocol/index.ts";
import { errnoCode, fileError, io } from "../../system/file-errors.ts";
import {
  type JournalSpan,
  type KeptSnapshot,
  recordAt,
  type ShardHistory,
  type StoredTapeMessage,
  type TimedRecord,
} from "../source.ts";
import {
  type ArchiveFacts,
  directoryFiles,
  journalDirectory,
  listSegments,
  listSnapshots,
  type SegmentFile,
  segmentPath,
  snapshotDirectory,
  tapeDirectory,
  writeGap,
} from "./archive-layout.ts";
import { ArchiveShard, isMissing, toTapeMessage } from "./archive-source.ts";
import { ContainerReader, makeEndFrame, type RunningTotals } from "./container.ts";
import type { TapeFrame } from "./frames.ts";
import { checkSameHistory, contradictsBroker, readTapeAfter } from "./joined-source.ts";
import {
  gapsBetween,
  joinSpans,
  readTail,
  type SegmentKind,
  SegmentWriter,
  toRecordFrame,
} from "./segment.ts";
import { piecesOf, readSnapshotHeader, writeSnapshot } from "./snapshot-file.ts";

/** Bytes and time after which the copier waits until the records are on disk. */
const SYNC_BYTES = 32 * 1024 ** 2;
const SYNC_MS = 2_000;

/** Dependencies of {@link RecordCopier}. */
export interface RecordCopierDeps {
  readonly source: Pick<ShardHistory, "shard" | "spans" | "read">;
  readonly writer: Pick<SegmentWriter, "append" | "sync">;
  /** Spans that the archive has already. */
  readonly archived: readonly JournalSpan[];
  /** Called when more records are on disk. */
  readonly onCopied: () => void;
  /** Notes in the archive that it lacks records. @throws DISK_FULL, IO. */
  readonly noteGap: (gap: JournalSpan) => Promise<void>;
  /** Called for a record that is damaged or lost in the source; those around it are copied. */
  readonly onDamaged: (error: PserverError) => void;
}

/** Copies the records of one shard into an archive. */
export class RecordCopier {
  readonly #deps: RecordCopierDeps;
  /** Last record on disk, by generation. */
  readonly #last: Map<number, number>;
  #bytes = 0;

  constructor(deps: RecordCopierDeps) {
    this.#deps = deps;
    this.#last = new Map(deps.archived.map(({ generation, lastSeq }) => [generation, lastSeq]));
  }

  /** The newest record on disk; undefined before the first. */
  get newest(): Position | undefined {
    const generation = Math.max(0, ...this.#last.keys());
    return generation === 0 ? undefined : { generation, seq: this.#last.get(generation) ?? 0 };
  }

  /** Bytes of the payloads copied. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Returns how many records of spans are not on disk yet. */
  behind(spans: readonly JournalSpan[]): number {
    const missing = spans.map((span) => span.lastSeq - this.#nextSeq(span) + 1);
    return missing.reduce((sum, records) => sum + Math.max(0, records), 0);
  }

  /**
   * Copies the records of a span after those that are on disk. Where records are trimmed while it copies, or cannot be
   * read, it goes on with the next one that is there, and notes the gap in the archive.
   * @throws DISK_FULL, IO; errors of the source, for example NO_BROKER; the reason of `signal`.
   */
  async copy(span: JournalSpan, signal: AbortSignal): Promise<void> {
    const { generation, lastSeq } = span;
    let nextSeq: number | undefined = this.#nextSeq(span);
    while (nextSeq !== undefined && nextSeq <= lastSeq) {
      nextSeq = await this.#copyFrom({ generation, firstSeq: nextSeq, lastSeq }, signal);
    }
  }

  /**
   * Copies records one after the other.
   * @returns the next record that can be copied if one before it cannot; undefined at the end, or if none is known.
   */
  async #copyFrom(
    { generation, firstSeq, lastSeq }: JournalSpan,
    signal: AbortSignal,
  ): Promise<number | undefined> {
    const { source, writer } = this.#deps;
    let copied = firstSeq - 1;
    let [unsynced, syncedMs] = [0, performance.now()];
    const sync = async (): Promise<void> => {
      await writer.sync();
      [unsynced, syncedMs] = [0, performance.now()];
      this.#synced(generation, copied, firstSeq);
    };
    try {
      const after = { generation, seq: firstSeq - 1 };
      for await (const batch of source.read(after, lastSeq, signal)) {
        const records = await this.#checked(generation, batch, signal);
        if (copied < firstSeq) await this.#noteGapBefore(generation, firstSeq);
        await writer.append(
          records.map((record) => toRecordFrame(source.shard, generation, record)),
        );
        copied = records.at(-1)?.seq ?? copied;
        unsynced += bytesOf(records);
        this.#bytes += bytesOf(records);
        if (unsynced >= SYNC_BYTES || performance.now() - syncedMs >= SYNC_MS) await sync();
      }
    } catch (error) {
      const found = ensureError(error);
      if (found.code !== "JOURNAL_DAMAGED" && found.code !== "HISTORY_LOST") throw found;
      await sync();
      if (found.code === "JOURNAL_DAMAGED") this.#deps.onDamaged(found);
      const nextSeq = await this.#seqAfter(generation, copied + 1, found);
      return nextSeq !== undefined && nextSeq > copied + 1 ? nextSeq : undefined;
    }
    await sync();
    return undefined;
  }

  /** Returns the record with which copying goes on after an error at record `seq`; undefined if it is not known. */
  async #seqAfter(
    generation: number,
    seq: number,
    { code, details }: PserverError,
  ): Promise<number | undefined> {
    const { found, seq: changedSeq } = details;
    if (code === "JOURNAL_DAMAGED" && typeof found === "number") return found;
    if (code === "JOURNAL_DAMAGED") return changedSeq === seq ? seq + 1 : undefined;
    const spans = await this.#deps.source.spans();
    return spans.find((span) => span.generation === generation && span.lastSeq >= seq)?.firstSeq;
  }

  async #noteGapBefore(generation: number, seq: number): Promise<void> {
    const firstSeq = (this.#last.get(generation) ?? 0) + 1;
    if (firstSeq === seq) return;
    await this.#deps.noteGap({ generation, firstSeq, lastSeq: seq - 1 });
  }

  /** Whether a span ends before a record that was copied: then its journal is another, or was cut off. */
  hasShrunk({ generation, lastSeq }: JournalSpan): boolean {
    return lastSeq < (this.#last.get(generation) ?? 0);
  }

  #synced(generation: number, seq: number, firstSeq: number): void {
    if (seq < firstSeq) return;
    this.#last.set(generation, seq);
    this.#deps.onCopied();
  }

  #nextSeq({ generation, firstSeq }: JournalSpan): number {
    return Math.max(1, firstSeq, (this.#last.get(generation) ?? 0) + 1);
  }

  /**
   * Returns records as they are stored: one that does not match its checksum, and so may have been damaged in
   * transit, is read again.
   */
  async #checked(
    generation: number,
    batch: readonly TimedRecord[],
    signal: AbortSignal,
  ): Promise<readonly TimedRecord[]> {
    if (batch.every(({ payload }) => isSealed(payload))) return batch;
    const records: TimedRecord[] = [];
    for (const record of batch) {
      records.push(
        isSealed(record.payload) ? record : await this.#readAgain(generation, record, signal),
      );
    }
    return records;
  }

  async #readAgain(
    generation: number,
    record: TimedRecord,
    signal: AbortSignal,
  ): Promise<TimedRecord> {
    const position = { generation, seq: record.seq };
    // If the record was trimmed since, the first reading is all that is left of it.
    return (await recordAt(this.#deps.source, position, signal)) ?? record;
  }
}

function bytesOf(records: readonly TimedRecord[]): number {
  return records.reduce((sum, { payload }) => sum + payload.length, 0);
}

/** Dependencies of {@link SnapshotCopier}. */
export interface SnapshotCopierDeps {
  readonly source: ShardHistory;
  readonly directory: string;
  readonly facts: ArchiveFacts;
  /** Called for a snapshot that is damaged in the source; it is left out. */
  readonly onDamaged: (error: PserverError) => void;
}

/** Copies the snapshots of one shard into an archive, in the order in which they were stored. */
export class SnapshotCopier {
  readonly #deps: SnapshotCopierDeps;
  /** The manifest that was copied last; its pieces are in the archive. */
  #copied: Manifest | undefined;
  /** Sequence of the manifest that was copied or left out last. */
  #lastSeq = 0;
  #newest: Position | undefined;
  #bytes = 0;

  private constructor(deps: SnapshotCopierDeps) {
    this.#deps = deps;
  }

  /** Goes on after the last snapshot in the archive. @throws BAD_ARCHIVE, BAD_VERSION, IO. */
  static async open(deps: SnapshotCopierDeps): Promise<SnapshotCopier> {
    const copier = new SnapshotCopier(deps);
    const { directory, facts, source } = deps;
    const last = (await listSnapshots(snapshotDirectory(directory, source.shard))).at(-1);
    if (last === undefined) return copier;
    const { snapshot } = await readSnapshotHeader(last, source.shard, facts);
    copier.#copied = snapshot.manifest;
    copier.#note(snapshot);
    return copier;
  }

  /** The record of the newest snapshot that was copied; undefined before the first. */
  get newest(): Position | undefined {
    return this.#newest;
  }

  /** Bytes of the files written. */
  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Copies the snapshots that came after the last one. Leaves out those that are removed in between.
   * @throws DISK_FULL, IO; errors of the source, for example NO_BROKER; the reason of `signal`.
   */
  async copy(signal: AbortSignal): Promise<void> {
    const found = [...(await this.#deps.source.snapshots())].sort((a, b) => a.seq - b.seq);
    for (const snapshot of found) {
      signal.throwIfAborted();
      this.#checkJournal(snapshot.manifest);
      if (snapshot.seq <= this.#lastSeq) continue;
      // A take-over commits the newest snapshot again.
      if (!isSameCut(snapshot.manifest, this.#copied)) await this.#copyOne(snapshot, signal);
      this.#note(snapshot);
    }
  }

  /** Checks that a snapshot is of the same journal as the last one copied of its generation. @throws BAD_ARCHIVE */
  #checkJournal({ generation, created }: Manifest): void {
    const copied = this.#copied;
    // A snapshot that was made before its journal does not know when that was created.
    const isOther = created !== "" && copied?.created !== "" && created !== copied?.created;
    if (copied?.generation !== generation || !isOther) return;
    const { directory, source } = this.#deps;
    const journal = `the journal of shard ${source.shard}, generation ${generation}`;
    throw contradictsBroker(
      directory,
      `${journal}, was created at ${copied.created}; now at ${created}`,
    );
  }

  #note({ seq: storedSeq, manifest: { generation, seq } }: KeptSnapshot): void {
    this.#lastSeq = storedSeq;
    this.#newest = { generation, seq };
  }

  async #copyOne(snapshot: KeptSnapshot, signal: AbortSignal): Promise<void> {
    const { directory, facts, source, onDamaged } = this.#deps;
    try {
      // The pieces that the manifest before it names are in the archive.
      const before = this.#copied;
      const known = [...(before?.pieces ?? []), ...(before?.state ?? []).map(({ seq }) => seq)];
      const pieces = await piecesOf(source, snapshot, signal, known);
      this.#bytes += await writeSnapshot(directory, facts, source.shard, snapshot, pieces);
      this.#copied = snapshot.manifest;
    } catch (error) {
      const found = ensureError(error);
      if (found.code !== "SNAPSHOT_DAMAGED") throw found;
      const isKept = (await source.snapshots()).some(({ seq }) => seq === snapshot.seq);
      if (isKept) onDamaged(found);
    }
  }
}

/** Whether two manifests name the same state of the same journal. */
function isSameCut(a: Manifest, b: Manifest | undefined): boolean {
  const key = ({ generation, created, seq, state }: Manifest): string =>
    JSON.stringify([generation, created, seq, state.map((ref) => [ref.seq, ref.crc])]);
  return b !== undefined && key(a) === key(b);
}

/** Bytes of messages that are held in memory before they are written. */
const BATCH_BYTES = 1024 ** 2;

/** Dependencies of {@link TapeCopier}. */
export interface TapeCopierDeps {
  readonly source: Pick<ShardHistory, "shard" | "readTape">;
  readonly writer: Pick<SegmentWriter, "append" | "sync">;
  readonly directory: string;
  readonly facts: ArchiveFacts;
  /** Called for a segment that is damaged: messages after the damage are copied again. */
  readonly onDamaged: (error: PserverError) => void;
}

/** Copies the tape of one shard into an archive, from its beginning on: it is never trimmed. */
export class TapeCopier {
  readonly #deps: TapeCopierDeps;
  #last: StoredTapeMessage | undefined;
  #messages = 0;
  #bytes = 0;

  private constructor(deps: TapeCopierDeps) {
    this.#deps = deps;
  }

  /**
   * Goes on after the last message in the archive.
   * @throws BAD_VERSION, IO.
   */
  static async open(deps: TapeCopierDeps): Promise<TapeCopier> {
    const copier = new TapeCopier(deps);
    const { directory, facts, source, onDamaged } = deps;
    const segments = await listSegments(tapeDirectory(directory, source.shard));
    for (const segment of segments.reverse()) {
      const tail = readTail("tape", segment, source.shard, facts);
      const { last, lastSeq, damage } = await tail.catch(damaged);
      if (damage !== undefined) onDamaged(damage);
      copier.#messages = Math.max(copier.#messages, segment.lastSeq ?? lastSeq);
      copier.#last = last && toTapeMessage(last);
      if (last !== undefined) break;
    }
    return copier;
  }

  /** Number of messages that the archive has, including those in damaged segments. */
  get messages(): number {
    return this.#messages;
  }

  /** Bytes of the messages copied. */
  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Copies the messages that came after the last one.
   * @throws DISK_FULL, IO; errors of the source, for example NO_BROKER; the reason of `signal`.
   */
  async copy(signal: AbortSignal): Promise<void> {
    const { source } = this.#deps;
    let batch: TapeFrame[] = [];
    let batchBytes = 0;
    for await (const message of readTapeAfter(source, this.#last, signal)) {
      const number = this.#messages + batch.length + 1;
      batch.push({ kind: "tape", shard: source.shard, number, ...message });
      batchBytes += message.data.length;
      if (batchBytes < BATCH_BYTES) continue;
      await this.#write(batch);
      [batch, batchBytes] = [[], 0];
    }
    await this.#write(batch);
  }

  async #write(batch: readonly TapeFrame[]): Promise<void> {
    const last = batch.at(-1);
    if (last === undefined) return;
    const { writer } = this.#deps;
    await writer.append(batch);
    await writer.sync();
    this.#last = toTapeMessage(last);
    this.#messages = last.number;
    this.#bytes += batch.reduce((sum, { data }) => sum + data.length, 0);
  }
}

/** Returns the result for a segment of which nothing can be read. */
function damaged(error: unknown): { last: undefined; lastSeq: 0; damage: PserverError } {
  const damage = ensureError(error);
  if (damage.code !== "BAD_ARCHIVE") throw damage;
  return { last: undefined, lastSeq: 0, damage };
}

/** Removes the temporary files that an archiver which died has left in a directory. @throws IO */
async function removeLeftTemporaries(directory: string): Promise<void> {
  let names: string[];
  try {
    names = await readdir(directory);
  } catch (error) {
    if (errnoCode(error) === "ENOENT") return;
    throw fileError("read", directory, error);
  }
  for (const name of names.filter(isTemporaryName)) {
    const path = join(directory, name);
    await io("remove", path, rm(path, { force: true }));
  }
}

/**
 * Completes a segment that an earlier run has left: a copy of its whole frames gets an end frame, and the file goes. It is
 * not changed, because its writer may only have been suspended: what that still writes, no later run has relied on. One
 * without contents goes. If it is damaged, the copy ends before the damage, and the file stays under another name.
 * @returns the damage.
 * @throws BAD_ARCHIVE if nothing of it can be read, BAD_VERSION, DISK_FULL, IO.
 */
async function sealSegment(
  kind: SegmentKind,
  segment: SegmentFile,
  shard: number,
  facts: ArchiveFacts,
): Promise<PserverError | undefined> {
  const { path, generation, firstSeq } = segment;
  const { lastSeq, sums, damage } = await readTail(kind, segment, shard, facts);
  if (lastSeq >= firstSeq) {
    const complete = segmentPath(dirname(path), { generation, firstSeq, lastSeq });
    await writeFileAtomically(complete, sealed(path, sums), FILE_MODES.model);
  }
  if (damage === undefined) await io("remove", path, rm(path, { force: true }));
  else await io("rename", path, rename(path, `${path}.damaged`));
  await syncDirectory(dirname(path));
  return damage;
}

/** Gives the frames of a file that `sums` adds up, and an end frame. */
async function* sealed(path: string, sums: RunningTotals): AsyncGenerator<Uint8Array> {
  await using reader = await ContainerReader.open(path);
  yield* reader.bytesTo(sums.totals.bytes);
  yield makeEndFrame(sums);
}

/** Dependencies of {@link ShardArchiver}. */
export interface ShardArchiverDeps {
  readonly source: ShardHistory;
  readonly directory: string;
  readonly facts: ArchiveFacts;
  /** Number of the archiver's run: higher than those of all runs before. */
  readonly run: number;
  /** Bytes at which a segment is completed. */
  readonly segmentBytes: number;
  /** Called when more is on disk. */
  readonly onCopied: (shard: number, archived: ArchivedShard) => void;
  /** Called for a part that is damaged, in the archive or in the source; the rest is copied. */
  readonly onDamaged: (error: PserverError) => void;
}

/** Progress of one shard. */
export interface ShardProgress {
  readonly shard: number;
  /** The newest record that is archived; undefined before the first. */
  readonly record: Position | undefined;
  /** The record of the newest archived snapshot; undefined before the first. */
  readonly snapshot: Position | undefined;
  /** Number of records that were in the source when it was last listed and are not archived yet. */
  readonly behindRecords: number;
  /** Records that are missing between those of the archive, or before them. */
  readonly missing: readonly JournalSpan[];
  /** Messages of the shard's tape that are archived. */
  readonly tapeMessages: number;
  /** Bytes copied by this archiver. */
  readonly copiedBytes: number;
}

/** After so many rounds without records, snapshots are listed. */
const IDLE_ROUNDS = 5;

/** After so many rounds the tape is read: nothing of it is ever trimmed. */
const TAPE_ROUNDS = 10;

const NOTHING: Position = { generation: 0, seq: 0 };

/** What an archiver says of a shard before it knows what the archive has. */
export const NOTHING_ARCHIVED: ArchivedShard = { record: NOTHING, snapshot: NOTHING };

/** State with which a {@link ShardArchiver} begins. */
interface ArchiverParts {
  /** Spans of the journals that the archive has. */
  readonly archived: readonly JournalSpan[];
  readonly snapshots: SnapshotCopier;
  readonly tape: TapeCopier;
  readonly tapeWriter: SegmentWriter;
}

/** Archives one shard. */
export class ShardArchiver {
  readonly #deps: ShardArchiverDeps;
  readonly #writer: SegmentWriter;
  readonly #records: RecordCopier;
  readonly #snapshots: SnapshotCopier;
  readonly #tapeWriter: SegmentWriter;
  readonly #tape: TapeCopier;
  /** Spans that the archive had when this archiver began. */
  readonly #archived: readonly JournalSpan[];
  #seen: readonly JournalSpan[] = [];
  #isChecked = false;
  /** Number of rounds in a row without records. */
  #idleRounds = 0;
  #rounds = 0;

  private constructor(deps: ShardArchiverDeps, parts: ArchiverParts) {
    this.#deps = deps;
    const { archived, snapshots, tape, tapeWriter } = parts;
    this.#archived = archived;
    this.#snapshots = snapshots;
    this.#tape = tape;
    this.#tapeWriter = tapeWriter;
    const { source, onDamaged } = deps;
    const directory = journalDirectory(deps.directory, source.shard);
    this.#writer = new SegmentWriter({ ...deps, directory });
    const onCopied = (): void => deps.onCopied(source.shard, this.archived);
    const writer = this.#writer;
    const noteGap = (gap: JournalSpan): Promise<void> =>
      writeGap(directory, deps.facts, source.shard, gap);
    this.#records = new RecordCopier({ source, writer, archived, onCopied, noteGap, onDamaged });
  }

  /**
   * Tidies up after earlier runs, and goes on after their last record.
   * @throws BAD_ARCHIVE, BAD_VERSION, DISK_FULL, IO.
   */
  static async open(deps: ShardArchiverDeps): Promise<ShardArchiver> {
    const { directory, facts, source } = deps;
    const { shard } = source;
    await removeLeftTemporaries(snapshotDirectory(directory, shard));
    await removeLeftTemporaries(journalDirectory(directory, shard));
    const tapeSegments = tapeDirectory(directory, shard);
    await sealSegments(deps, "record", journalDirectory(directory, shard));
    await sealSegments(deps, "tape", tapeSegments);
    const tapeWriter = new SegmentWriter({ ...deps, directory: tapeSegments });
    return new ShardArchiver(deps, {
      archived: await new ArchiveShard(directoryFiles(directory, shard), facts, shard).spans(),
      snapshots: await SnapshotCopier.open(deps),
      tape: await TapeCopier.open({ ...deps, writer: tapeWriter }),
      tapeWriter,
    });
  }

  /** The newest archived positions, for the hosts. */
  get archived(): ArchivedShard {
    return {
      record: this.#records.newest ?? NOTHING,
      snapshot: this.#snapshots.newest ?? NOTHING,
    };
  }

  /** Its progress. */
  get progress(): ShardProgress {
    return {
      shard: this.#deps.source.shard,
      record: this.#records.newest,
      snapshot: this.#snapshots.newest,
      behindRecords: this.#records.behind(this.#seen),
      missing: gapsBetween(joinSpans([...this.#archived, ...this.#writer.spans])),
      tapeMessages: this.#tape.messages,
      copiedBytes: this.#records.bytes + this.#snapshots.bytes + this.#tape.bytes,
    };
  }

  /**
   * Copies what is in the source and not yet in the archive.
   * @throws BAD_ARCHIVE if the archive is of another life of the job; DISK_FULL, IO; errors of the source; the reason
   * of `signal`.
   */
  async copy(signal: AbortSignal): Promise<void> {
    const { source, onCopied } = this.#deps;
    const spans = await source.spans();
    const last = newestOf(spans);
    // Of several spans of a generation only the last one tells where the journal ends.
    if (last.some((span) => this.#records.hasShrunk(span))) this.#isChecked = false;
    if (!this.#isChecked) await this.#check(signal);
    const isIdle = JSON.stringify(spans) === JSON.stringify(this.#seen);
    this.#idleRounds = isIdle ? this.#idleRounds + 1 : 0;
    // Listing the snapshots takes a request for each; few are made while no records come.
    if (this.#idleRounds % IDLE_ROUNDS === 0) {
      await this.#snapshots.copy(signal);
      onCopied(source.shard, this.archived);
    }
    this.#seen = spans;
    for (const span of spans) await this.#records.copy(span, signal);
    if (this.#rounds % TAPE_ROUNDS === 0) await this.#tape.copy(signal);
    this.#rounds += 1;
  }

  /** Completes the segments that are being written. @throws DISK_FULL, IO. */
  async close(): Promise<void> {
    await this.#writer.close();
    await this.#tapeWriter.close();
  }

  /** Leaves the segments as they are: a later run completes them. */
  async abandon(): Promise<void> {
    await this.#writer.abandon();
    await this.#tapeWriter.abandon();
  }

  async #check(signal: AbortSignal): Promise<void> {
    const { directory, facts, source } = this.#deps;
    const files = directoryFiles(directory, source.shard);
    const own = new ArchiveShard(files, facts, source.shard);
    await checkSameHistory(directory, own, source, signal);
    this.#isChecked = true;
  }
}

/** Completes the segments that earlier runs have left in a directory. */
async function sealSegments(
  { facts, source, run, onDamaged }: ShardArchiverDeps,
  kind: SegmentKind,
  directory: string,
): Promise<void> {
  for (const segment of await listSegments(directory)) {
    // A later run has taken the archive over from this one, and may be writing its segment.
    if (segment.run === undefined || segment.run >= run) continue;
    try {
      const damage = await sealSegment(kind, segment, source.shard, facts);
      if (damage !== undefined) onDamaged(damage);
    } catch (error) {
      // Its writer goes on and has completed it.
      if (!isMissing(error)) throw error;
    }
  }
}

/** Returns the last span of each generation. */
function newestOf(spans: readonly JournalSpan[]): JournalSpan[] {
  return spans.filter((span, i) => spans[i + 1]?.generation !== span.generation);
}
