import { ensureError } from "../../protocol/index.ts";
import { mapConcurrently } from "../concurrent.ts";
import type { Manifest, PieceRef } from "../snapshot/manifest.ts";
import { blockKey, readSnapshotState } from "../snapshot/state.ts";
import type { SnapshotStore } from "../snapshot/store.ts";
import type { FoundSnapshot, LackedBlock } from "./findings.ts";
import type { InitializedBlock } from "./initialized-blocks.ts";

/** Pieces read from the broker at one time. */
const READS_AT_ONCE = 4;

/** A manifest in the snapshot stream; undefined if it cannot be read. */
export interface ManifestEntry {
  readonly seq: number;
  readonly manifest: Manifest | undefined;
}

/** Those of the wanted blocks that are not present under the epoch of their initialization. */
export function lackedBlocks(
  wanted: readonly InitializedBlock[],
  present: Iterable<InitializedBlock>,
): LackedBlock[] {
  const epochs = new Map<string, number>();
  for (const { parameter, index, epoch } of present) epochs.set(blockKey(parameter, index), epoch);
  return wanted
    .filter(({ parameter, index, epoch }) => epochs.get(blockKey(parameter, index)) !== epoch)
    .map(({ parameter, index }) => ({ parameter, index }));
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

/** Reads a snapshot as a whole: why it cannot be used, or the blocks that it lacks. */
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
