import { ensureError, PserverError } from "../../protocol/index.ts";
import { showPosition } from "../../protocol/messages/position.ts";
import type { JournalSpan } from "../source.ts";
import {
  type ArchiveFacts,
  checkGap,
  type GapFile,
  type SegmentFile,
  type SnapshotFile,
} from "./archive-layout.ts";
import { ArchiveSource } from "./archive-source.ts";
import { ContainerReader } from "./container.ts";
import {
  gapsBetween,
  joinSpans,
  placeOf,
  readFrames,
  type SegmentKind,
  withoutSpans,
} from "./segment.ts";
import { readSnapshotHeader } from "./snapshot-file.ts";

/** Contents of an archive, and its damage. */
export interface ArchiveFindings {
  readonly shards: readonly ShardFindings[];
  /** An error for each damaged file. */
  readonly damage: readonly PserverError[];
}

/** Contents of an archive about a shard. */
interface ShardFindings {
  readonly shard: number;
  readonly spans: readonly JournalSpan[];
  readonly snapshots: number;
  /** Records that are missing between those of the archive, or before them. */
  readonly missing: readonly JournalSpan[];
  readonly tape: TapeFindings;
}

/** Contents of an archive about a shard's tape. */
export interface TapeFindings {
  readonly messages: number;
  /** Number of messages that are missing between those of the archive, or before them. */
  readonly missing: number;
}

/**
 * Reads a whole archive and reports its contents and which files are damaged.
 * @throws BAD_ARCHIVE if there is no archive or the file with its facts is damaged, BAD_VERSION, IO; the reason of
 * `signal`.
 */
export async function checkArchive(
  directory: string,
  signal: AbortSignal,
): Promise<ArchiveFindings> {
  const archive = await ArchiveSource.open(directory);
  const { facts, shards } = archive;
  const damage: PserverError[] = [];
  const found: ShardFindings[] = [];
  for (let shard = 0; shard < shards; shard++) {
    const files = archive.files(shard);
    const deps = { facts, shard, signal, damage };
    const segments = await files.journal();
    const spans = await checkSegments(deps, "record", segments);
    const snapshots = await checkSnapshots(deps, await files.snapshots());
    const tape = await checkSegments(deps, "tape", await files.tape());
    const missing = gapsBetween(spans);
    const noted = await files.gaps();
    for (const gap of noted) await noteDamage(deps, () => checkGap(gap, shard, facts));
    const named = segments.map((each) => ({ ...each, lastSeq: each.lastSeq ?? each.firstSeq - 1 }));
    damage.push(...lostSegments(archive.name, shard, joinSpans([...spans, ...named]), noted));
    const ofTape = { messages: countOf(tape), missing: countOf(gapsBetween(tape)) };
    found.push({ shard, spans, snapshots, missing, tape: ofTape });
  }
  return { shards: found, damage };
}

/** Returns an error for each range between two spans that the archive neither holds nor says that it lacks. */
function lostSegments(
  path: string,
  shard: number,
  spans: readonly JournalSpan[],
  noted: readonly GapFile[],
): PserverError[] {
  const between = gapsBetween(spans).filter(({ generation, firstSeq }) =>
    spans.some((span) => span.generation === generation && span.lastSeq < firstSeq),
  );
  return withoutSpans(between, noted).map(({ generation, firstSeq, lastSeq }) => {
    const from = showPosition(shard, { generation, seq: firstSeq });
    const text = `${path}: records ${from} to ${lastSeq} are gone: their segment was lost`;
    return new PserverError("BAD_ARCHIVE", text, { path, shard, generation, firstSeq, lastSeq });
  });
}

/** Dependencies of the checks of one shard. */
interface CheckDeps {
  readonly facts: ArchiveFacts;
  readonly shard: number;
  readonly signal: AbortSignal;
  /** Gets the errors. */
  readonly damage: PserverError[];
}

/** Reads segments; returns the spans that they hold. */
async function checkSegments(
  deps: CheckDeps,
  kind: SegmentKind,
  segments: readonly SegmentFile[],
): Promise<JournalSpan[]> {
  const spans: JournalSpan[] = [];
  for (const segment of segments) {
    await noteDamage(deps, () => checkSegment(deps, kind, segment, spans));
  }
  return joinSpans(spans);
}

/** Reads a segment, and adds its span to `spans`. */
async function checkSegment(
  { facts, shard, signal }: CheckDeps,
  kind: SegmentKind,
  segment: SegmentFile,
  spans: JournalSpan[],
): Promise<void> {
  const { generation, firstSeq } = segment;
  for await (const batch of readFrames(kind, segment, shard, facts)) {
    signal.throwIfAborted();
    const last = batch.at(-1);
    if (last !== undefined) spans.push({ generation, firstSeq, lastSeq: placeOf(last).seq });
  }
}

function countOf(spans: readonly JournalSpan[]): number {
  return spans.reduce((count, { firstSeq, lastSeq }) => count + lastSeq - firstSeq + 1, 0);
}

/** Reads all snapshots of a shard; returns how many are sound. */
async function checkSnapshots(deps: CheckDeps, files: readonly SnapshotFile[]): Promise<number> {
  const { facts, shard, signal } = deps;
  let sound = 0;
  for (const file of files) {
    await noteDamage(deps, async () => {
      await readSnapshotHeader(file, shard, facts);
      await using reader = await ContainerReader.open(file.path);
      for await (const _batch of reader.part(file.offset)) signal.throwIfAborted();
      sound++;
    });
  }
  return sound;
}

async function noteDamage({ damage }: CheckDeps, check: () => Promise<void>): Promise<void> {
  try {
    await check();
  } catch (error) {
    const found = ensureError(error);
    if (found.code !== "BAD_ARCHIVE") throw found;
    damage.push(found);
  }
}
