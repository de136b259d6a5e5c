import { stat } from "node:fs/promises";
import { basename } from "node:path";
import { io } from "../system/file-errors.ts";
import { readDirectoryModel } from "./directory-model.ts";
import { badFile } from "./file-text.ts";
import { readHdf5 } from "./hdf5/hdf5.ts";
import { ModelFile } from "./model-file.ts";
import { formatOf, MODEL_ENDINGS, type ModelFormat } from "./model-path.ts";
import { readNpz } from "./npz.ts";
import { readPaddleTar } from "./paddle-tar.ts";
import { readSafetensors } from "./safetensors.ts";
import type { IncomingModel } from "./tensor.ts";

/** The reader of each format of one file; the model's `close`, if it has one, comes before the file's. */
const READERS: Readonly<
  Record<
    Exclude<ModelFormat, "directory">,
    (file: ModelFile) => Promise<IncomingModel & { close?(): Promise<void> }>
  >
> = { safetensors: readSafetensors, npz: readNpz, hdf5: readHdf5, tar: readPaddleTar };

/** A model file open for reading. */
export interface OpenModel extends IncomingModel {
  /** Closes the file; chunks asked for later fail with CLOSED. May be called again. */
  close(): Promise<void>;
}

/**
 * Opens a model that {@link saveModel} or another program wrote: safetensors, npz (stored or
 * deflated), HDF5, PaddlePaddle's `model.tar`, or a model directory with its manifest. Everything the file
 * says of its tensors is checked here; their bytes are read, as often as asked, by `chunks`. The
 * caller closes it.
 * @throws IO if it cannot be read, naming the path; BAD_FILE naming what was expected and received;
 * BAD_DTYPE for an element type that no parameter has.
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
export async function openModel(path: string): Promise<OpenModel> {
  const stats = await io("open", path, stat(path));
  if (stats.isDirectory()) {
    return { ...(await readDirectoryModel(path)), close: async () => undefined };
  }
  const format = formatOf(basename(path));
  if (format === undefined || format === "directory") {
    throw badFile(
      path,
      "model file",
      `a directory, or a name ending in ${MODEL_ENDINGS.join(", ")}`,
      "a file of another name",
    );
  }
  const file = await ModelFile.open(path);
  try {
    const model = await READERS[format](file);
    const close = async (): Promise<void> => {
      await model.close?.();
      await file.close();
    };
    return { ...model, close };
  } catch (error) {
    await file.close();
    throw error;
  }
}
