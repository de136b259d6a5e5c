import { randomUUID } from "node:crypto";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import {
  FILE_MODES,
  makeDirectories,
  writeFileAtomically,
} from "../../model-files/atomic-write.ts";
import { PserverError, synchronizationText } from "../../protocol/index.ts";
import { errnoCode, fileError } from "../../system/file-errors.ts";
import { badArchive } from "../container/bad-archive.ts";
import { ContainerReader } from "../container/container-reader.ts";
import { ContainerWriter } from "../container/container-writer.ts";
import type { JobFrame } from "../container/frames.ts";
import type { JobFacts } from "../source.ts";
import { FACTS_FILE } from "./archive-layout.ts";

/** What an archive is of, and its identity. */
export interface ArchiveFacts extends JobFacts {
  /** Tells this archive from every other one. */
  readonly archive: string;
}

/**
 * Reads what the archive in a directory is of.
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
 * Reads what the archive in a directory is of; makes an empty archive of `job` where there is nothing.
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
  const path = join(directory, FACTS_FILE);
  await writeFileAtomically(
    path,
    async (handle, file) => {
      const writer = ContainerWriter.begin(handle, file);
      await writer.append(jobFrame(facts));
      await writer.end();
    },
    FILE_MODES.model,
  );
  return facts;
}

/** The first frame of every file of an archive. */
export function jobFrame({ job, shards, synchronization, archive }: ArchiveFacts): JobFrame {
  return { kind: "job", job, shards, synchronization, archive };
}

/** Passes if two are of one job. @throws BAD_ARCHIVE, which names the first by `path`. */
export function checkSameJob(path: string, archived: JobFacts, job: JobFacts): void {
  const [expected, received] = [describe(job), describe(archived)];
  if (expected === received) return;
  throw new PserverError("BAD_ARCHIVE", `${path}: expected ${expected}; it is of ${received}`, {
    ...{ path, expected, received },
  });
}

/** The first frame of a file as what it is of. @throws BAD_ARCHIVE if it is something else. */
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
