import type { FileHandle } from "node:fs/promises";
import { PserverError } from "../../protocol/index.ts";
import { io } from "../../system/file-errors.ts";
import { type ContainerVersion, HEAD_BYTES, makeHead, makePreamble } from "./container-format.ts";
import { encodeFrame, type Frame, messageBytesMax } from "./frames.ts";
import { RunningTotals } from "./running-totals.ts";

/** Bytes that are collected before they are written to the file, unless a frame is longer. */
const BUFFER_BYTES = 1024 ** 2;

const NO_BUFFER: Buffer = Buffer.alloc(0);

/**
 * Writes frames to an open file; the caller keeps the handle and closes it. After an error the file
 * ends with whole frames up to {@link ContainerWriter.writtenBytes}, perhaps with a part of one after
 * them, and nothing more can be written.
 */
export class ContainerWriter {
  readonly #handle: FileHandle;
  readonly #path: string;
  readonly #sums: RunningTotals;
  /** Frames that are not written yet, at its beginning; reused for one frame after the other. */
  #buffer: Buffer = NO_BUFFER;
  #bufferedBytes = 0;
  #writtenBytes: number;

  private constructor(handle: FileHandle, path: string, sums: RunningTotals, bytes: number) {
    this.#handle = handle;
    this.#path = path;
    this.#sums = sums;
    this.#writtenBytes = bytes;
  }

  /** Begins an open, empty file; frames of kind `tape` need version 2. */
  static begin(handle: FileHandle, path: string, version: ContainerVersion = 1): ContainerWriter {
    const writer = new ContainerWriter(handle, path, new RunningTotals(), 0);
    const preamble = makePreamble(version);
    writer.#reserve(preamble.length);
    writer.#buffer.set(preamble);
    writer.#bufferedBytes = preamble.length;
    return writer;
  }

  /** Goes on with an open file that ends with whole frames, which `sums` adds up. */
  static resume(handle: FileHandle, path: string, sums: RunningTotals): ContainerWriter {
    return new ContainerWriter(handle, path, sums, sums.totals.bytes);
  }

  /** Bytes of the file including those not written yet. */
  get bytes(): number {
    return this.#writtenBytes + this.#bufferedBytes;
  }

  /** Bytes of whole frames that are in the file. */
  get writtenBytes(): number {
    return this.#writtenBytes;
  }

  /** Adds a frame; its bytes may be reused afterwards. @throws DISK_FULL, IO. */
  async append(frame: Frame): Promise<void> {
    const bytesMax = HEAD_BYTES + messageBytesMax(frame);
    if (this.#bufferedBytes + bytesMax > this.#buffer.length) {
      await this.flush();
      this.#reserve(bytesMax);
    }
    const at = this.#bufferedBytes;
    const message = encodeFrame(frame, (bytes) => {
      const start = at + HEAD_BYTES;
      return this.#buffer.subarray(start, start + bytes);
    });
    const head = makeHead(message.length);
    this.#buffer.set(head, at);
    this.#sums.add(frame, head, message);
    this.#bufferedBytes += HEAD_BYTES + message.length;
  }

  /** Adds the end. No frame may follow. @throws DISK_FULL, IO. */
  async end(): Promise<void> {
    await this.append({ kind: "end", ...this.#sums.totals });
    await this.flush();
  }

  /** Writes what is buffered to the file. @throws DISK_FULL, IO. */
  async flush(): Promise<void> {
    const bytes = this.#bufferedBytes;
    this.#bufferedBytes = 0;
    if (bytes === 0) return;
    await this.#write(this.#buffer.subarray(0, bytes));
    this.#writtenBytes += bytes;
  }

  /** Waits until everything is on disk. @throws DISK_FULL, IO. */
  async sync(): Promise<void> {
    await this.flush();
    // A job can have many shards, each with a file that waits for records.
    this.#buffer = NO_BUFFER;
    await io("sync", this.#path, this.#handle.datasync());
  }

  /** Makes the empty buffer as large as a frame needs. */
  #reserve(bytes: number): void {
    if (this.#buffer.length >= bytes) return;
    this.#buffer = Buffer.allocUnsafeSlow(Math.max(BUFFER_BYTES, bytes));
  }

  async #write(bytes: Uint8Array): Promise<void> {
    for (let done = 0; done < bytes.length; ) {
      const at = this.#writtenBytes + done;
      const write = this.#handle.write(bytes, done, bytes.length - done, at);
      const { bytesWritten } = await io("write", this.#path, write);
      // A full disk may take a part of the bytes first; a file that takes none would loop for ever.
      if (bytesWritten === 0) throw new PserverError("IO", `cannot write ${this.#path}`);
      done += bytesWritten;
    }
  }
}
