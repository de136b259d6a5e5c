import type { PieceRef } from "../../actors/journal/manifest.ts";
import { readSnapshotState } from "../../actors/journal/snapshot-store.ts";
import { FILE_MODES, writeFileAtomically } from "../../model-files/atomic-write.ts";
import { ensureError, type Position, PserverError } from "../../protocol/index.ts";
import { ContainerWriter } from "../archive/container.ts";
import { manifestFrame, type PieceToCopy } from "../archive/snapshot-file.ts";
import type { Cut } from "../points.ts";
import {
  basesBefore,
  basesOf,
  connectedUpTo,
  type HistorySource,
  type Inventory,
  type ReplayBase,
  type ShardHistory,
  takeInventory,
} from "../source.ts";

/** What is recorded of a history. */
export interface RecordingSpan {
  /** In each shard, the position from which on the recording can be replayed. */
  readonly from: Cut;
  /** In each shard, the last record. */
  readonly to: Cut;
}

/** What was recorded. */
export interface Recording {
  readonly bytes: number;
  readonly records: number;
  readonly shards: readonly {
    readonly shard: number;
    readonly from: Position;
    readonly to: Position;
  }[];
}

/** How {@link writeRecording} works. */
export interface RecordingOptions {
  readonly signal: AbortSignal;
  /** Called now and then with the records written, of those to write. */
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
  options: RecordingOptions,
): Promise<Recording> {
  const { job, shards, synchronization } = source;
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
      await writer.append({ kind: "job", job, shards, synchronization, archive: "" });
      for (const part of parts) {
        await writePart(writer, part, options, (count) => {
          records += count;
          options.onProgress?.(records, total);
        });
      }
      await writer.end();
    },
    FILE_MODES.model,
  );
  const ranges = from.map((_, shard) => {
    const own = parts.filter(({ history }) => history.shard === shard);
    const [first] = own;
    const [begin, end] = [first?.bases[0], own.at(-1)?.to];
    const nothing = { generation: 1, seq: 0 };
    return { shard, from: toPosition(begin ?? nothing), to: toPosition(end ?? nothing) };
  });
  return { bytes, records, shards: ranges };
}

/** The parts of a shard, one for each generation. */
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

/** Where a later generation begins: at its first snapshot. */
function firstOf(inventory: Inventory, generation: number): Position | undefined {
  return basesOf(inventory).find((base) => base.generation === generation);
}

async function writePart(
  writer: ContainerWriter,
  { history, inventory, bases, to }: Part,
  { signal }: RecordingOptions,
  onRecords: (count: number) => void,
): Promise<void> {
  const { shard } = history;
  const { generation } = to;
  const base = await writeBase(writer, history, bases, signal);
  // The record of the snapshot itself tells when the snapshot was up to date.
  const isKept = inventory.spans.some(
    (span) =>
      span.generation === generation && span.firstSeq <= base.seq && base.seq <= span.lastSeq,
  );
  const after = { generation, seq: isKept ? base.seq - 1 : base.seq };
  for await (const batch of history.read(after, to.seq, signal)) {
    for (const { seq, timeMs, subject, payload } of batch) {
      const place = { shard, generation, seq, timeMs, subject };
      await writer.append({ kind: "record", ...place, data: payload });
    }
    onRecords(batch.length);
  }
}

/** Writes the nearest snapshot that can be read. @throws SNAPSHOT_DAMAGED if none can. */
async function writeBase(
  writer: ContainerWriter,
  history: ShardHistory,
  bases: readonly [ReplayBase, ...ReplayBase[]],
  signal: AbortSignal,
): Promise<ReplayBase> {
  let failure: unknown;
  for (const base of bases) {
    const { snapshot } = base;
    if (snapshot === undefined) return base;
    try {
      const pieces = await piecesOf(history, base);
      const { shard } = history;
      await writer.append(manifestFrame(shard, snapshot, pieces));
      for (const { seq, read } of pieces) {
        signal.throwIfAborted();
        await writer.append({ kind: "piece", shard, seq, data: await read() });
      }
      return base;
    } catch (error) {
      if (ensureError(error).code !== "SNAPSHOT_DAMAGED") throw error;
      failure ??= error;
    }
  }
  throw failure;
}

/** The pieces of a snapshot, each of which can be read. */
async function piecesOf(history: ShardHistory, { snapshot }: ReplayBase): Promise<PieceToCopy[]> {
  if (snapshot === undefined) return [];
  const { manifest } = snapshot;
  const store = { read: (ref: PieceRef) => history.piece(ref) };
  const { pieces } = await readSnapshotState(store, manifest);
  const refs = new Map<number, PieceRef>();
  for (const ref of [...manifest.state, ...pieces.flatMap(({ slots }) => slots)]) {
    refs.set(ref.seq, ref);
  }
  return [...refs.values()].map((ref) => ({ seq: ref.seq, read: () => history.piece(ref) }));
}

function toPosition({ generation, seq }: Position): Position {
  return { generation, seq };
}
