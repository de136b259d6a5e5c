import { randomUUID } from "node:crypto";
import type { FileHandle } from "node:fs/promises";
import { mkdir, open, rename, rm } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { ensureError, PserverError } from "../protocol/errors.ts";
import { io } from "../protocol/file-errors.ts";

/**
 * Writes a file whole or not at all: into a temporary file beside it, which takes its name once it
 * is on disk. A file of this name is replaced in one step. Returns the number of bytes.
 * @throws DISK_FULL, IO, and what `chunks` throws; the temporary file is gone then.
 */
export async function writeFileAtomically(
  file: string,
  chunks: AsyncIterable<Uint8Array>,
): Promise<number> {
  const temporary = temporaryNameBeside(file);
  try {
    const bytes = await writeFileDurably(temporary, chunks);
    await io("replace", file, rename(temporary, file));
    await syncDirectory(dirname(file));
    return bytes;
  } catch (error) {
    throw await withoutLeftover(temporary, error);
  }
}

/**
 * Writes a new file and waits until it is on disk. Returns the number of bytes.
 * @throws DISK_FULL, IO (also if the file exists), and what `chunks` throws.
 */
export async function writeFileDurably(
  file: string,
  chunks: AsyncIterable<Uint8Array>,
): Promise<number> {
  const handle = await io("create", file, open(file, "wx"));
  try {
    let bytes = 0;
    for await (const chunk of chunks) {
      await writeAll(handle, file, chunk);
      bytes += chunk.byteLength;
    }
    await io("sync", file, handle.sync());
    return bytes;
  } finally {
    await io("close", file, handle.close());
  }
}

/**
 * Makes the names in a directory last through a power failure.
 * @throws IO.
 */
export async function syncDirectory(directory: string): Promise<void> {
  const handle = await io("open", directory, open(directory, "r"));
  try {
    await io("sync", directory, handle.sync());
  } finally {
    await io("close", directory, handle.close());
  }
}

/**
 * Creates a directory and the missing ones above it, so that they last.
 * @throws IO.
 */
export async function makeDirectories(directory: string): Promise<void> {
  const first = await io("create", directory, mkdir(directory, { recursive: true }));
  if (first === undefined) return;
  const top = dirname(resolve(first));
  for (
    let above = dirname(resolve(directory));
    above.length >= top.length;
    above = dirname(above)
  ) {
    await syncDirectory(above);
    if (above === top) return;
  }
}

/** A name in the same directory that nothing else has. */
export function temporaryNameBeside(file: string): string {
  return join(dirname(file), `.pserver-save-${randomUUID()}.tmp`);
}

/** Removes what a failed save wrote; the error to throw is `error`, or says what could not be removed. */
export async function withoutLeftover(temporary: string, error: unknown): Promise<PserverError> {
  const failure = ensureError(error);
  try {
    await io("remove", temporary, rm(temporary, { recursive: true, force: true }));
    return failure;
  } catch (removal) {
    return new PserverError(
      failure.code,
      `${failure.message}; and ${ensureError(removal).message}`,
      { ...failure.details, leftover: temporary },
      { cause: error },
    );
  }
}

async function writeAll(handle: FileHandle, file: string, chunk: Uint8Array): Promise<void> {
  for (let written = 0; written < chunk.byteLength; ) {
    const { bytesWritten } = await io("write", file, handle.write(chunk, written));
    written += bytesWritten;
  }
}
