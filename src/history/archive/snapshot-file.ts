import { decodeManifest, encodeManifest, type PieceRef } from "../../actors/journal/manifest.ts";
import { readSnapshotState } from "../../actors/journal/snapshot-store.ts";
import {
  FILE_MODES,
  makeDirectories,
  writeFileAtomically,
} from "../../model-files/atomic-write.ts";
import { ensureError } from "../../protocol/index.ts";
import type { KeptSnapshot, ShardHistory } from "../source.ts";
import {
  type ArchiveFacts,
  jobFrame,
  requireJob,
  type SnapshotFile,
  snapshotDirectory,
  snapshotPath,
} from "./archive-layout.ts";
import { badArchive, ContainerReader, ContainerWriter, PREAMBLE_BYTES } from "./container.ts";
import type { ManifestFrame } from "./frames.ts";

/** A piece that is to be written: its sequence in the snapshot stream, and how to read it. */
export interface PieceToCopy {
  readonly seq: number;
  readonly read: () => Promise<Uint8Array>;
}

/**
 * Returns the pieces of a snapshot and the parts of its state, each once, without those in `known`.
 * @throws SNAPSHOT_DAMAGED if its state cannot be read; reading a piece throws the errors of `history.piece`, or the
 * reason of `signal`.
 */
export async function piecesOf(
  history: Pick<ShardHistory, "piece">,
  { manifest }: KeptSnapshot,
  signal: AbortSignal,
  known: readonly number[] = [],
): Promise<PieceToCopy[]> {
  const store = { read: (ref: PieceRef) => history.piece(ref) };
  const { pieces } = await readSnapshotState(store, manifest);
  const refs = new Map<number, PieceRef>();
  for (const ref of [...manifest.state, ...pieces.flatMap(({ slots }) => slots)]) {
    refs.set(ref.seq, ref);
  }
  for (const seq of known) refs.delete(seq);
  return [...refs.values()].map((ref) => ({
    seq: ref.seq,
    read: () => {
      signal.throwIfAborted();
      return history.piece(ref);
    },
  }));
}

/** Header of a snapshot's file: its first frames. */
export interface SnapshotHeader {
  readonly snapshot: KeptSnapshot;
  /** Sequences of the pieces in the file, in order. */
  readonly pieces: readonly number[];
  /** Offset of the first piece. */
  readonly piecesAt: number;
}

/**
 * Writes a snapshot's file, whole or not at all: its manifest and the pieces that no earlier file has.
 * @returns the file's bytes.
 * @throws DISK_FULL, IO; errors of reading a piece.
 */
export async function writeSnapshot(
  directory: string,
  facts: ArchiveFacts,
  shard: number,
  snapshot: KeptSnapshot,
  pieces: readonly PieceToCopy[],
): Promise<number> {
  const files = snapshotDirectory(directory, shard);
  await makeDirectories(files);
  const path = snapshotPath(files, snapshot.manifest, snapshot.seq);
  return await writeFileAtomically(
    path,
    async (handle) => {
      const writer = ContainerWriter.begin(handle, path);
      await appendSnapshot(writer, facts, shard, snapshot, pieces);
      await writer.end();
    },
    FILE_MODES.model,
  );
}

/** Appends the frames of a snapshot. @throws as {@link writeSnapshot}; some frames are written then. */
export async function appendSnapshot(
  writer: ContainerWriter,
  facts: ArchiveFacts,
  shard: number,
  { seq: storedSeq, timeMs, manifest }: KeptSnapshot,
  pieces: readonly PieceToCopy[],
): Promise<void> {
  await writer.append(jobFrame(facts));
  await writer.append({
    ...{ kind: "manifest", shard, seq: storedSeq, timeMs },
    pieces: pieces.map(({ seq }) => seq),
    data: encodeManifest(manifest),
  });
  for (const { seq, read } of pieces) {
    await writer.append({ kind: "piece", shard, seq, data: await read() });
  }
}

/** Returns the snapshot that a manifest's frame holds. @throws BAD_ARCHIVE if the manifest cannot be read. */
export function toSnapshot(path: string, offset: number, frame: ManifestFrame): KeptSnapshot {
  const { seq, timeMs, data } = frame;
  try {
    return { seq, timeMs, manifest: decodeManifest(data) };
  } catch (cause) {
    throw badArchive(path, offset, `the manifest is damaged: ${ensureError(cause).message}`, cause);
  }
}

/** Reads the header of a snapshot's file. @throws BAD_ARCHIVE, BAD_VERSION, IO. */
export async function readSnapshotHeader(
  { path, offset: at = PREAMBLE_BYTES, generation, seq, storedSeq }: SnapshotFile,
  shard: number,
  { archive }: ArchiveFacts,
): Promise<SnapshotHeader> {
  await using reader = await ContainerReader.open(path);
  const job = await reader.frameAt(at);
  if (requireJob(path, job.offset, job.frame).archive !== archive) {
    throw badArchive(path, job.offset, "the file is of another archive");
  }
  const { frame, offset, endOffset } = await reader.frameAt(job.endOffset);
  if (frame.kind !== "manifest" || frame.shard !== shard || frame.seq !== storedSeq) {
    throw badArchive(path, offset, `expected manifest ${storedSeq} of shard ${shard}`);
  }
  const snapshot = toSnapshot(path, offset, frame);
  const { manifest } = snapshot;
  if (manifest.generation !== generation || manifest.seq !== seq) {
    throw badArchive(
      path,
      offset,
      `expected a snapshot of record ${seq}, generation ${generation}`,
    );
  }
  return { snapshot, pieces: frame.pieces, piecesAt: endOffset };
}

/** Returns the offsets of the pieces of a snapshot, by sequence. @throws BAD_ARCHIVE, IO. */
export async function placesOfPieces(
  { path }: SnapshotFile,
  { pieces, piecesAt }: SnapshotHeader,
): Promise<Map<number, number>> {
  await using reader = await ContainerReader.open(path);
  const places = new Map<number, number>();
  let offset = piecesAt;
  for (const seq of pieces) {
    places.set(seq, offset);
    offset = await reader.offsetAfter(offset);
  }
  return places;
}

/** Reads the piece at an offset. @throws BAD_ARCHIVE if another one is there, IO. */
export async function readPieceAt(path: string, offset: number, seq: number): Promise<Uint8Array> {
  await using reader = await ContainerReader.open(path);
  const { frame } = await reader.frameAt(offset);
  if (frame.kind === "piece" && frame.seq === seq) return frame.data;
  throw badArchive(path, offset, `expected piece ${seq}; received a ${frame.kind}`);
}
