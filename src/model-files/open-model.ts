import { stat } from "node:fs/promises";
import { basename } from "node:path";
import { io } from "../system/file-errors.ts";
import { readDirectoryModel } from "./directory-model.ts";
import { badFile } from "./file-text.ts";
import { ModelFile } from "./model-file.ts";
import { formatOf, MODEL_ENDINGS, type ModelFormat, unknownName } from "./model-path.ts";
import { readNpz } from "./npz.ts";
import { readPaddleTar } from "./paddle-tar.ts";
import { readSafetensors } from "./safetensors.ts";
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
 * Opens a model that {@link saveModel} or another program wrote: safetensors, npz (stored or
 * deflated), PaddlePaddle's `model.tar`, or a model directory with its manifest. Everything the file
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
    const expected = `a directory, or a name ending in ${MODEL_ENDINGS.join(", ")}`;
    throw badFile(path, "model file", expected, unknownName(basename(path)));
  }
  const file = await ModelFile.open(path);
  try {
    return { ...(await READERS[format](file)), close: () => file.close() };
  } catch (error) {
    await file.close();
    throw error;
  }
}
