import { type FileHandle, open } from "node:fs/promises";
import { ensureError, type PserverError } from "../../protocol/index.ts";
import { io } from "../../system/file-errors.ts";
import { badArchive } from "./bad-archive.ts";
import { checkPreamble, HEAD_BYTES, PREAMBLE_BYTES, readHead } from "./container-format.ts";
import { decodeFrame, type EndFrame, type Frame, type Totals } from "./frames.ts";
import { RunningTotals } from "./running-totals.ts";

/** A frame and where it is in its file. */
export interface PlacedFrame {
  readonly frame: Frame;
  /** Of its head. */
  readonly offset: number;
  /** Of the next frame's head. */
  readonly endOffset: number;
}

/** Bytes that are read at one time, unless a frame is longer. */
const CHUNK_BYTES = 1024 ** 2;

/** Reads the frames of one file, with constant memory. The caller closes it. */
export class ContainerReader {
  readonly path: string;
  readonly #handle: FileHandle;

  private constructor(path: string, handle: FileHandle) {
    this.path = path;
    this.#handle = handle;
  }

  /**
   * Opens a file.
   * @throws BAD_ARCHIVE if it is no such file, BAD_VERSION for one of another version, IO.
   */
  static async open(path: string): Promise<ContainerReader> {
    const reader = new ContainerReader(path, await io("open", path, open(path, "r")));
    try {
      checkPreamble(path, await reader.#read(0, PREAMBLE_BYTES));
      return reader;
    } catch (error) {
      await reader.close();
      throw error;
    }
  }

  /** Closes the file. */
  async close(): Promise<void> {
    await this.#handle.close();
  }

  /** Closes the file. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /**
   * Reads all frames but the end, some at a time, and checks that the file is complete: that each frame is
   * sound, that none was removed, added or moved, and that the end is there. What was read before damage is
   * given before the error. The `data` of a frame belongs to the caller.
   * @throws BAD_ARCHIVE, IO.
   */
  async *frames(): AsyncGenerator<readonly PlacedFrame[]> {
    const sums = new RunningTotals();
    let end: PlacedFrame | undefined;
    let reached = PREAMBLE_BYTES;
    const onCutOff = (offset: number): never => {
      throw this.#cutOff(offset);
    };
    for await (const batch of this.#scan(PREAMBLE_BYTES, onCutOff, sums)) {
      const endAt = batch.findIndex(({ frame }) => frame.kind === "end");
      if (end !== undefined || (endAt >= 0 && endAt < batch.length - 1)) {
        throw badArchive(this.path, reached, "there is more after the end");
      }
      if (endAt !== 0) yield endAt < 0 ? batch : batch.slice(0, endAt);
      if (endAt >= 0) end = batch[endAt];
      reached = batch.at(-1)?.endOffset ?? reached;
    }
    if (end === undefined)
      throw badArchive(this.path, reached, "the file ends without its end frame");
    this.#checkEnd(end, sums.totals);
  }

  /**
   * Reads the whole frames of a file that is still being written, up to a part of one. Of a closed file it
   * gives the end, too. All others are added to `sums`.
   * @throws BAD_ARCHIVE if a frame is damaged, IO.
   */
  wholeFrames(sums?: RunningTotals): AsyncGenerator<readonly PlacedFrame[]> {
    return this.#scan(PREAMBLE_BYTES, () => undefined, sums);
  }

  /** As {@link wholeFrames}, from the frame at `offset` on. */
  framesFrom(offset: number): AsyncGenerator<readonly PlacedFrame[]> {
    return this.#scan(offset, () => undefined);
  }

  /** The frame at `offset`. @throws BAD_ARCHIVE, IO. */
  async frameAt(offset: number): Promise<PlacedFrame> {
    const endOffset = await this.offsetAfter(offset);
    const message = await this.#read(offset + HEAD_BYTES, endOffset - offset - HEAD_BYTES);
    if (offset + HEAD_BYTES + message.length < endOffset) throw this.#cutOff(offset);
    return { frame: this.#decode(offset, message), offset, endOffset };
  }

  /** Offset of the frame after the one at `offset`, whose message is not read. @throws BAD_ARCHIVE, IO. */
  async offsetAfter(offset: number): Promise<number> {
    const head = await this.#read(offset, HEAD_BYTES);
    if (head.length < HEAD_BYTES) throw this.#cutOff(offset);
    return offset + HEAD_BYTES + readHead(this.path, offset, head);
  }

  /** Frames from `from` to the end of the file, added to `sums`; `onCutOff` is told where a part of one is. */
  async *#scan(
    from: number,
    onCutOff: (offset: number) => void,
    sums?: RunningTotals,
  ): AsyncGenerator<readonly PlacedFrame[]> {
    let offset = from;
    let bytes: Uint8Array = new Uint8Array(0);
    for (;;) {
      const { frames, neededBytes, error } = this.#parse(offset, bytes, sums);
      if (frames.length > 0) yield frames;
      if (error !== undefined) throw error;
      const taken = (frames.at(-1)?.endOffset ?? offset) - offset;
      offset += taken;
      const rest = bytes.subarray(taken);
      const more = await this.#read(
        offset + rest.length,
        Math.max(CHUNK_BYTES, neededBytes - rest.length),
      );
      if (more.length === 0) {
        if (rest.length > 0) onCutOff(offset);
        return;
      }
      bytes = rest.length === 0 ? more : joinBytes(rest, more);
    }
  }

