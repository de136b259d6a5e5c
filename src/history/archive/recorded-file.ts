import { FILE_MODES, writeFileAtomically } from "../../model-files/atomic-write.ts";
import { defined } from "../../protocol/fields.ts";
import { ensureError, type Position, PserverError } from "../../protocol/index.ts";
import type { Cut } from "../points.ts";
import {
  basesBefore,
  basesOf,
  connectedUpTo,
  type HistorySource,
  type Inventory,
  type ReplayBase,
  type ShardHistory,
  spanWith,
  takeInventory,
} from "../source.ts";
import {
  type ArchiveFacts,
  firstFrame,
  jobFrame,
  requireJob,
  type SegmentFile,
  type ShardFiles,
  type SnapshotFile,
} from "./archive-layout.ts";
import { badArchive, ContainerReader, ContainerWriter, type PlacedFrame } from "./container.ts";
import { toRecordFrame } from "./segment.ts";
import { appendSnapshot, piecesOf, toSnapshot } from "./snapshot-file.ts";

/*
 * A recorded file is an archive of a span in one file: what would be segments and snapshots in a directory follow each
 * other in it, each of them begun by a frame with the job.
 */

/** Bytes of records at which a segment of a recorded file ends: each is read from its beginning. */
const SEGMENT_BYTES = 4 * 1024 ** 2;

/** The part of a history that is recorded. */
export interface RecordingSpan {
  /** Position in each shard from which the recording can be replayed. */
  readonly from: Cut;
  /** Last record in each shard. */
  readonly to: Cut;
}

/** Result of {@link writeRecording}. */
export interface Recording {
  readonly bytes: number;
  readonly records: number;
  readonly shards: readonly {
    readonly shard: number;
    readonly from: Position;
    readonly to: Position;
  }[];
}

/** Options of {@link writeRecording}. */
export interface RecordingOptions {
  readonly signal: AbortSignal;
  /** Called now and then with the number of records written, of those to write. */
  readonly onProgress?: (doneRecords: number, totalRecords: number) => void;
}

/** A part of one generation of a shard: from a snapshot, or from nothing, to a record. */
interface Part {
  readonly history: ShardHistory;
  readonly inventory: Inventory;
  readonly bases: readonly [ReplayBase, ...ReplayBase[]];
  readonly to: Position;
}

/**
 * Writes a span of a history into one file: for each shard the newest snapshot at or before its beginning
 * and the records after it. The file appears whole or not at all.
 * @throws HISTORY_LOST, JOURNAL_DAMAGED if a record of the span is not kept; BAD_VALUE if the span ends
 * before it begins; SNAPSHOT_DAMAGED, DISK_FULL, IO; what the source throws; the reason of the signal.
 */
export async function writeRecording(
  path: string,
  source: HistorySource,
  { from, to }: RecordingSpan,
  { signal, onProgress }: RecordingOptions,
): Promise<Recording> {
  const { job, shards, synchronization, settings } = source;
  const facts = { job, shards, synchronization, archive: "" };
  const parts: Part[] = [];
  for (const [shard, position] of from.entries()) {
    parts.push(...(await planShard(source.shard(shard), position, to[shard] ?? position)));
  }
  const total = parts.reduce((sum, { bases: [base], to: end }) => sum + end.seq - base.seq, 0);
  let records = 0;
  const bytes = await writeFileAtomically(
    path,
    async (handle) => {
      const writer = ContainerWriter.begin(handle, path);
      await writer.append(firstFrame({ ...facts, ...defined({ settings }) }));
      for (const part of parts) {
        for await (const count of writePart(writer, facts, part, signal)) {
          records += count;
          onProgress?.(records, total);
        }
      }
      await writer.end();
    },
    FILE_MODES.model,
  );
  const ranges = from.map((_, shard) => {
    const own = parts.filter(({ history }) => history.shard === shard);
    const [begin, end] = [own[0]?.bases[0], own.at(-1)?.to];
    const nothing = { generation: 1, seq: 0 };
    return { shard, from: toPosition(begin ?? nothing), to: toPosition(end ?? nothing) };
  });
  return { bytes, records, shards: ranges };
}

/** Plans the parts of a shard, one for each generation. */
async function planShard(history: ShardHistory, from: Position, to: Position): Promise<Part[]> {
  const { shard } = history;
  if (to.generation < from.generation || (to.generation === from.generation && to.seq < from.seq)) {
    const text = `shard ${shard}: the span ends at record ${to.seq}, before its beginning at ${from.seq}`;
    throw new PserverError("BAD_VALUE", text, { shard, expected: from, received: to });
  }
  const inventory = await takeInventory(history);
  const parts: Part[] = [];
  for (let { generation } = from; generation <= to.generation; generation++) {
    const begin = generation === from.generation ? from : firstOf(inventory, generation);
    if (begin === undefined) continue;
    const end =
      generation === to.generation ? to : { generation, seq: connectedUpTo(inventory, begin) };
    parts.push({ history, inventory, bases: basesBefore(inventory, begin), to: end });
  }
  return parts;
}

/** Returns the position at which a later generation begins: that of its first snapshot. */
function firstOf(inventory: Inventory, generation: number): Position | undefined {
  return basesOf(inventory).find((base) => base.generation === generation);
}

