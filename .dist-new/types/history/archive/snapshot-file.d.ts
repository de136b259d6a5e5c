import type { KeptSnapshot, ShardHistory } from "../source.ts";
import { type ArchiveFacts, type SnapshotFile } from "./archive-layout.ts";
import { ContainerWriter } from "./container.ts";
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
export declare function piecesOf(history: Pick<ShardHistory, "piece">, { manifest }: KeptSnapshot, signal: AbortSignal, known?: readonly number[]): Promise<PieceToCopy[]>;
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
export declare function writeSnapshot(directory: string, facts: ArchiveFacts, shard: number, snapshot: KeptSnapshot, pieces: readonly PieceToCopy[]): Promise<number>;
/** Appends the frames of a snapshot. @throws as {@link writeSnapshot}; some frames are written then. */
export declare function appendSnapshot(writer: ContainerWriter, facts: ArchiveFacts, shard: number, { seq: storedSeq, timeMs, manifest }: KeptSnapshot, pieces: readonly PieceToCopy[]): Promise<void>;
/** Returns the snapshot that a manifest's frame holds. @throws BAD_ARCHIVE if the manifest cannot be read. */
export declare function toSnapshot(path: string, offset: number, frame: ManifestFrame): KeptSnapshot;
/** Reads the header of a snapshot's file. @throws BAD_ARCHIVE, BAD_VERSION, IO. */
export declare function readSnapshotHeader({ path, offset: at, generation, seq, storedSeq }: SnapshotFile, shard: number, { archive }: ArchiveFacts): Promise<SnapshotHeader>;
/** Returns the offsets of the pieces of a snapshot, by sequence. @throws BAD_ARCHIVE, IO. */
export declare function placesOfPieces({ path }: SnapshotFile, { pieces, piecesAt }: SnapshotHeader): Promise<Map<number, number>>;
/** Reads the piece at an offset. @throws BAD_ARCHIVE if another one is there, IO. */
export declare function readPieceAt(path: string, offset: number, seq: number): Promise<Uint8Array>;
//# sourceMappingURL=snapshot-file.d.ts.map