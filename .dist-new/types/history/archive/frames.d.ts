import { type Allocate, type Synchronization } from "../../protocol/index.ts";
/** The first frame of every file, and of every part of a recorded file: the facts of its job. */
export interface JobFrame {
    readonly kind: "job";
    readonly job: string;
    readonly shards: number;
    readonly synchronization: Synchronization;
    /** Identity of the archive that the file is a part of; "" in a recorded file. */
    readonly archive: string;
}
/** A manifest as the broker stored it; the frames of some of its pieces follow. */
export interface ManifestFrame {
    readonly kind: "manifest";
    readonly shard: number;
    /** Sequence in the snapshot stream. */
    readonly seq: number;
    readonly timeMs: number;
    /** Sequences of the pieces and state parts whose frames follow, in their order. */
    readonly pieces: readonly number[];
    /** The message of the snapshot stream. */
    readonly data: Uint8Array;
}
/** A piece of a snapshot, or a part of its state, as the broker stored it. */
interface PieceFrame {
    readonly kind: "piece";
    readonly shard: number;
    /** Sequence in the snapshot stream. */
    readonly seq: number;
    /** The message of the snapshot stream. */
    readonly data: Uint8Array;
}
/** A record of a journal as the broker stored it. */
export interface RecordFrame {
    readonly kind: "record";
    readonly shard: number;
    readonly generation: number;
    readonly seq: number;
    /** When the broker stored it, in milliseconds since 1970. */
    readonly timeMs: number;
    readonly subject: string;
    /** The payload unchanged, even if it is unreadable. */
    readonly data: Uint8Array;
}
/** A message of a shard's tape as the broker stored it. */
export interface TapeFrame {
    readonly kind: "tape";
    readonly shard: number;
    /** Number of the message among those of the shard's tape that the archive has: 1, 2, 3, …. */
    readonly number: number;
    /** Sequence in the stream of the job's tape. */
    readonly seq: number;
    /** When the broker stored it, in milliseconds since 1970. */
    readonly timeMs: number;
    /** The message of the tape. */
    readonly data: Uint8Array;
}
/** The last frame of a complete file. */
export interface EndFrame extends Totals {
    readonly kind: "end";
}
/** Sums of the frames before the end. */
export interface Totals {
    readonly frames: number;
    readonly records: number;
    readonly pieces: number;
    /** Bytes of the file before this frame. */
    readonly bytes: number;
    /** CRC-32 of the headers of all frames, each followed by the checksum of its message. */
    readonly digest: number;
}
/** One frame of an archive's file or of a recorded file. */
export type Frame = JobFrame | ManifestFrame | PieceFrame | RecordFrame | TapeFrame | EndFrame;
/** Encodes a frame as a message, in memory of `allocate`, by default in new memory. */
export declare function encodeFrame(frame: Frame, allocate?: Allocate): Uint8Array;
/** Returns the most bytes that the message of a frame can have. */
export declare function messageBytesMax(frame: Frame): number;
/**
 * Decodes the frame in a message; its `data` is a view of `bytes`.
 * @throws BAD_MESSAGE, BAD_CHECKSUM, BAD_VERSION if it is none.
 */
export declare function decodeFrame(bytes: Uint8Array): Frame;
export {};
//# sourceMappingURL=frames.d.ts.map