  /** The whole frames in bytes that begin at `offset`; how many bytes the next needs, or why there is none. */
  #parse(
    offset: number,
    bytes: Uint8Array,
    sums: RunningTotals | undefined,
  ): { frames: PlacedFrame[]; neededBytes: number; error?: unknown } {
    const frames: PlacedFrame[] = [];
    let at = 0;
    let neededBytes = HEAD_BYTES;
    try {
      while (bytes.length - at >= HEAD_BYTES) {
        const head = bytes.subarray(at, at + HEAD_BYTES);
        neededBytes = HEAD_BYTES + readHead(this.path, offset + at, head);
        if (bytes.length - at < neededBytes) break;
        const message = bytes.subarray(at + HEAD_BYTES, at + neededBytes);
        const frame = this.#decode(offset + at, message);
        if (frame.kind !== "end") sums?.add(frame, head, message);
        frames.push({ frame, offset: offset + at, endOffset: offset + at + neededBytes });
        at += neededBytes;
        neededBytes = HEAD_BYTES;
      }
    } catch (error) {
      return { frames, neededBytes, error };
    }
    return { frames, neededBytes };
  }

  #decode(offset: number, message: Uint8Array): Frame {
    try {
      return decodeFrame(message);
    } catch (cause) {
      const { message: text } = ensureError(cause);
      throw badArchive(this.path, offset, `the frame is damaged: ${text}`, cause);
    }
  }

  #checkEnd({ frame, offset }: PlacedFrame, sums: Totals): void {
    const { frames, records, pieces, bytes, digest } = frame as EndFrame;
    const isSame =
      frames === sums.frames &&
      records === sums.records &&
      pieces === sums.pieces &&
      bytes === sums.bytes &&
      digest === sums.digest;
    if (isSame) return;
    throw badArchive(this.path, offset, "the end does not match the frames before it");
  }

  #cutOff(offset: number): PserverError {
    return badArchive(this.path, offset, "the file ends within a frame");
  }

  /** Bytes at `offset`, fewer where the file ends. */
  async #read(offset: number, length: number): Promise<Uint8Array> {
    const buffer = Buffer.allocUnsafeSlow(length);
    let done = 0;
    while (done < length) {
      const read = this.#handle.read(buffer, done, length - done, offset + done);
      const { bytesRead } = await io("read", this.path, read);
      if (bytesRead === 0) break;
      done += bytesRead;
    }
    return new Uint8Array(buffer.buffer, buffer.byteOffset, done);
  }
}

function joinBytes(first: Uint8Array, second: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(first.length + second.length);
  bytes.set(first);
  bytes.set(second, first.length);
  return bytes;
}
