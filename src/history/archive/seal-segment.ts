import { copyFile, open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { syncDirectory } from "../../model-files/atomic-write.ts";
import type { PserverError } from "../../protocol/index.ts";
import { io } from "../../system/file-errors.ts";
import { ContainerWriter } from "../container/container-writer.ts";
import type { ArchiveFacts } from "./archive-facts.ts";
import { type SegmentFile, segmentPath } from "./archive-layout.ts";
import { readTail } from "./segment.ts";
import type { SegmentKind } from "./segment-check.ts";

/**
 * Completes a segment that an archiver that died has left: cuts off a part of a frame at its end and adds
 * the end frame; one without contents is removed. If it is damaged it ends before the damage, and a copy of
 * the whole is kept beside it.
 * @returns the damage.
 * @throws BAD_ARCHIVE if nothing of it can be read, BAD_VERSION, DISK_FULL, IO.
 */
export async function sealSegment(
  kind: SegmentKind,
  segment: SegmentFile,
  shard: number,
  facts: ArchiveFacts,
): Promise<PserverError | undefined> {
  const { path, generation, firstSeq } = segment;
  const { lastSeq, isEnded, sums, damage } = await readTail(kind, segment, shard, facts);
  if (damage !== undefined) await io("copy", path, copyFile(path, `${path}.damaged`));
  if (lastSeq < firstSeq) {
    await io("remove", path, rm(path));
    return damage;
  }
  if (!isEnded) {
    const handle = await io("open", path, open(path, "r+"));
    try {
      await io("shorten", path, handle.truncate(sums.totals.bytes));
      const writer = ContainerWriter.resume(handle, path, sums);
      await writer.end();
      await writer.sync();
    } finally {
      await handle.close();
    }
  }
  const complete = segmentPath(dirname(path), generation, firstSeq, lastSeq);
  await io("rename", path, rename(path, complete));
  await syncDirectory(dirname(path));
  return damage;
}