/** Writes a snapshot and the records after it; yields how many records were written. */
async function* writePart(
  writer: ContainerWriter,
  facts: ArchiveFacts,
  { history, inventory, bases, to }: Part,
  signal: AbortSignal,
): AsyncGenerator<number> {
  const { shard } = history;
  const { generation } = to;
  const base = await writeBase(writer, facts, history, bases, signal);
  // The record of the snapshot itself tells when the snapshot was up to date.
  const isKept = spanWith(inventory.spans, base) !== undefined;
  const after = { generation, seq: isKept ? base.seq - 1 : base.seq };
  let endsAt = 0;
  for await (const batch of history.read(after, to.seq, signal)) {
    for (const record of batch) {
      if (writer.bytes >= endsAt) {
        await writer.append(jobFrame(facts));
        endsAt = writer.bytes + SEGMENT_BYTES;
      }
      await writer.append(toRecordFrame(shard, generation, record));
    }
    yield batch.length;
  }
}

/**
 * Writes the nearest snapshot that can be read; a part of one that cannot be read stays in the file.
 * @throws SNAPSHOT_DAMAGED if none can.
 */
async function writeBase(
  writer: ContainerWriter,
  facts: ArchiveFacts,
  history: ShardHistory,
  bases: readonly [ReplayBase, ...ReplayBase[]],
  signal: AbortSignal,
): Promise<ReplayBase> {
  let failure: unknown;
  for (const base of bases) {
    const { snapshot } = base;
    if (snapshot === undefined) return base;
    try {
      const pieces = await piecesOf(history, snapshot, signal);
      await appendSnapshot(writer, facts, history.shard, snapshot, pieces);
      return base;
    } catch (error) {
      if (ensureError(error).code !== "SNAPSHOT_DAMAGED") throw error;
      failure ??= error;
    }
  }
  throw failure;
}

function toPosition({ generation, seq }: Position): Position {
  return { generation, seq };
}

/** Contents of a recorded file. */
export interface ReadRecording {
  readonly facts: ArchiveFacts;
  readonly shards: readonly ShardFiles[];
}

/** Reads a recorded file once, and checks every byte of it. @throws BAD_ARCHIVE, BAD_VERSION, IO. */
export async function readRecording(path: string): Promise<ReadRecording> {
  await using reader = await ContainerReader.open(path);
  let index: RecordingIndex | undefined;
  for await (const batch of reader.frames()) {
    for (const placed of batch) {
      index ??= new RecordingIndex(path, placed);
      index.add(placed);
    }
  }
  if (index === undefined) throw badArchive(path, 0, "expected what it is of; received nothing");
  const shards = index.shards.map(({ journal, snapshots }) => ({
    journal: () => Promise.resolve(journal),
    gaps: () => Promise.resolve([]),
    tape: () => Promise.resolve([]),
    snapshots: () => Promise.resolve(snapshots),
  }));
  return { facts: index.facts, shards };
}

/** Finds the segments and snapshots in a recorded file; their contents are checked where they are read. */
class RecordingIndex {
  readonly facts: ArchiveFacts;
  readonly shards: readonly {
    readonly journal: SegmentFile[];
    readonly snapshots: SnapshotFile[];
  }[];
  readonly #path: string;
  /** Offset at which the present part begins. */
  #offset = 0;
  /** The present part if it is a snapshot, and how many of its pieces have not come. */
  #snapshot: SnapshotFile | undefined;
  #piecesLeft = 0;

  constructor(path: string, { frame, offset }: PlacedFrame) {
    this.#path = path;
    this.facts = requireJob(path, offset, frame);
    if (this.facts.archive !== "") {
      throw badArchive(path, offset, "expected a recorded file; this is a part of an archive");
    }
    this.shards = Array.from({ length: this.facts.shards }, () => ({ journal: [], snapshots: [] }));
  }

  add({ frame, offset }: PlacedFrame): void {
    if (frame.kind === "job") {
      this.#offset = offset;
      return;
    }
    if (frame.kind === "end" || frame.kind === "tape" || frame.kind === "gap") {
      const problem = `expected a record or a snapshot; received a ${frame.kind}`;
      throw badArchive(this.#path, offset, problem);
    }
    const parts = this.shards[frame.shard];
    if (parts === undefined) {
      throw badArchive(this.#path, offset, `the job has no shard ${frame.shard}`);
    }
    const part = { path: this.#path, offset: this.#offset };
    const { journal, snapshots } = parts;
    if (frame.kind === "record") {
      const { generation, seq } = frame;
      const last = journal.at(-1);
      if (last?.offset === part.offset) journal[journal.length - 1] = { ...last, lastSeq: seq };
      else journal.push({ ...part, generation, firstSeq: seq, lastSeq: seq, run: undefined });
      return;
    }
    if (frame.kind === "manifest") {
      const { seq: storedSeq, manifest } = toSnapshot(this.#path, offset, frame);
      const { generation, seq } = manifest;
      this.#snapshot = { ...part, generation, seq, storedSeq };
      this.#piecesLeft = frame.pieces.length;
    } else this.#piecesLeft -= 1;
    // One that could not be read whole when it was recorded is left out.
    if (this.#piecesLeft === 0 && this.#snapshot !== undefined) snapshots.push(this.#snapshot);
  }
}
