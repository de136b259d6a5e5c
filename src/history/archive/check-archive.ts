import { ensureError, type PserverError } from "../../protocol/index.ts";
import { ContainerReader } from "../container/container-reader.ts";
import type { JournalSpan } from "../source.ts";
import type { ArchiveFacts } from "./archive-facts.ts";
import {
  journalDirectory,
  listSegments,
  listSnapshots,
  snapshotDirectory,
} from "./archive-layout.ts";
import { ArchiveSource } from "./archive-source.ts";
import { gapsBetween, joinSpans } from "./join-spans.ts";
import { readSegment } from "./segment.ts";
import { readSnapshotHead } from "./snapshot-file.ts";

/** What is wrong in an archive. */
export interface ArchiveFindings {
  readonly shards: readonly ShardFindings[];
  /** One for each damaged file. */
  readonly damage: readonly PserverError[];
}

/** What an archive has of a shard. */
export interface ShardFindings {
  readonly shard: number;
  readonly spans: readonly JournalSpan[];
  readonly snapshots: number;
  /** Records that it lacks between those that it has, or before them. */
  readonly missing: readonly JournalSpan[];
}

/**
 * Reads a whole archive and tells what it has and which files are damaged.
 * @throws BAD_ARCHIVE if there is no archive or the file that says what it is of is damaged, BAD_VERSION,
 * IO; the reason of `signal`.
 */
export async function checkArchive(
  directory: string,
  signal: AbortSignal,
): Promise<ArchiveFindings> {
  const { facts, shards } = await ArchiveSource.open(directory);
  const damage: PserverError[] = [];
  const found: ShardFindings[] = [];
  for (let shard = 0; shard < shards; shard++) {
    const deps = { directory, facts, shard, signal, damage };
    const spans = await checkSegments(deps);
    const snapshots = await checkSnapshots(deps);
    found.push({ shard, spans, snapshots, missing: gapsBetween(spans) });
  }
  return { shards: found, damage };
}

/** What the checks of one shard need. */
interface CheckDeps {
  readonly directory: string;
  readonly facts: ArchiveFacts;
  readonly shard: number;
  readonly signal: AbortSignal;
  /** Takes what is wrong. */
  readonly damage: PserverError[];
}

/** Reads all segments of a shard; returns what they hold. */
async function checkSegments(deps: CheckDeps): Promise<JournalSpan[]> {
  const { directory, facts, shard, signal } = deps;
  const spans: JournalSpan[] = [];
  for (const segment of await listSegments(journalDirectory(directory, shard))) {
    await noteDamage(deps, async () => {
      const { generation, firstSeq } = segment;
      for await (const batch of readSegment(segment, shard, facts)) {
        signal.throwIfAborted();
        spans.push({ generation, firstSeq, lastSeq: batch.at(-1)?.seq ?? firstSeq - 1 });
      }
    });
  }
  return joinSpans(spans);
}

/** Reads all snapshots of a shard; returns how many are sound. */
async function checkSnapshots(deps: CheckDeps): Promise<number> {
  const { directory, facts, shard, signal } = deps;
  let sound = 0;
  for (const file of await listSnapshots(snapshotDirectory(directory, shard))) {
    await noteDamage(deps, async () => {
      await readSnapshotHead(file, shard, facts);
      await using reader = await ContainerReader.open(file.path);
      for await (const _batch of reader.frames()) signal.throwIfAborted();
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
