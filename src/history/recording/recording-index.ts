import { badArchive, type ContainerReader, type PlacedFrame } from "../archive/container.ts";
import type { JobFrame, RecordFrame } from "../archive/frames.ts";
import { toSnapshot } from "../archive/snapshot-file.ts";
import type { JournalSpan, KeptSnapshot } from "../source.ts";

/** Bytes of a file between two records whose places are known. */
const STRIDE_BYTES = 4 * 1024 ** 2;

/** Where a record is in a file. */
interface RecordPlace {
  readonly generation: number;
  readonly seq: number;
  readonly timeMs: number;
  readonly offset: number;
}

/** What a recorded file has of one shard. */
export interface RecordedParts {
  readonly snapshots: KeptSnapshot[];
  /** Offsets of pieces, by sequence. */
  readonly pieces: Map<number, number>;
  readonly spans: JournalSpan[];
  /** The first record of each span, and others some way apart. */
  readonly places: RecordPlace[];
}

/** What a recorded file has. */
export interface RecordingIndex {
  readonly job: JobFrame;
  readonly shards: readonly RecordedParts[];
}

/**
 * Reads a recorded file once, which checks every byte of it.
 * @throws BAD_ARCHIVE, BAD_VERSION, IO.
 */
export async function indexRecording(reader: ContainerReader): Promise<RecordingIndex> {
  let index: RecordingIndex | undefined;
  for await (const batch of reader.frames()) {
    for (const placed of batch) {
      if (index === undefined) index = beginIndex(reader.path, placed);
      else addToIndex(reader.path, index, placed);
    }
  }
  if (index !== undefined) return index;
  throw badArchive(reader.path, 0, "expected what it is of; received nothing");
}

function beginIndex(path: string, { frame, offset }: PlacedFrame): RecordingIndex {
  if (frame.kind !== "job") {
    throw badArchive(path, offset, `expected the job; received a ${frame.kind}`);
  }
  if (frame.archive !== "") {
    throw badArchive(path, offset, "expected a recorded file; this is a part of an archive");
  }
  const shards = Array.from({ length: frame.shards }, () => ({
    snapshots: [],
    pieces: new Map<number, number>(),
    spans: [],
    places: [],
  }));
  return { job: frame, shards };
}

function addToIndex(
  path: string,
  { shards }: RecordingIndex,
  { frame, offset }: PlacedFrame,
): void {
  if (frame.kind === "job" || frame.kind === "end" || frame.kind === "tape") {
    const found = frame.kind === "tape" ? "a message of a tape" : `a second ${frame.kind}`;
    throw badArchive(path, offset, `expected a record or a snapshot; received ${found}`);
  }
  const parts = shards[frame.shard];
  if (parts === undefined) throw badArchive(path, offset, `the job has no shard ${frame.shard}`);
  if (frame.kind === "manifest") parts.snapshots.push(toSnapshot(path, offset, frame));
  else if (frame.kind === "piece") parts.pieces.set(frame.seq, offset);
  else addRecord(parts, frame, offset);
}

function addRecord(
  { spans, places }: RecordedParts,
  { generation, seq, timeMs }: RecordFrame,
  offset: number,
): void {
  const last = spans.at(-1);
  const follows = last?.generation === generation && last.lastSeq + 1 === seq;
  if (follows) spans[spans.length - 1] = { ...last, lastSeq: seq };
  else spans.push({ generation, firstSeq: seq, lastSeq: seq });
  if (follows && offset - (places.at(-1)?.offset ?? 0) < STRIDE_BYTES) return;
  places.push({ generation, seq, timeMs, offset });
}
