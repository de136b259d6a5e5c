import { randomUUID } from "node:crypto";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import {
  FILE_MODES,
  makeDirectories,
  writeFileAtomically,
} from "../../model-files/atomic-write.ts";
import { defined } from "../../protocol/fields.ts";
import {
  comparePositions,
  type Position,
  PserverError,
  synchronizationText,
} from "../../protocol/index.ts";
import { errnoCode, fileError } from "../../system/file-errors.ts";
import type { JobFacts, JournalSpan, KeptSnapshot } from "../source.ts";
import { badArchive, ContainerReader, ContainerWriter } from "./container.ts";
import type { JobFrame } from "./frames.ts";

/*
 *     archive.pserver                                     the job and the archive's identity
 *     lock/                                               the archiver that runs
 *     shard-3/journal/2-000000000101-000000000350.segment records 101 to 350 of generation 2
 *     shard-3/journal/2-000000000351.17.open              the segment that run 17 of an archiver is writing
 *     shard-3/journal/2-000000000051-000000000100.gap     records 51 to 100 of generation 2 are not in it
 *     shard-3/tape/0-000000000001-000000000120.segment    messages 1 to 120 of the shard's tape
 *     shard-3/snapshots/2-000000000340-000000000077.snapshot
 *                                                         the snapshot of record 340, and where its
 *                                                         manifest is in the snapshot stream
 */

/** Place of a part of an archive: a segment, or a snapshot. */
interface PartPlace {
  readonly path: string;
  /** Offset at which it begins in a recorded file; undefined if it has a file of its own. */
  readonly offset?: number;
}

/** A segment: consecutive records, or consecutive messages of a tape. */
export interface SegmentFile extends PartPlace {
  readonly generation: number;
  readonly firstSeq: number;
  /** Last sequence; undefined while the segment is being written. */
  readonly lastSeq: number | undefined;
  /** The run that writes it; undefined once it is complete. */
  readonly run: number | undefined;
}

/** A file that says which records the archive lacks. */
export interface GapFile extends JournalSpan, PartPlace {}

/** A manifest and the pieces that no earlier snapshot has. */
export interface SnapshotFile extends Position, PartPlace {
  /** Sequence of the manifest in the snapshot stream. */
  readonly storedSeq: number;
}

/** Files of an archive about one shard. They are listed again on each call: an archiver may add to a directory. */
export interface ShardFiles {
  /** Lists the segments of the journal, by generation and contents, ascending. */
  readonly journal: () => Promise<readonly SegmentFile[]>;
  /** Lists the gaps of the journal, in the same order. */
  readonly gaps: () => Promise<readonly GapFile[]>;
  /** Lists the segments of the tape, in the same order. */
  readonly tape: () => Promise<readonly SegmentFile[]>;
  /** Lists the snapshots in the order in which they were stored. */
  readonly snapshots: () => Promise<readonly SnapshotFile[]>;
}

/** Name of the file that makes a directory an archive. */
const FACTS_FILE = "archive.pserver";

const SEGMENT = /^(\d+)-(\d+)-(\d+)\.segment$/;
const OPEN_SEGMENT = /^(\d+)-(\d+)\.(\d+)\.open$/;
const GAP = /^(\d+)-(\d+)-(\d+)\.gap$/;
const SNAPSHOT = /^(\d+)-(\d+)-(\d+)\.snapshot$/;

/** Digits of a sequence number in a name, so that names sort as numbers do. */
const DIGITS = 12;

/** Returns the directory of a shard's segments. */
export function journalDirectory(archive: string, shard: number): string {
  return join(archive, `shard-${shard}`, "journal");
}

/** Returns the directory of the segments of a shard's tape. */
export function tapeDirectory(archive: string, shard: number): string {
  return join(archive, `shard-${shard}`, "tape");
}

/** Returns the directory of a shard's snapshots. */
export function snapshotDirectory(archive: string, shard: number): string {
  return join(archive, `shard-${shard}`, "snapshots");
}

