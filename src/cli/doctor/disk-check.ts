import { statfs } from "node:fs/promises";
import { join, resolve } from "node:path";
import { readStoredBytes } from "../../broker/store-limit.ts";
import { ensureError } from "../../protocol/errors.ts";
import { io } from "../../system/file-errors.ts";
import { formatBytes } from "../output/amounts.ts";
import { type Check, fail, ok, warn } from "./check.ts";

/** Free bytes of a disk, and the bytes that a store on it uses and has reserved. */
export interface DiskBytes {
  readonly freeBytes: number;
  readonly usedBytes: number;
  readonly reservedBytes: number;
}

/** The disk under the store of a `pserver up` on this machine; `store` is its `--store`. */
export async function checkDisk(store: string): Promise<Check> {
  const directory = join(resolve(store), "store");
  try {
    const disk = await io("look at the disk of", directory, statfs(directory));
    const { used, reserved } = await readStoredBytes(directory);
    const freeBytes = disk.bavail * disk.bsize;
    return checkDiskSpace({ freeBytes, usedBytes: used, reservedBytes: reserved });
  } catch (error) {
    const advice = "give the --store of a pserver up that runs on this machine";
    return fail("disk", ensureError(error).message, advice);
  }
}

/** Whether the disk can still hold what is reserved on it. */
export function checkDiskSpace({ freeBytes, usedBytes, reservedBytes }: DiskBytes): Check {
  const found = `${formatBytes(usedBytes)} used, ${formatBytes(reservedBytes)} reserved, ${formatBytes(freeBytes)} free`;
  if (reservedBytes - usedBytes <= freeBytes) return ok("disk", found);
  const advice = "free space: on a full disk trainers wait with JOURNAL_FULL";
  return warn("disk", `${found}: less than journals may still grow by`, advice);
}
