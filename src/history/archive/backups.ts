import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { makeDirectories } from "../../model-files/atomic-write.ts";
import { PserverError } from "../../protocol/index.ts";
import { fileError } from "../../system/file-errors.ts";
import type { Cut } from "../points.ts";
import type { HistorySource } from "../source.ts";
import { type Recording, type RecordingOptions, writeRecording } from "./recorded-file.ts";

/*
 * A directory of backups holds files mnist-20261127T015426123Z.pserver, each a recorded file that begins and ends with
 * one cut of the job in its name. No file of such a name ever changes, so the directory can be copied at any time.
 */

/** A backup in a directory. */
export interface Backup {
  readonly path: string;
  readonly job: string;
  /** When it was begun, as its name says: `20261127T015426123Z`. */
  readonly made: string;
}

const NAME = /^(.+)-(\d{8}T\d{9}Z)\.pserver$/;

/**
 * Writes a backup of a job into a directory, which is made if it is not there: the state at a cut, and the job's settings.
 * It appears whole or not at all.
 * @returns its path, and what it holds.
 * @throws as {@link writeRecording}.
 */
export async function writeBackup(
  directory: string,
  source: HistorySource,
  cut: Cut,
  nowMs: number,
  options: RecordingOptions,
): Promise<Recording & { readonly file: string }> {
  await makeDirectories(directory);
  const made = new Date(nowMs).toISOString().replaceAll(/[-:.]/g, "");
  const file = join(directory, `${source.job}-${made}.pserver`);
  return { file, ...(await writeRecording(file, source, { from: cut, to: cut }, options)) };
}

/** Lists the backups in a directory, oldest first. @throws IO. */
async function listBackups(directory: string): Promise<Backup[]> {
  const names = await readdir(directory).catch((error: unknown) => {
    throw fileError("read", directory, error);
  });
  const backups = names.flatMap((name): Backup[] => {
    const [, job, made] = NAME.exec(name) ?? [];
    return job === undefined || made === undefined
      ? []
      : [{ path: join(directory, name), job, made }];
  });
  return backups.sort((a, b) => (a.made < b.made ? -1 : 1));
}

/**
 * Returns the newest backup in a directory, of job `of` if that is named.
 * @throws BAD_ARCHIVE if there is none, BAD_VALUE if there are some of several jobs and none is named; IO.
 */
export async function newestBackup(directory: string, of: string | undefined): Promise<Backup> {
  const all = await listBackups(directory);
  const jobs = [...new Set(all.map(({ job }) => job))].sort();
  if (of === undefined && jobs.length > 1) {
    const text = `${directory} has backups of ${jobs.join(", ")}: choose one with --of`;
    throw new PserverError("BAD_VALUE", text, { path: directory, expected: jobs });
  }
  const newest = all.findLast(({ job }) => of === undefined || job === of);
  if (newest !== undefined) return newest;
  const wanted = of === undefined ? "a backup" : `a backup of job ${of}`;
  const found = jobs.length === 0 ? "none" : `some of ${jobs.join(", ")}`;
  throw new PserverError("BAD_ARCHIVE", `${directory}: expected ${wanted}; it has ${found}`, {
    path: directory,
  });
}