/** Returns the files of a shard in the directory of an archive. */
export function directoryFiles(archive: string, shard: number): ShardFiles {
  return {
    journal: () => listSegments(journalDirectory(archive, shard)),
    gaps: () => listGaps(journalDirectory(archive, shard)),
    tape: () => listSegments(tapeDirectory(archive, shard)),
    snapshots: () => listSnapshots(snapshotDirectory(archive, shard)),
  };
}

/** Returns the path of a complete segment. */
export function segmentPath(
  directory: string,
  { generation, firstSeq, lastSeq }: JournalSpan,
): string {
  return join(directory, `${generation}-${padded(firstSeq)}-${padded(lastSeq)}.segment`);
}

/** Returns the path of a segment that a run is writing. No other run writes a file of this name. */
export function openSegmentPath(
  directory: string,
  { generation, seq }: Position,
  run: number,
): string {
  return join(directory, `${generation}-${padded(seq)}.${run}.open`);
}

/** Returns the path of a snapshot. */
export function snapshotPath(
  directory: string,
  { generation, seq }: Position,
  storedSeq: number,
): string {
  return join(directory, `${generation}-${padded(seq)}-${padded(storedSeq)}.snapshot`);
}

/** Lists the segments in a directory, by generation and contents, ascending; none if it is not there. */
export async function listSegments(directory: string): Promise<SegmentFile[]> {
  const segments: SegmentFile[] = [];
  for (const name of await namesIn(directory)) {
    const [complete, open] = [SEGMENT.exec(name), OPEN_SEGMENT.exec(name)];
    const [, generation, firstSeq, last] = complete ?? open ?? [];
    if (generation === undefined) continue;
    segments.push({
      path: join(directory, name),
      generation: Number(generation),
      firstSeq: Number(firstSeq),
      lastSeq: open === null ? Number(last) : undefined,
      run: open === null ? undefined : Number(last),
    });
  }
  return segments.sort((a, b) => a.generation - b.generation || a.firstSeq - b.firstSeq);
}

/** Lists the gaps in a directory of segments, by generation and contents, ascending; none if it is not there. */
async function listGaps(directory: string): Promise<GapFile[]> {
  const gaps: GapFile[] = [];
  for (const name of await namesIn(directory)) {
    const match = GAP.exec(name);
    if (match === null) continue;
    const [generation, firstSeq, lastSeq] = match.slice(1).map(Number) as [number, number, number];
    gaps.push({ path: join(directory, name), generation, firstSeq, lastSeq });
  }
  return gaps.sort((a, b) => a.generation - b.generation || a.firstSeq - b.firstSeq);
}

/**
 * Notes in the directory of a shard's segments which records the archive lacks.
 * @throws DISK_FULL, IO.
 */
export async function writeGap(
  directory: string,
  facts: ArchiveFacts,
  shard: number,
  gap: JournalSpan,
): Promise<void> {
  await makeDirectories(directory);
  const { generation, firstSeq, lastSeq } = gap;
  const name = `${generation}-${padded(firstSeq)}-${padded(lastSeq)}.gap`;
  await writeFileAtomically(
    join(directory, name),
    async (handle, file) => {
      const writer = ContainerWriter.begin(handle, file);
      await writer.append(jobFrame(facts));
      await writer.append({ kind: "gap", shard, generation, firstSeq, lastSeq });
      await writer.end();
    },
    FILE_MODES.model,
  );
}

/** Checks that the file of a gap says what its name says. @throws BAD_ARCHIVE, BAD_VERSION, IO. */
export async function checkGap(
  { path, generation, firstSeq, lastSeq }: GapFile,
  shard: number,
  { archive }: ArchiveFacts,
): Promise<void> {
  await using reader = await ContainerReader.open(path);
  const expected = JSON.stringify({ kind: "gap", shard, generation, firstSeq, lastSeq });
  let place = 0;
  for await (const batch of reader.frames()) {
    for (const { frame, offset } of batch) {
      const isExpected =
        place === 0
          ? requireJob(path, offset, frame).archive === archive
          : place === 1 && JSON.stringify(frame) === expected;
      if (!isExpected) throw badArchive(path, offset, "the gap is not the one of its name");
      place += 1;
    }
  }
  if (place < 2) throw badArchive(path, 0, "expected a gap; received nothing");
}

/** Lists the snapshots in a directory in the order in which they were stored; none if it is not there. */
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

