import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { PserverError } from "../../../protocol/errors.ts";
import { errnoCode, fileError } from "../../../system/file-errors.ts";
import type { TrainerEnd } from "../running-trainers.ts";
import { logNames } from "./log-names.ts";

/** The trainers of a batch job, and where they write how they ended. */
export interface TaskFiles {
  readonly instances: number;
  readonly logDirectory: string;
  readonly trainerId: (rank: number) => string;
}

/**
 * The ends of the trainers whose tasks have written them.
 * @throws IO, BAD_FILE for a file that cannot be read, or holds something else.
 */
export async function readEnds(files: TaskFiles): Promise<TrainerEnd[]> {
  const ends = await Promise.all(ranksOf(files).map((rank) => readEnd(files, rank)));
  return ends.filter((end) => end !== undefined);
}

/** The ends of the other trainers, as failures. */
export function silentEnds(files: TaskFiles, told: readonly TrainerEnd[]): TrainerEnd[] {
  const known = new Set(told.map(({ rank }) => rank));
  const silent = ranksOf(files).filter((rank) => !known.has(rank));
  return silent.map((rank) => ({
    rank,
    trainer: files.trainerId(rank),
    exitCode: 1,
    restarts: 0,
  }));
}

function ranksOf({ instances }: TaskFiles): number[] {
  return Array.from({ length: instances }, (_, rank) => rank);
}

async function readEnd(
  { logDirectory, trainerId }: TaskFiles,
  rank: number,
): Promise<TrainerEnd | undefined> {
  const path = join(logDirectory, logNames.end(rank));
  try {
    const match = /^(\d{1,3}) (\d{1,9})$/.exec((await readFile(path, "utf8")).trim());
    if (match === null) throw new PserverError("BAD_FILE", `${path}: expected an exit code`);
    const [exitCode = 1, restarts = 0] = match.slice(1).map(Number);
    return { rank, trainer: trainerId(rank), exitCode, restarts };
  } catch (error) {
    if (errnoCode(error) === "ENOENT") return undefined;
    throw fileError("read", path, error);
  }
}
