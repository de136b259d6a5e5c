import { ArchiveSource } from "../../../src/history/archive/archive-source.ts";
import { Archiver, type ArchiverOptions } from "../../../src/history/archive/job-archiver.ts";
import { joinHistories } from "../../../src/history/archive/joined-source.ts";
import type { HistorySource, ShardHistory } from "../../../src/history/source.ts";
import type { MemoryHistory } from "./memory-history.ts";

const { signal } = new AbortController();

let runs = 0;

/** Opens an archiver, as a run after all before. */
export async function openArchiver(
  source: HistorySource,
  directory: string,
  options: Partial<ArchiverOptions> = {},
): Promise<Archiver> {
  runs += 1;
  return await Archiver.open({ source, directory, run: runs, ...options });
}

/** Archives what a history holds now, and ends in order. */
export async function archiveOnce(
  source: HistorySource,
  directory: string,
  options: Partial<ArchiverOptions> = {},
): Promise<Archiver> {
  const archiver = await openArchiver(source, directory, options);
  await archiver.copy(signal);
  await archiver.close();
  return archiver;
}

/** A shard of an archive alone: of its directory, or of a recorded file. */
export async function archivedShard(directory: string, shard = 0): Promise<ShardHistory> {
  return (await ArchiveSource.open(directory)).shard(shard);
}

/** Shard 0 of an archive and the history that goes on, as one. */
export async function joinedShard(directory: string, live: MemoryHistory): Promise<ShardHistory> {
  return joinHistories(await ArchiveSource.open(directory), live).shard(0);
}