/** Facts of the job of an archive, and the archive's identity. */
export interface ArchiveFacts extends JobFacts {
  /** Differs from that of every other archive. */
  readonly archive: string;
}

/**
 * Reads the facts of the archive in a directory.
 * @throws BAD_ARCHIVE if there is none or it is damaged, BAD_VERSION, IO.
 */
export async function readArchiveFacts(directory: string): Promise<ArchiveFacts> {
  const path = join(directory, FACTS_FILE);
  if (!(await exists(path))) {
    throw new PserverError(
      "BAD_ARCHIVE",
      `${directory}: expected an archive; it has no ${FACTS_FILE}`,
      {
        path: directory,
      },
    );
  }
  await using reader = await ContainerReader.open(path);
  let facts: JobFrame | undefined;
  for await (const batch of reader.frames()) {
    for (const { frame, offset } of batch) facts = requireJob(path, offset, frame);
  }
  if (facts === undefined) throw badArchive(path, 0, "expected what it is of; received nothing");
  return facts;
}

/**
 * Reads the facts of the archive in a directory; makes an empty archive of `job` where there is nothing.
 * @throws BAD_ARCHIVE if it is of another job, or the directory holds something else; DISK_FULL, IO.
 */
export async function openArchive(directory: string, job: JobFacts): Promise<ArchiveFacts> {
  if (await exists(join(directory, FACTS_FILE))) {
    const facts = await readArchiveFacts(directory);
    checkSameJob(directory, facts, job);
    return facts;
  }
  await makeDirectories(directory);
  const { job: name, shards, synchronization } = job;
  const facts = { job: name, shards, synchronization, archive: randomUUID() };
  const { settings } = job;
  const path = join(directory, FACTS_FILE);
  await writeFileAtomically(
    path,
    async (handle, file) => {
      const writer = ContainerWriter.begin(handle, file);
      await writer.append(firstFrame({ ...facts, ...defined({ settings }) }));
      await writer.end();
    },
    FILE_MODES.model,
  );
  return facts;
}

/** Makes the first frame of an archive or a recorded file, which has the job's settings, too. */
export function firstFrame({ settings, ...facts }: ArchiveFacts): JobFrame {
  return { ...jobFrame(facts), ...defined({ settings }) };
}

/** Makes the first frame of every other file of an archive. */
export function jobFrame({ job, shards, synchronization, archive }: ArchiveFacts): JobFrame {
  return { kind: "job", job, shards, synchronization, archive };
}

/** Checks that two histories are of one job. @throws BAD_ARCHIVE, which names the first by `path`. */
export function checkSameJob(path: string, archived: JobFacts, job: JobFacts): void {
  const [expected, received] = [describe(job), describe(archived)];
  if (expected === received) return;
  throw new PserverError("BAD_ARCHIVE", `${path}: expected ${expected}; it is of ${received}`, {
    ...{ path, expected, received },
  });
}

/** Reads the facts of the archive from the first frame of a file. @throws BAD_ARCHIVE if it is another frame. */
export function requireJob(
  path: string,
  offset: number,
  frame: { readonly kind: string },
): JobFrame {
  if (frame.kind === "job") return frame as JobFrame;
  throw badArchive(path, offset, `expected the job; received a ${frame.kind}`);
}

function describe({ job, shards, synchronization }: JobFacts): string {
  return `job ${job} with ${shards} shards, ${synchronizationText(synchronization)}`;
}

async function exists(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch (error) {
    if (errnoCode(error) === "ENOENT") return false;
    throw fileError("read", path, error);
  }
}

/**
 * Returns the snapshots by generation and record, ascending; of several of one record only the one stored last: a
 * take-over commits the newest again.
 */
export function uniqueSnapshots(snapshots: readonly KeptSnapshot[]): KeptSnapshot[] {
  const unique = new Map<string, KeptSnapshot>();
  for (const snapshot of [...snapshots].sort((a, b) => a.seq - b.seq)) {
    const { generation, seq } = snapshot.manifest;
    unique.set(`${generation}:${seq}`, snapshot);
  }
  return [...unique.values()].sort((a, b) => comparePositions(a.manifest, b.manifest));
}
