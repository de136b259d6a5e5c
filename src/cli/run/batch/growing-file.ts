import { type FileHandle, open } from "node:fs/promises";
import { errnoCode } from "../../../system/file-errors.ts";

/** The most that is read at a time. */
const PIECE_BYTES = 64 * 1024;

/** A file that another process appends to, possibly on another machine. */
export class GrowingFile {
  readonly #path: string;
  #readBytes = 0;

  constructor(path: string) {
    this.#path = path;
  }

  /**
   * Passes on the bytes since the last call, up to the present size; none if the file does not exist yet. A
   * file that has become shorter was replaced, and is read from its start.
   * @throws what the file system says.
   */
  async readNew(take: (bytes: Buffer) => Promise<void>): Promise<void> {
    // Opened each time, so that a network file system asks its server for the present size.
    const file = await openIfThere(this.#path);
    if (file === undefined) return;
    try {
      const { size } = await file.stat();
      if (size < this.#readBytes) this.#readBytes = 0;
      while (this.#readBytes < size) {
        const piece = Buffer.allocUnsafe(Math.min(PIECE_BYTES, size - this.#readBytes));
        const { bytesRead } = await file.read(piece, 0, piece.length, this.#readBytes);
        if (bytesRead === 0) return;
        this.#readBytes += bytesRead;
        await take(piece.subarray(0, bytesRead));
      }
    } finally {
      await file.close();
    }
  }
}

async function openIfThere(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path);
  } catch (error) {
    if (errnoCode(error) === "ENOENT") return undefined;
    throw error;
  }
}
