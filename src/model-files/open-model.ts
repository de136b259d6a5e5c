import { stat } from "node:fs/promises";
import { basename } from "node:path";
import { io } from "../system/file-errors.ts";
import { readDirectoryModel } from "./directory-model.ts";
import { badFile } from "./file-text.ts";
import { isGzip, openUnpacked } from "./gzip-file.ts";
import { ModelFile } from "./model-file.ts";
import { formatOf, type ModelFormat, READ_ENDINGS, unknownName } from "./model-path.ts";
import { readNpz } from "./npz.ts";
import { readPaddleTar } from "./paddle-tar.ts";
import { readSafetensors } from "./safetensors/safetensors.ts";
import { INDEX_ENDING, openSharded } from "./safetensors/sharded-model.ts";
import type { IncomingModel } from "./tensor-headers.ts";

/** The reader of each format of one file. */
const READERS: Readonly<
  Record<Exclude<ModelFormat, "directory">, (file: ModelFile) => Promise<IncomingModel>>
> = { safetensors: readSafetensors, npz: readNpz, tar: readPaddleTar };

/** A model file open for reading. */
export interface OpenModel extends IncomingModel {
  /** Closes the file; chunks asked for later fail with CLOSED. May be called again. */
  close(): Promise<void>;
}

/**
 * Opens a model that {@link saveModel} or another program wrote: safetensors, also in several files by their index
 * (`model.safetensors.index.json`), npz (stored or deflated), PaddlePaddle's `model.tar`, also packed by gzip, or a model directory with its manifest.
 * Everything the file says of its tensors is checked here; their bytes are read, as often as asked, by
 * `chunks`. Elements of a type that no parameter has come as the type that holds all their values: those of
 * half precision as float32, small integers and booleans as int32. Tensors of other types are in `skipped`.
 * Until it is closed, what gzip has packed takes its unpacked size in `TMPDIR`. The caller closes it.
 * @throws IO if it cannot be read, naming the path; BAD_FILE naming what was expected and received;
 * BAD_DTYPE for an unknown element type in a file of ours; DISK_FULL if there is no room to unpack; the
 * reason of `signal`, which ends the unpacking.
 * @example
 * const model = await openModel("models/mnist.safetensors");
 * try {
 *   for (const tensor of model.tensors) {
 *     for await (const chunk of tensor.chunks()) hash.update(chunk);
 *   }
 * } finally {
 *   await model.close();
 * }
 */
export async function openModel(path: string, signal?: AbortSignal): Promise<OpenModel> {
  const stats = await io("open", path, stat(path));
  if (stats.isDirectory()) {
    return { ...(await readDirectoryModel(path)), close: async () => undefined };
  }
  if (path.endsWith(INDEX_ENDING)) return await openIndexed(path);
  const format = /\.(?:tar\.gz|tgz)$/i.test(path) ? "tar" : formatOf(basename(path));
  if (format === undefined || format === "directory") {
    const expected = `a directory, or a name ending in ${READ_ENDINGS.join(", ")}`;
    throw badFile(path, "model file", expected, unknownName(basename(path)));
  }
  const file = await openFile(path, format, signal);
  try {
    return { ...(await READERS[format](file)), close: () => file.close() };
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** Opens the files that an index names; the index itself is read at once. */
async function openIndexed(path: string): Promise<OpenModel> {
  const index = await ModelFile.open(path);
  try {
    const { model, close } = await openSharded(index);
    return { ...model, close };
  } finally {
    await index.close();
  }
}

/** Opens a file of this format; an archive that gzip has packed is unpacked, whatever its name. */
async function openFile(
  path: string,
  format: ModelFormat,
  signal: AbortSignal | undefined,
): Promise<ModelFile> {
  const file = await ModelFile.open(path);
  if (format !== "tar") return file;
  try {
    if (!(await isGzip(file))) return file;
    const unpacked = await openUnpacked(file, signal);
    await file.close();
    return unpacked;
  } catch (error) {
    await file.close();
    throw error;
  }
}
