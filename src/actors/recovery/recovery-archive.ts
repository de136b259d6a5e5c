import { ensureError, type Position } from "../../protocol/index.ts";
import type { Shard } from "../fold/shard.ts";
import type { FoundArchive } from "./findings.ts";
import type { InitializedBlock } from "./initialized-blocks.ts";
import { lackedBlocks } from "./inspect-snapshots.ts";

/** The newest state of a shard that an archive gives. */
export interface ArchivedState {
  readonly at: Position;
  /** Last record of that generation in the archive itself; those after it are read from the broker. */
  readonly archivedSeq: number;
  /** First record in whose place the broker holds another one, if any. */
  readonly replacedFrom: number | undefined;
  readonly shard: Shard;
}

/** An archive of the job, read together with what the broker still holds. */
export interface RecoveryArchive {
  /** Path of the archive. */
  readonly name: string;
  /**
   * Rebuilds the newest state of a shard that can be rebuilt.
   * @throws BAD_ARCHIVE for an archive of another job, or a damaged one; HISTORY_LOST if it has no state.
   */
  newest(shard: number): Promise<ArchivedState>;
  /** Rebuilds a shard as it was at a position. @throws as `newest`; JOURNAL_DAMAGED, SNAPSHOT_DAMAGED. */
  rebuild(shard: number, at: Position): Promise<Shard>;
}

/** Finds out what an archive gives of a shard. Throws what says nothing about the archive, such as ABORTED. */
export async function inspectArchive(
  archive: RecoveryArchive,
  shard: number,
  initialized: readonly InitializedBlock[],
): Promise<FoundArchive> {
  const { name } = archive;
  try {
    const { at, archivedSeq, replacedFrom, shard: state } = await archive.newest(shard);
    const lacks = lackedBlocks(initialized, state.blocks());
    const replaced = replacedFrom === undefined ? {} : { replacedFrom };
    return { ...{ name, archivedSeq, lacks }, ...at, ...replaced };
  } catch (error) {
    const { code, message } = ensureError(error);
    if (code !== "BAD_ARCHIVE" && code !== "HISTORY_LOST") throw error;
    return { name, generation: 0, seq: 0, archivedSeq: 0, lacks: [], problem: message };
  }
}
