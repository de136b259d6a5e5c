import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { isTemporaryName } from "../../model-files/atomic-write.ts";
import { errnoCode, fileError, io } from "../../system/file-errors.ts";
import { snapshotDirectory } from "./archive-layout.ts";

/** Removes what an archiver that died was about to write as a snapshot of a shard. @throws IO. */
export async function removeLeftTemporaries(archive: string, shard: number): Promise<void> {
  const directory = snapshotDirectory(archive, shard);
  let names: string[];
  try {
    names = await readdir(directory);
  } catch (error) {
    if (errnoCode(error) === "ENOENT") return;
    throw fileError("read", directory, error);
  }
  for (const name of names.filter(isTemporaryName)) {
    const path = join(directory, name);
    await io("remove", path, rm(path, { force: true }));
  }
}
