import { stat } from "node:fs/promises";
import { basename } from "node:path";
import { io } from "../system/file-errors.js";
import { readDirectoryModel } from "./directory-model.js";
import { badFile } from "./file-text.js";
import { isGzip, openUnpacked } from "./gzip-file.js";
import { ModelFile } from "./model-file.js";
import { formatOf, READ_ENDINGS, unknownName } from "./model-path.js";
import { readNpz } from "./npz.js";
import { readPaddleTar } from "./paddle-tar.js";
import { readSafetensors } from "./safetensors.js";
/** The reader of each format of one file. */
const READERS = { safetensors: readSafetensors, npz: readNpz, tar: readPaddleTar };
/**
 * Opens a model that {@link saveModel} or another program wrote: safetensors, npz (stored or
 * deflated), PaddlePaddle's `model.tar`, also packed by gzip, or a model directory with its manifest.
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
export async function openModel(path, signal) {
    const stats = await io("open", path, stat(path));
    if (stats.isDirectory()) {
        return { ...(await readDirectoryModel(path)), close: async () => undefined };
    }
    const format = /\.(?:tar\.gz|tgz)$/i.test(path) ? "tar" : formatOf(basename(path));
    if (format === undefined || format === "directory") {
        const expected = `a directory, or a name ending in ${READ_ENDINGS.join(", ")}`;
        throw badFile(path, "model file", expected, unknownName(basename(path)));
    }
    const file = await openFile(path, format, signal);
    try {
        return { ...(await READERS[format](file)), close: () => file.close() };
    }
    catch (error) {
        await file.close();
        throw error;
    }
}
/** Opens a file of this format; an archive that gzip has packed is unpacked, whatever its name. */
async function openFile(path, format, signal) {
    const file = await ModelFile.open(path);
    if (format !== "tar")
        return file;
    try {
        if (!(await isGzip(file)))
            return file;
        const unpacked = await openUnpacked(file, signal);
        await file.close();
        return unpacked;
    }
    catch (error) {
        await file.close();
        throw error;
    }
}
//# sourceMappingURL=open-model.js.map