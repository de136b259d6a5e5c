import { stat } from "node:fs/promises";
import { basename } from "node:path";
import { io } from "../system/file-errors.js";
import { readDirectoryModel } from "./directory-model.js";
import { badFile } from "./file-text.js";
import { ModelFile } from "./model-file.js";
import { formatOf, MODEL_ENDINGS, unknownName } from "./model-path.js";
import { readNpz } from "./npz.js";
import { readPaddleTar } from "./paddle-tar.js";
import { readSafetensors } from "./safetensors.js";
/** The reader of each format of one file. */
const READERS = { safetensors: readSafetensors, npz: readNpz, tar: readPaddleTar };
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
export async function openModel(path) {
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
    }
    catch (error) {
        await file.close();
        throw error;
    }
}
//# sourceMappingURL=open-model.js.map