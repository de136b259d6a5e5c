import { open, realpath, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { FILE_MODES, writeFileAtomically } from "../../model-files/atomic-write.ts";
import { encodeNpyHeader } from "../../model-files/npy-header.ts";
import { PserverError } from "../../protocol/errors.ts";
import { type Tensor, tensorView } from "../../protocol/tensor.ts";
import { errnoCode, fileError, io } from "../../system/file-errors.ts";
import { tensorFileKind } from "./file-kind.ts";
import { encodeJsonTensor } from "./json-tensor.ts";

/** Bytes written at a time; between two writes an interrupt is noticed. */
const CHUNK_BYTES = 16 * 1024 * 1024;

/** Options for writing a tensor. */
export interface WriteOptions {
  readonly signal: AbortSignal;
  /** Called with the bytes of elements written so far; not for JSON, whose length is not known. */
  readonly onProgress?: (doneBytes: number) => void;
}

/**
 * Writes a tensor into a file: `.npy`, `.json`, or the little-endian bytes in C order. A file
 * appears whole or not at all; a link is followed; a pipe or device is written to and never replaced.
 * Returns the number of bytes.
 * @throws BAD_VALUE for another ending; IO or DISK_FULL; the reason of `signal`.
 */
export async function writeTensorFile(
  path: string,
  name: string,
  tensor: Tensor,
  options: WriteOptions,
): Promise<number> {
  const pieces = chunks(path, name, tensor, options);
  const target = await findTarget(path);
  if (target.isFile) return await writeFileAtomically(target.path, pieces, FILE_MODES.byUmask);
  return await writeThrough(path, pieces);
}

/**
 * Checks, before the tensor is read, that it can be written into a file of this name.
 * @throws BAD_VALUE for another ending, IO if it names no place for a file.
 */
export async function checkTensorTarget(path: string): Promise<void> {
  tensorFileKind(path);
  await findTarget(path);
}

/** Whether a path leads to a file, or a new one can be made there; a file's path has its links resolved. */
async function findTarget(path: string): Promise<{ path: string; isFile: boolean }> {
  try {
    const isFile = (await stat(path)).isFile();
    return { path: isFile ? await realpath(path) : path, isFile };
  } catch (error) {
    if (errnoCode(error) !== "ENOENT") throw fileError("examine", path, error);
    await checkDirectory(path);
    return { path, isFile: true };
  }
}

/** @throws IO that names the directory of a new file where that does not exist. */
async function checkDirectory(path: string): Promise<void> {
  const directory = dirname(path);
  try {
    await stat(directory);
  } catch (error) {
    if (errnoCode(error) !== "ENOENT") throw fileError("examine", directory, error);
    const message = `cannot write ${path}: the directory ${directory} does not exist`;
    throw new PserverError("IO", message, { path: directory }, { cause: error });
  }
}

async function writeThrough(path: string, pieces: AsyncIterable<Uint8Array>): Promise<number> {
  const handle = await io("open", path, open(path, "w"));
  let bytes = 0;
  try {
    for await (const piece of pieces) {
      for (let written = 0; written < piece.length; ) {
        const part = await io("write", path, handle.write(piece, written));
        written += part.bytesWritten;
      }
      bytes += piece.length;
    }
  } finally {
    await io("close", path, handle.close());
  }
  return bytes;
}

async function* chunks(
  path: string,
  name: string,
  tensor: Tensor,
  { signal, onProgress }: WriteOptions,
): AsyncGenerator<Uint8Array, void> {
  const kind = tensorFileKind(path);
  if (kind === "json") {
    for (const text of encodeJsonTensor(name, tensor)) {
      signal.throwIfAborted();
      yield Buffer.from(text);
    }
    return;
  }
  if (kind === "npy") yield encodeNpyHeader(tensor.dtype, tensor.shape);
  const bytes = tensorView(tensor);
  for (let start = 0; start < bytes.length; start += CHUNK_BYTES) {
    signal.throwIfAborted();
    yield bytes.subarray(start, start + CHUNK_BYTES);
    onProgress?.(Math.min(start + CHUNK_BYTES, bytes.length));
  }
}
