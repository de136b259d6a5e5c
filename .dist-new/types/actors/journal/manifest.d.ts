import { type Fallback } from "../../protocol/index.ts";
import { type JournalChecksum } from "../fold/journal-checksum.ts";
/** A reference to a message of the snapshot stream: its sequence, and its checksum to verify it. */
export interface PieceRef {
    readonly seq: number;
    readonly crc: number;
}
/**
 * The message that commits a snapshot. It also fences ownership: a host that takes the shard over writes the newest
 * manifest again under the next term, so that the broker refuses the old owner's next write.
 */
export interface Manifest {
    readonly term: number;
    readonly host: string;
    /** Token unique to one take-over; a manifest with another token deposes this owner. */
    readonly owner: string;
    readonly generation: number;
    /** Creation time of the journal stream; "" before it is created. */
    readonly created: string;
    /** Records lost with journals that were replaced: the newest such losses, oldest first. */
    readonly fallbacks: readonly Fallback[];
    /** Generation of the abandoned journal that is kept as history, with its snapshots; absent if none is. */
    readonly past?: number;
    /** Last record in the snapshot, 0 for none, with its checksum. */
    readonly seq: number;
    readonly recordCrc: number;
    /** Checksum of the journal up to that record. */
    readonly checksum: JournalChecksum;
    /** The messages of the fold's state, in order; the state names the pieces of the blocks. */
    readonly state: readonly PieceRef[];
    /** Sequences of all pieces of all blocks; unneeded pieces are found by them. */
    readonly pieces: readonly number[];
}
/** A manifest with its sequence in the snapshot stream. */
export interface StoredManifest {
    readonly seq: number;
    readonly manifest: Manifest;
}
/** Encodes a manifest as a message. */
export declare function encodeManifest(manifest: Manifest): Uint8Array;
/** Decodes the manifest in a message. @throws SNAPSHOT_DAMAGED if it cannot be read. */
export declare function decodeManifest(bytes: Uint8Array): Manifest;
/** Parses a reference in a list. @throws BAD_MESSAGE if it is malformed. */
export declare function toPieceRef(value: unknown): PieceRef;
//# sourceMappingURL=manifest.d.ts.map