import type { FileHandle } from "node:fs/promises";
import { PserverError } from "../../protocol/index.ts";
import { io } from "../../system/file-errors.ts";
import { HEAD_BYTES, makeHead, makePreamble, PREAMBLE_BYTES } from "./container-format.ts";
import { encodeFrame, type Frame } from "./frames.ts";
import { RunningTotals } from "./running-totals.ts";

/** Bytes that are collected before they are written to the file. */
const BUFFER_BYTES = 1024 ** 2;

/**
 * Writes frames to an open file; the caller keeps the handle and closes it. After an error the file
 * ends with whole frames up to {@link ContainerWriter.writtenBytes}, perhaps with a part of one after
 * them, and nothing more can be written.
 */
export class ContainerWriter {
  readonly #handle: FileHandle;
  readonly #path: string;
  readonly #sums: RunningTotals;
  #buffered: Uint8Array[];
  #bufferedBytes: number;
  #writtenBytes: number;

  private constructor(handle: FileHandle, path: string, sums: RunningTotals, isNew: boolean) {
    this.#handle = handle;
    this.#path = path;
    this.#sums = sums;
    this.#buffered = isNew ? [makePreamble()] : [];
    this.#bufferedBytes = isNew ? PREAMBLE_BYTES : 0;
    this.#writtenBytes = isNew ? 0 : sums.totals.bytes;
  }

  /** Begins an open, empty file. */
  static begin(handle: FileHandle, path: string): ContainerWriter {
    return new ContainerWriter(handle, path, new RunningTotals(), true);
  }

  /** Goes on with an open file that ends with whole frames, which `sums` adds up. */
  static resume(handle: FileHandle, path: string, sums: RunningTotals): ContainerWriter {
    return new ContainerWriter(handle, path, sums, false);
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
    const message = encodeFrame(frame);
    const head = makeHead(message.length);
    this.#sums.add(frame, head, message);
    this.#buffered.push(head, message);
    this.#bufferedBytes += HEAD_BYTES + message.length;
    if (this.#bufferedBytes >= BUFFER_BYTES) await this.flush();
  }

  /** Adds the end. No frame may follow. @throws DISK_FULL, IO. */
  async end(): Promise<void> {
    await this.append({ kind: "end", ...this.#sums.totals });
    await this.flush();
  }

  /** Writes what is buffered to the file. @throws DISK_FULL, IO. */
  async flush(): Promise<void> {
    const buffered = this.#buffered;
    const bytes = this.#bufferedBytes;
    this.#buffered = [];
    this.#bufferedBytes = 0;
    if (bytes === 0) return;
    await this.#write(Buffer.concat(buffered, bytes));
    this.#writtenBytes += bytes;
  }

  /** Waits until everything is on disk. @throws DISK_FULL, IO. */
  async sync(): Promise<void> {
    await this.flush();
    await io("sync", this.#path, this.#handle.datasync());
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
