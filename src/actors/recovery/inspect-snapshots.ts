import { blockPlaces, ensureError, type Position } from "../../protocol/index.ts";
import { mapConcurrently } from "../concurrent.ts";
import type { Shard } from "../fold/shard.ts";
import type { KvBucket } from "../journal/kv-bucket.ts";
import type { Manifest, PieceRef } from "../journal/manifest.ts";
import { blockKey, readSnapshotState, type SnapshotStore } from "../journal/snapshot-store.ts";
import { effectiveState } from "../lifecycle/parameter.ts";
import type { FoundArchive, FoundSnapshot, LackedBlock } from "./findings.ts";
import { readSound } from "./inspect-entries.ts";

/** Pieces read from the broker at one time. */
const READS_AT_ONCE = 4;

/** A manifest in the snapshot stream; undefined if it cannot be read. */
export interface ManifestEntry {
  readonly seq: number;
  readonly manifest: Manifest | undefined;
}

/** Returns those of the wanted blocks that are not present under the epoch of their initialization. */
export function lackedBlocks(
  wanted: readonly InitializedBlock[],
  present: Iterable<Pick<InitializedBlock, "parameter" | "index" | "epoch">>,
): LackedBlock[] {
  const epochs = new Map<string, number>();
  for (const { parameter, index, epoch } of present) epochs.set(blockKey(parameter, index), epoch);
  return wanted
    .filter(({ parameter, index, epoch }) => epochs.get(blockKey(parameter, index)) !== epoch)
    .map(({ parameter, index, number }) => ({ parameter, index, number }));
}

/** Reads all pieces of every snapshot that a manifest names, the newest first. */
export async function inspectSnapshots(
  store: SnapshotStore,
  entries: readonly ManifestEntry[],
  wanted: readonly InitializedBlock[],
): Promise<FoundSnapshot[]> {
  // Snapshots share the pieces that did not change between them.
  const readable = new Set<string>();
  const found: FoundSnapshot[] = [];
  for (const { seq, manifest } of [...entries].reverse()) {
    if (manifest === undefined) {
      const problem = "the manifest cannot be read";
      const nothing = { generation: 0, seq: 0, recordCrc: 0, host: "", lacks: [] };
      found.push({ manifestSeq: seq, ...nothing, problem });
      continue;
    }
    const { generation, recordCrc, host } = manifest;
    const read = await readWhole(store, manifest, readable, wanted);
    found.push({ manifestSeq: seq, generation, seq: manifest.seq, recordCrc, host, ...read });
  }
  return found;
}

/** Reads a snapshot as a whole; returns why it cannot be used, or the blocks that it lacks. */
async function readWhole(
  store: SnapshotStore,
  manifest: Manifest,
  readable: Set<string>,
  wanted: readonly InitializedBlock[],
): Promise<Pick<FoundSnapshot, "problem" | "lacks">> {
  const read = async (piece: PieceRef): Promise<void> => {
    const key = `${piece.seq} ${piece.crc}`;
    if (readable.has(key)) return;
    await store.read(piece);
    readable.add(key);
  };
  try {
    const { pieces } = await readSnapshotState(store, manifest);
    const all = pieces.flatMap(({ slots }) => slots);
    await mapConcurrently(all, read, READS_AT_ONCE);
    return { lacks: lackedBlocks(wanted, pieces) };
  } catch (error) {
    const { code, message } = ensureError(error);
    if (code !== "SNAPSHOT_DAMAGED") throw error;
    return { problem: message, lacks: [] };
  }
}

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

/**
 * Finds out which state of a shard an archive gives. Throws errors that say nothing about the archive, such as
 * ABORTED.
 */
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

/** A block of an initialized parameter: its shard must have it, as nobody will initialize it again. */
export interface InitializedBlock extends LackedBlock {
  readonly epoch: number;
}

/**
 * Returns the blocks of initialized parameters that lie on a shard, as far as the entries of the job's bucket can be
 * read: those that are damaged are written again once all shards are served, from what these have.
 */
export async function initializedBlocks(
  bucket: Pick<KvBucket, "keys" | "read">,
  shard: number,
): Promise<InitializedBlock[]> {
  const { sound } = await readSound(bucket);
  return [...sound.parameters.values()]
    .filter((parameter) => effectiveState(parameter, sound.job) === "ready")
    .flatMap(({ declaration, layout, firstNumber, lifecycle }) =>
      blockPlaces(layout)
        .filter((place) => place.shard === shard)
        .map(({ index }) => ({
          parameter: declaration.name,
          index,
          number: firstNumber + index,
          epoch: lifecycle.context.epoch,
        })),
    );
}
