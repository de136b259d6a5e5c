import type { ArchivedShard } from "../../actors/archivers/archiver-record.ts";
import type { Position, PserverError } from "../../protocol/index.ts";
import type { JournalSpan, ShardHistory } from "../source.ts";
import type { ArchiveFacts } from "./archive-facts.ts";
import { journalDirectory, listSegments, tapeDirectory } from "./archive-layout.ts";
import { ArchiveShard } from "./archive-shard.ts";
import { RecordCopier } from "./copy-records.ts";
import { SnapshotCopier } from "./copy-snapshots.ts";
import { TapeCopier } from "./copy-tape.ts";
import { gapsBetween, joinSpans } from "./join-spans.ts";
import { removeLeftTemporaries } from "./left-temporaries.ts";
import { checkSameHistory } from "./same-history.ts";
import { sealSegment } from "./seal-segment.ts";
import type { SegmentKind } from "./segment-check.ts";
import { SegmentWriter } from "./segment-writer.ts";

/** Dependencies of {@link ShardArchiver}. */
export interface ShardArchiverDeps {
  readonly source: ShardHistory;
  readonly directory: string;
  readonly facts: ArchiveFacts;
  /** Bytes from which on a segment is completed. */
  readonly segmentBytes: number;
  /** Called when more is on disk. */
  readonly onCopied: (shard: number, archived: ArchivedShard) => void;
  /** Called for a part that is damaged, in the archive or where it is kept; the rest is copied. */
  readonly onDamaged: (error: PserverError) => void;
}

/** How far one shard is archived. */
export interface ShardProgress {
  readonly shard: number;
  /** The newest record that is archived; undefined before the first. */
  readonly record: Position | undefined;
  /** The newest record that a snapshot is archived of. */
  readonly snapshot: Position | undefined;
  /** Records that were there at the last look and are not archived yet. */
  readonly behindRecords: number;
  /** Records that the archive lacks between those that it has, or before them. */
  readonly missing: readonly JournalSpan[];
  /** Messages of the shard's tape that are archived. */
  readonly tapeMessages: number;
  /** Bytes copied by this archiver. */
  readonly copiedBytes: number;
}

/** Of rounds in which no record came, every so many look for snapshots. */
const IDLE_ROUNDS = 5;

/** Of all rounds, every so many look at the tape: nothing of it is ever trimmed. */
const TAPE_ROUNDS = 10;

const NOTHING: Position = { generation: 0, seq: 0 };

/** What a {@link ShardArchiver} goes on from. */
interface ArchiverParts {
  /** What the archive has of the journals. */
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
  /** What the archive had when this archiver began. */
  readonly #archived: readonly JournalSpan[];
  #seen: readonly JournalSpan[] = [];
  #isChecked = false;
  /** Rounds in a row in which no record came. */
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
    this.#writer = new SegmentWriter({ ...deps, directory, version: 1 });
    const onCopied = (): void => deps.onCopied(source.shard, this.archived);
    const writer = this.#writer;
    this.#records = new RecordCopier({ source, writer, archived, onCopied, onDamaged });
  }

  /**
   * Tidies up after an archiver that died, and goes on after what it has left.
   * @throws BAD_ARCHIVE, BAD_VERSION, DISK_FULL, IO.
   */
  static async open(deps: ShardArchiverDeps): Promise<ShardArchiver> {
    const { directory, facts, source } = deps;
    const { shard } = source;
    await removeLeftTemporaries(directory, shard);
    const tapeSegments = tapeDirectory(directory, shard);
    await sealSegments(deps, "record", journalDirectory(directory, shard));
    await sealSegments(deps, "tape", tapeSegments);
    const tapeWriter = new SegmentWriter({ ...deps, directory: tapeSegments, version: 2 });
    return new ShardArchiver(deps, {
      archived: await new ArchiveShard(directory, facts, shard).spans(),
      snapshots: await SnapshotCopier.open(deps),
      tape: await TapeCopier.open({ ...deps, writer: tapeWriter }),
      tapeWriter,
    });
  }

  /** What is archived, as hosts are told. */
  get archived(): ArchivedShard {
    return {
      record: this.#records.newest ?? NOTHING,
      snapshot: this.#snapshots.newest ?? NOTHING,
    };
  }

  /** How far it is. */
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
   * Copies what is there now.
   * @throws BAD_ARCHIVE if the archive is of another life of the job; DISK_FULL, IO; what the source
   * throws; the reason of `signal`.
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
    // A list of snapshots is a request for each; few are made while no records come.
    if (this.#idleRounds % IDLE_ROUNDS === 0) {
      await this.#snapshots.copy(signal);
      onCopied(source.shard, this.archived);
    }
    this.#seen = spans;
    for (const span of spans) await this.#records.copy(span, signal);
    if (this.#rounds % TAPE_ROUNDS === 0) await this.#tape.copy(signal);
    this.#rounds += 1;
  }

  /** Completes what is being written. @throws DISK_FULL, IO. */
  async close(): Promise<void> {
    await this.#writer.close();
    await this.#tapeWriter.close();
  }

  async #check(signal: AbortSignal): Promise<void> {
    const { directory, facts, source } = this.#deps;
    const own = new ArchiveShard(directory, facts, source.shard);
    await checkSameHistory(directory, own, source, signal);
    this.#isChecked = true;
  }
}

/** Completes the segments of a directory that an archiver that died has left. */
async function sealSegments(
  { facts, source, onDamaged }: ShardArchiverDeps,
  kind: SegmentKind,
  directory: string,
): Promise<void> {
  for (const segment of await listSegments(directory)) {
    if (segment.lastSeq !== undefined) continue;
    const damage = await sealSegment(kind, segment, source.shard, facts);
    if (damage !== undefined) onDamaged(damage);
  }
}

/** The last span of each generation. */
function newestOf(spans: readonly JournalSpan[]): JournalSpan[] {
  return spans.filter((span, i) => spans[i + 1]?.generation !== span.generation);
}
