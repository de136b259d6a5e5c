import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { Position } from "../../protocol/index.ts";
import { errnoCode, fileError } from "../../system/file-errors.ts";

/*
 *     archive.pserver                                     the job and the archive's identity
 *     lock/                                               the archiver that runs
 *     shard-3/journal/2-000000000101-000000000350.segment records 101 to 350 of generation 2
 *     shard-3/journal/2-000000000351.open                 the segment that is being written
 *     shard-3/tape/0-000000000001-000000000120.segment    messages 1 to 120 of the shard's tape
 *     shard-3/snapshots/2-000000000340-000000000077.snapshot
 *                                                         the snapshot of record 340, and where its
 *                                                         manifest is in the snapshot stream
 */

/** A file of records, or of messages of a tape, that follow each other. */
export interface SegmentFile {
  readonly path: string;
  readonly generation: number;
  readonly firstSeq: number;
  /** Undefined while it is being written. */
  readonly lastSeq: number | undefined;
}

/** A file of a manifest and the pieces that no earlier file has. */
export interface SnapshotFile extends Position {
  readonly path: string;
  /** Sequence of the manifest in the snapshot stream. */
  readonly storedSeq: number;
}

/** Name of the file that makes a directory an archive. */
export const FACTS_FILE = "archive.pserver";

const SEGMENT = /^(\d+)-(\d+)-(\d+)\.segment$/;
const OPEN_SEGMENT = /^(\d+)-(\d+)\.open$/;
const SNAPSHOT = /^(\d+)-(\d+)-(\d+)\.snapshot$/;

/** Digits of a sequence number in a name, so that names sort as numbers do. */
const DIGITS = 12;

/** The directory of a shard's segments. */
export function journalDirectory(archive: string, shard: number): string {
  return join(archive, `shard-${shard}`, "journal");
}

/** The directory of the segments of a shard's tape. */
export function tapeDirectory(archive: string, shard: number): string {
  return join(archive, `shard-${shard}`, "tape");
}

/** The directory of a shard's snapshots. */
export function snapshotDirectory(archive: string, shard: number): string {
  return join(archive, `shard-${shard}`, "snapshots");
}

/** Path of a segment; without `lastSeq` of one that is being written. */
export function segmentPath(
  directory: string,
  generation: number,
  firstSeq: number,
  lastSeq?: number,
): string {
  const name = `${generation}-${padded(firstSeq)}`;
  return join(
    directory,
    lastSeq === undefined ? `${name}.open` : `${name}-${padded(lastSeq)}.segment`,
  );
}

/** Path of a snapshot. */
export function snapshotPath(
  directory: string,
  { generation, seq }: Position,
  storedSeq: number,
): string {
  return join(directory, `${generation}-${padded(seq)}-${padded(storedSeq)}.snapshot`);
}

/** The segments in a directory, by generation and contents, ascending; none if it is not there. */
export async function listSegments(directory: string): Promise<SegmentFile[]> {
  const segments: SegmentFile[] = [];
  for (const name of await namesIn(directory)) {
    const match = SEGMENT.exec(name) ?? OPEN_SEGMENT.exec(name);
    if (match === null) continue;
    const [, generation, firstSeq, lastSeq] = match;
    segments.push({
      path: join(directory, name),
      generation: Number(generation),
      firstSeq: Number(firstSeq),
      lastSeq: lastSeq === undefined ? undefined : Number(lastSeq),
    });
  }
  return segments.sort((a, b) => a.generation - b.generation || a.firstSeq - b.firstSeq);
}

/** The snapshots in a directory in the order in which they were stored; none if it is not there. */
export async function listSnapshots(directory: string): Promise<SnapshotFile[]> {
  const snapshots: SnapshotFile[] = [];
  for (const name of await namesIn(directory)) {
    const match = SNAPSHOT.exec(name);
    if (match === null) continue;
    const [generation, seq, storedSeq] = match.slice(1).map(Number) as [number, number, number];
    snapshots.push({ path: join(directory, name), generation, seq, storedSeq });
  }
  return snapshots.sort((a, b) => a.storedSeq - b.storedSeq);
}

async function namesIn(directory: string): Promise<string[]> {
  try {
    return await readdir(directory);
  } catch (error) {
    if (errnoCode(error) === "ENOENT") return [];
    throw fileError("read", directory, error);
  }
}

function padded(seq: number): string {
  return String(seq).padStart(DIGITS, "0");
}
