import { type FileHandle } from "node:fs/promises";
import { PserverError } from "../../protocol/index.ts";
import { type Frame, type Totals } from "./frames.ts";
/** Makes the BAD_ARCHIVE for damage at a byte of an archive's file or a recorded file. */
export declare function badArchive(path: string, offset: number, problem: string, cause?: unknown): PserverError;
/** Bytes of a preamble; the first frame follows. */
export declare const PREAMBLE_BYTES: number;
/** Bytes of a frame's header, which is before its message. */
export declare const HEADER_BYTES = 8;
/** Makes the header of a frame with a message of so many bytes. */
export declare function makeHeader(messageBytes: number): Uint8Array;
/** Adds up the frames of a file as they are written or read. */
export declare class RunningTotals {
    #private;
    /** The sums so far. */
    get totals(): Totals;
    /** Adds a frame, with its header and its message. */
    add({ kind }: Frame, header: Uint8Array, message: Uint8Array): void;
}
/** A frame, and its place in the file. */
export interface PlacedFrame {
    readonly frame: Frame;
    /** Offset of its header. */
    readonly offset: number;
    /** Offset of the next frame's header. */
    readonly endOffset: number;
}
/** Reads the frames of one file, with constant memory. The caller closes it. */
export declare class ContainerReader {
    #private;
    readonly path: string;
    private constructor();
    /**
     * Opens a file.
     * @throws BAD_ARCHIVE if it is no such file, BAD_VERSION for one of another version, IO.
     */
    static open(path: string): Promise<ContainerReader>;
    /** Closes the file. */
    close(): Promise<void>;
    /** Closes the file. */
    [Symbol.asyncDispose](): Promise<void>;
    /**
     * Reads all frames but the end, some at a time, and checks that the file is complete: that each frame is sound,
     * that none was removed, added or moved, and that the end is there. Frames before damage are given before the
     * error. The `data` of a frame belongs to the caller.
     * @throws BAD_ARCHIVE, IO.
     */
    frames(): AsyncGenerator<readonly PlacedFrame[]>;
    /**
     * Reads the whole frames of a file that is still being written, up to a part of one. Of a closed file it gives the
     * end frame, too. All other frames are added to `sums`.
     * @throws BAD_ARCHIVE if a frame is damaged, IO.
     */
    wholeFrames(sums?: RunningTotals): AsyncGenerator<readonly PlacedFrame[]>;
    /**
     * Reads a segment or a snapshot: the whole of a file of its own, as {@link frames} does, or the part of a recorded
     * file that begins with the job at `offset`.
     * @throws BAD_ARCHIVE, IO.
     */
    part(offset: number | undefined): AsyncGenerator<readonly PlacedFrame[]>;
    /** Reads the frame at `offset`. @throws BAD_ARCHIVE, IO. */
    frameAt(offset: number): Promise<PlacedFrame>;
    /**
     * Returns the offset of the frame after the one at `offset`, whose message is not read.
     * @throws BAD_ARCHIVE, IO.
     */
    offsetAfter(offset: number): Promise<number>;
}
/**
 * Writes frames to an open file; the caller keeps the handle and closes it. After an error the file ends with whole
 * frames up to {@link ContainerWriter.writtenBytes}, perhaps with a part of one after them, and nothing more can be
 * written.
 */
export declare class ContainerWriter {
    #private;
    private constructor();
    /** Begins an open, empty file. */
    static begin(handle: FileHandle, path: string): ContainerWriter;
    /** Continues an open file that ends with whole frames, which `sums` adds up. */
    static resume(handle: FileHandle, path: string, sums: RunningTotals): ContainerWriter;
    /** Bytes of the file including those not written yet. */
    get bytes(): number;
    /** Bytes of whole frames that are in the file. */
    get writtenBytes(): number;
    /** Adds a frame; its bytes may be reused afterwards. @throws DISK_FULL, IO. */
    append(frame: Frame): Promise<void>;
    /** Adds the end. No frame may follow. @throws DISK_FULL, IO. */
    end(): Promise<void>;
    /** Writes what is buffered to the file. @throws DISK_FULL, IO. */
    flush(): Promise<void>;
    /** Waits until everything is on disk. @throws DISK_FULL, IO. */
    sync(): Promise<void>;
}
//# sourceMappingURL=container.d.ts.map